"""`harness explain`: shows what the failures of a run, or its differences from another, have in common."""

from __future__ import annotations

from pathlib import Path

import click

from harness.commands.error_line import check_complete
from harness.commands.options import QUERIES, NamedPath, flag
from harness.commands.renderings import Renderings
from harness.model.errors import UsageError
from harness.model.query import parse_all
from harness.render.explain import explain_data, explain_document
from harness.results.explain.explanation import explain, explain_changes
from harness.results.runfile import RunReader

RENDERINGS = Renderings(explain_document, explain_data)


@click.command("explain")
@click.argument("run", type=NamedPath())
@click.option(
    "--against", type=NamedPath(), metavar="BASE", help="Explain the differences from this run instead."
)
@flag("--known", help="Also explain expected deviations, after the unexpected ones.")
@QUERIES
@RENDERINGS.options
def explain_command(
    run: Path, against: Path | None, known: bool, queries: tuple[str, ...], format_: str, output: Path | None
) -> None:
    """Group the failures of RUN, and give for each group the rule that separates it from passing cases.

    Exit code 4, after the explanation: RUN or BASE is incomplete.
    """
    parsed = parse_all(queries)
    if against is not None and known:
        raise UsageError(
            "--known and --against exclude each other: a difference is explained whether it is expected or not"
        )
    found = (
        explain(RunReader(run), parsed, known=known)
        if against is None
        else explain_changes(RunReader(against), RunReader(run), parsed)
    )
    RENDERINGS.show(found, format_, output)
    check_complete(run, *filter(None, [against]))
