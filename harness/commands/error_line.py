"""An error of a command: one line on stderr, and an exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TextIO

import click

from harness.model.errors import NothingRan

LEFT = 141
"""The exit code of a command whose reader left: that of a program which SIGPIPE ends."""


def check_complete(*runs: Path) -> None:
    """End the process with exit code 4, as `harness compare` does, and a line that names the missing results
    of a run; do nothing for complete runs. Errors: UsageError."""
    from harness.results.summary import lacks

    said = [f"{run} is incomplete: {' '.join(found)}" for run in runs if (found := lacks(run))]
    if said:
        fail("\n".join(said), NothingRan.exit_code)


def nowhere(stream: TextIO) -> None:
    """Discard further output to a standard stream whose reader has left or whose disk is full."""
    with suppress(OSError, ValueError):  # a stream of a test has no number
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def fail(message: str, code: int) -> NoReturn:
    """Write the line and end the process with the code."""
    from harness.render.text import visible

    try:
        click.echo(
            "\n".join(f"harness: {line}" for line in visible(message).splitlines()) or "harness: failed",
            err=True,
        )
    except OSError:
        nowhere(sys.stderr)
    sys.exit(code)
