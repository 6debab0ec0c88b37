"""Writes to the terminal, whose reader may leave before the end, as in `harness history … | head`."""

from __future__ import annotations

import os
import sys

import rich.console

LEFT = 141
"""The exit code of a command whose reader left: that of a program which SIGPIPE ends."""


class Console(rich.console.Console):
    """A console that lets a reader's leaving be known: rich itself would end the process with 1, which says
    that results are unexpected."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def nobody_reads() -> None:
    """Let what is still to be written to standard output go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
