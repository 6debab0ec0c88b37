"""Where the console script and `python -m harness` begin: Ctrl-C ends a command in one line from here on,
also while modules load."""

from __future__ import annotations

import sys

from harness.model import interrupt


def main() -> None:
    """Run the command line."""
    interrupt.install()
    interrupt.watch_finalizers()
    try:
        from harness.commands.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        sys.stderr.write("harness: interrupted\n")
        sys.exit(interrupt.EXIT_CODE)
    finally:
        interrupt.ignore()
