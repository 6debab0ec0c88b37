"""`harness query`: asks runs a question in SQL."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from harness.commands.error_line import fail
from harness.commands.options import RunsPath
from harness.commands.renderings import format_options
from harness.commands.report import write_text
from harness.model.errors import NothingRan, UsageError
from harness.render.console import Console
from harness.render.document_terminal import write_terminal
from harness.render.query import RENDERINGS, answer_document
from harness.results.columns import ask
from harness.results.history.runs import find_runs
from harness.results.runfile import RunReader


@click.command("query")
@click.argument("sql")
@click.argument("runs", nargs=-1, required=True, type=RunsPath(), metavar="RUN...")
@partial(format_options, ("terminal", *RENDERINGS))
def query(sql: str, runs: tuple[Path | str, ...], format_: str, output: Path | None) -> None:
    """Ask RUN..., run files or folders with runs, a SELECT of the table `results`.

    Exit code 4, after the output: a run is incomplete.
    """
    if output is not None and format_ == "terminal":
        raise UsageError("-o writes a file: add --format csv or json")
    met: dict[str, RunReader] = {}
    for path in find_runs(runs):
        reader = RunReader(path)
        other = met.setdefault(reader.header.run_id, reader)
        if other is not reader:
            raise UsageError(
                f"{path}: run {reader.header.run_id} is also {other.path}: move one of them away"
            )
    with ask(list(met.values()), sql) as answer:
        if format_ == "terminal":
            write_terminal(answer_document(answer), Console())
        else:
            write_text(RENDERINGS[format_](answer), output)
    if answer.incomplete:
        fail(f"incomplete: {', '.join(answer.incomplete)}", NothingRan.exit_code)
