"""Writes to the terminal, whose reader may leave before the end, as in `harness history … | head`."""

from __future__ import annotations

import os
import sys
from typing import Any

import rich.console

PIPED = 120
LEAST = 20


class Console(rich.console.Console):
    """A console that lets a reader's leaving be known: rich itself would end the process with 1, which says
    that results are unexpected.

    Where nobody says how wide the output is, in a pipe or a file, it is 120 columns wide, and nowhere less than 20: rich fails at
    the width that `COLUMNS=0` states.
    """

    def __init__(self, **options: Any) -> None:
        if (
            "width" not in options
            and "file" not in options
            and not (sys.stdout.isatty() or "COLUMNS" in os.environ)
        ):
            options["width"] = PIPED
        super().__init__(**options)
        if self.width < LEAST:
            self.width = LEAST

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
