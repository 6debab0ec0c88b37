"""`harness merge`: makes one run of those of all shards."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.commands.error_line import check_complete
from harness.commands.options import NamedPath, flag, folder_option


@click.command()
@click.argument("runs", nargs=-1, required=True, type=NamedPath(), metavar="RUN...")
@folder_option("Folder of the merged run.", required=True)
@flag("--partial", help="Merge the shards that exist; the merged run lists the missing ones.")
@flag("--force", help="Replace the run that -o holds.")
def merge(runs: tuple[Path, ...], output: Path, partial: bool, force: bool) -> None:
    """Merge the runs of all shards into one run, with the tensors that they kept.

    Exit code as of `harness run`; where nothing else is unexpected, 4 for a merge that lacks a shard.
    """
    from harness.commands.finish import finish
    from harness.run.folders import point_latest
    from harness.run.merging import merge_runs

    summary = merge_runs(runs, output, partial=partial, force=force)
    point_latest(output)
    finish(summary.path)
    if summary.exit_code:
        sys.exit(summary.exit_code)
    check_complete(summary.path)
