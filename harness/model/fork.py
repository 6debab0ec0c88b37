"""Forks a process that has threads which the child does without."""

from __future__ import annotations

import os
import warnings


def fork() -> int:
    """Fork; return the child's id in the parent and 0 in the child.

    Numerical libraries have idle threads of their own, of which Python warns; no child uses them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
