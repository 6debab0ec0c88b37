"""Entry point of the console script and of `python -m harness`: from here on Ctrl-C ends a command with one
line, even while modules load."""

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
    except (KeyboardInterrupt, Exception) as error:
        if not interrupt.behind(error):
            raise
        sys.stderr.write("harness: interrupted\n")
        sys.exit(interrupt.EXIT_CODE)
    finally:
        interrupt.ignore()
