"""An error of a command: one line on stderr, and an exit code."""

from __future__ import annotations

import sys
from typing import NoReturn

import click


def fail(message: str, code: int) -> NoReturn:
    """Write the line and end the process with the code."""
    from harness.render.text import visible

    click.echo(
        "\n".join(f"harness: {line}" for line in visible(message).splitlines()) or "harness: failed", err=True
    )
    sys.exit(code)
