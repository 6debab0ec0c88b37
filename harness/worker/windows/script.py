"""Runs a Python script in the Windows Python, with numpy and onnxruntime; `boot.py` starts it as if it were
the worker.

The script comes through standard input, since the sandbox shows nothing else of the machine; its arguments
are this program's.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Prepare onnxruntime as the worker does, then run the script as `__main__`."""
    text = sys.stdin.buffer.read()
    sys.argv[:] = sys.argv[1:]
    import onnxruntime  # noqa: F401 - `before_sessions` wants it loaded

    sys.modules["harness_boot"].before_sessions()
    exec(
        compile(text, sys.argv[0], "exec"), {"__name__": "__main__", "__file__": sys.argv[0], "__doc__": None}
    )


if __name__ == "__main__":
    main()
