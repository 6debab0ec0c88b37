"""Entry point of the console script and of `python -m harness`: from here on Ctrl-C ends a command with one
line, even while modules load."""

from __future__ import annotations

import gc
import os
import sys

from harness.model import interrupt

_COLLECTED_AFTER = 50_000, 20, 50
"""Python's own 700, 10 and 10 are for programs whose cycles are garbage: here most objects stay, and looking through
them took 10 to 20 % of `check`, `compare` and reports."""


def _open_streams() -> None:
    """Give a process that was started without standard streams the null device: the first files that it opens would
    take their numbers."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as above
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as above


def main() -> None:
    """Run the command line."""
    _open_streams()
    # before NumPy loads: its BLAS would spin on every core, to no gain, and round as their number has it
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(*_COLLECTED_AFTER)
    try:
        interrupt.install()
        interrupt.watch_finalizers()
        from harness.commands.cli import main as command_line

        command_line()
    except (KeyboardInterrupt, Exception) as error:
        if not interrupt.behind(error):
            raise
        sys.stderr.write("harness: interrupted\n")
        sys.exit(interrupt.EXIT_CODE)
    finally:
        interrupt.ignore()
