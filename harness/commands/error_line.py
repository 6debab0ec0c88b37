"""An error of a command: one line on stderr, and an exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import click

from harness.model.errors import NothingRan


def check_complete(*runs: Path) -> None:
    """End the process with exit code 4, as `harness compare` does, and a line for what a run lacks; do nothing for
    complete runs. Errors: UsageError."""
    from harness.results.summary import lacks

    said = [f"{run} is incomplete: {' '.join(found)}" for run in runs if (found := lacks(run))]
    if said:
        fail("\n".join(said), NothingRan.exit_code)


def fail(message: str, code: int) -> NoReturn:
    """Write the line and end the process with the code."""
    from harness.render.text import visible

    click.echo(
        "\n".join(f"harness: {line}" for line in visible(message).splitlines()) or "harness: failed", err=True
    )
    sys.exit(code)
