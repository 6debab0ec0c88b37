"""`harness compile`: writes the graphs of cases, with a manifest of their hashes."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.commands.options import QUERIES, SPECS, flag, folder_option


@click.command("compile")
@SPECS
@QUERIES
@flag("--check", "only_check", help="Only check the manifest; exit 1 if it is stale.")
@folder_option("Folder of the graphs (default: generated_models).")
def compile_(
    specs: tuple[Path, ...], queries: tuple[str, ...], only_check: bool, output: Path | None
) -> None:
    """Write the graphs of the selected cases to generated_models/, with a manifest of hashes."""
    from harness.compile.graph_files import check_manifest, write_graphs
    from harness.model.query import parse_all

    if only_check:
        stale = check_manifest(specs, output)
        click.echo(stale or "the manifest is fresh")
        sys.exit(1 if stale else 0)
    click.echo(write_graphs(specs, parse_all(queries), output))
