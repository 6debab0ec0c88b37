"""Preloaded into the processes of `--cluster local:N`: Ctrl-C reaches the first process alone, which ends them in
order."""

from __future__ import annotations

import contextlib
import os
import sys


def dask_setup(_worker: object) -> None:
    """Leave the terminal's group of processes."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.setsid()
