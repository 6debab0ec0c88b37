"""`harness compare`: two runs held against each other, in any rendering."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Literal, get_args

import click
from rich.console import Console

from harness.compare.comparison import Comparison, compare_runs
from harness.compare.tables import exit_code, summarize_comparison
from harness.errors import NothingRan
from harness.render.compare_html import render_compare_html
from harness.render.compare_json import render_compare_json
from harness.render.compare_markdown import render_compare_markdown
from harness.render.compare_terminal import render_compare_terminal
from harness.report import write_whole
from harness.runfile import RunReader

Format = Literal["terminal", "markdown", "json", "html"]
FORMATS: tuple[str, ...] = get_args(Format)
_RENDER = {"markdown": render_compare_markdown, "json": render_compare_json, "html": render_compare_html}
_WIDTH = 80


def rendering(comparison: Comparison, format: str) -> str:
    """Render a comparison as text; for the terminal without colour and 80 columns wide."""
    if format == "terminal":
        text = io.StringIO()
        render_compare_terminal(comparison, Console(file=text, width=_WIDTH, no_color=True))
        return text.getvalue()
    return _RENDER[format](comparison)


@click.command("compare")
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("head", type=click.Path(path_type=Path))
@click.option("--format", "format_", type=click.Choice(FORMATS), default="terminal", show_default=True, help="What to render.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write here instead of to standard output.")
def compare(base: Path, head: Path, format_: str, output: Path | None) -> None:
    """Compare run HEAD with run BASE; exit 1 only for regressions, 4 if nothing ran in both."""
    comparison = compare_runs(RunReader(base), RunReader(head))
    if output is not None:
        write_whole(output, [rendering(comparison, format_)])
    elif format_ == "terminal":
        render_compare_terminal(comparison, Console())
    else:
        click.echo(rendering(comparison, format_).encode(), nl=False)
    if exit_code(comparison) == NothingRan.exit_code:
        raise NothingRan(summarize_comparison(comparison).sentence)
    sys.exit(exit_code(comparison))
