"""`harness explain`: what the failures of a run, or its differences from another, have in common."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Literal, get_args

import click
from rich.console import Console

from harness.errors import UsageError
from harness.explain.explanation import Explanation, explain, explain_changes
from harness.query import parse_all
from harness.render.explain_json import render_explain_json
from harness.render.explain_markdown import render_explain_markdown
from harness.render.explain_terminal import render_explain_terminal
from harness.report import write_whole
from harness.runfile import RunReader

Format = Literal["terminal", "markdown", "json"]
FORMATS: tuple[str, ...] = get_args(Format)
_RENDER = {"markdown": render_explain_markdown, "json": render_explain_json}
_WIDTH = 80


def rendering(found: Explanation, format: str) -> str:
    """Render an explanation as text; for the terminal without colour and 80 columns wide."""
    if format == "terminal":
        text = io.StringIO()
        render_explain_terminal(found, Console(file=text, width=_WIDTH, no_color=True))
        return text.getvalue()
    return _RENDER[format](found)


@click.command("explain")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--against", type=click.Path(path_type=Path), metavar="BASE", help="Explain what differs from this run instead.")
@click.option("--known", is_flag=True, help="Explain expected deviations as well, after the unexpected ones.")
@click.option("-k", "--query", "queries", multiple=True, metavar="QUERY", help="Only cases that match, e.g. 'Round@22:X=float16'.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="terminal", show_default=True, help="What to render.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write here instead of to standard output.")
def explain_command(run: Path, against: Path | None, known: bool, queries: tuple[str, ...], format_: str, output: Path | None) -> None:
    """Group the failures of RUN and state for each group the rule that separates it from what passes."""
    parsed = parse_all(queries)
    if against is not None and known:
        raise UsageError("--known and --against exclude each other: a difference is explained whether it is expected or not")
    found = explain(RunReader(run), parsed, known=known) if against is None else explain_changes(RunReader(against), RunReader(run), parsed)
    if output is not None:
        write_whole(output, [rendering(found, format_)])
    elif format_ == "terminal":
        render_explain_terminal(found, Console())
    else:
        click.echo(rendering(found, format_).encode(), nl=False)
