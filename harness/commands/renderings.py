"""Output formats of a command's findings: the terminal, or text for a file or standard output."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import click

from harness.commands.options import NamedPath
from harness.commands.report import write_whole
from harness.render.console import Console
from harness.render.document import Document
from harness.render.document_html import write_html
from harness.render.document_markdown import write_markdown
from harness.render.document_terminal import write_terminal
from harness.render.text import json_text

Shown = TypeVar("Shown")
_WIDTH = 80


def format_options(formats: Sequence[str], command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--format`, for the terminal by default, and `--output`, a file."""
    choice, file = click.Choice(formats), NamedPath(dir_okay=False)
    output = click.option(
        "-o", "--output", type=file, metavar="FILE", help="Write here instead of to standard output."
    )(command)
    return click.option(
        "--format", "format_", type=choice, default="terminal", show_default=True, help="What to render."
    )(output)


class Renderings(Generic[Shown]):
    """Ways to render one type of finding, by format: as its document, as JSON of its data, and what `texts` adds."""

    def __init__(
        self,
        document: Callable[[Shown], Document],
        data: Callable[[Shown], dict[str, Any]],
        **texts: Callable[[Shown], str],
    ) -> None:
        self._document = document
        self._texts = {
            "markdown": lambda shown: write_markdown(document(shown)),
            "json": lambda shown: json_text(data(shown), indent=1) + "\n",
            "html": lambda shown: write_html(document(shown)),
            **texts,
        }

    @property
    def formats(self) -> tuple[str, ...]:
        """The names that `--format` takes."""
        return ("terminal", *self._texts)

    def options(self, command: Callable[..., Any]) -> Callable[..., Any]:
        """Give a command `--format` and `--output`, as the parameters `format_` and `output`."""
        return format_options(self.formats, command)

    def text(self, shown: Shown, format: str) -> str:
        """Render as text; for the terminal without colour and 80 columns wide."""
        if format != "terminal":
            return self._texts[format](shown)
        plain = io.StringIO()
        write_terminal(self._document(shown), Console(file=plain, width=_WIDTH, no_color=True))
        return plain.getvalue()

    def show(self, shown: Shown, format: str, output: Path | None) -> None:
        """Render to a file, or to standard output. Errors: UsageError."""
        if output is not None:
            write_whole(output, [self.text(shown, format)])
        elif format == "terminal":
            write_terminal(self._document(shown), Console())
        else:
            click.echo(self.text(shown, format).encode(), nl=False)
