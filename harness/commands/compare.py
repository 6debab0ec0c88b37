"""`harness compare`: compares two runs, in any rendering."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.commands.options import NamedPath
from harness.commands.renderings import Renderings
from harness.model.errors import NothingRan
from harness.render.compare import compare_data, compare_document
from harness.results.compare.joined import compare_runs
from harness.results.compare.tables import exit_code, summarize_comparison
from harness.results.runfile import RunReader

RENDERINGS = Renderings(compare_document, compare_data)


@click.command("compare")
@click.argument("base", type=NamedPath())
@click.argument("head", type=NamedPath())
@RENDERINGS.options
def compare(base: Path, head: Path, format_: str, output: Path | None) -> None:
    """Compare run HEAD with run BASE; exit 1 only for regressions, 4 if nothing ran in both or one is
    incomplete."""
    comparison = compare_runs(RunReader(base), RunReader(head))
    RENDERINGS.show(comparison, format_, output)
    if not comparison.total.compared:
        raise NothingRan(summarize_comparison(comparison).sentence)
    sys.exit(exit_code(comparison))
