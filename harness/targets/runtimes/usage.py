"""Tracks which environments are in use: a process holds a shared lock on a file in each that it uses, until
it ends.

A forked process shares the lock of its parent. Windows needs no lock: programs that run from a folder keep it
from being renamed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from harness.model.file_lock import SHARED, lock

_LOCK = "in-use.lock"
_held: dict[Path, int] = {}


def hold(folder: Path) -> bool:
    """Keep an environment from being removed until this process ends; return False where it is gone
    already."""
    if folder in _held or not SHARED:
        return folder.exists()
    try:
        handle = _open(folder)
    except FileNotFoundError:
        return False
    except OSError:  # a cache that this user cannot write is not this user's to remove
        return True
    lock(handle, wait=True, shared=True)
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
    if not SHARED or not folder.exists():
        yield True
        return
    handle = _open(folder)
    try:
        yield lock(handle)
    finally:
        os.close(handle)


def _open(folder: Path) -> int:
    return os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
