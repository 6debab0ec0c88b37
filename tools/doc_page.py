"""`python -m tools.NAME RUN…`: prints a page of docs/ that a module makes from run files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from harness.model.errors import HarnessError, UsageError


def print_page(
    arguments: Sequence[str], usage: str, runs: Sequence[int], make: Callable[..., Iterable[str]]
) -> int:
    """Print the lines that `make` yields for the runs, whose number must be one of `runs`; return the exit
    code of `harness`."""
    try:
        if len(arguments) not in runs:
            raise UsageError(f"write: {usage}")
        print("\n".join(make(*map(Path, arguments))).rstrip())
    except HarnessError as error:
        print(f"harness: {error}", file=sys.stderr)
        return error.exit_code
    return 0
