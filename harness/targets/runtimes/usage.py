"""Which environments are in use: a process holds a shared lock on a file in each that it uses, until it ends.

A forked process shares the lock of its parent. On Windows no lock is needed: programs that run from a folder
keep it from being renamed.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LOCK = "in-use.lock"
_locking: Any = importlib.import_module("fcntl") if sys.platform != "win32" else None
_held: dict[Path, int] = {}


def hold(folder: Path) -> bool:
    """Keep an environment from being removed until this process ends; return False where it is gone
    already."""
    if folder in _held or _locking is None:
        return folder.exists()
    try:
        handle = _open(folder)
    except FileNotFoundError:
        return False
    except OSError:  # a cache that this user cannot write is not this user's to remove
        return True
    _locking.flock(handle, _locking.LOCK_SH)
    if not os.fstat(handle).st_nlink or not folder.exists():
        os.close(handle)
        return False
    _held[folder] = handle
    return True


@contextlib.contextmanager
def unused(folder: Path) -> Iterator[bool]:
    """Say whether no other process uses an environment; if so, none begins to until the end of the
    context."""
    if folder in _held:
        os.close(_held.pop(folder))
    if _locking is None or not folder.exists():
        yield True
        return
    handle = _open(folder)
    try:
        _locking.flock(handle, _locking.LOCK_EX | _locking.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        yield False
        return
    try:
        yield True
    finally:
        os.close(handle)


def _open(folder: Path) -> int:
    return os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
