"""Locks on open files, also between processes; the system releases a lock when its process ends in any way."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

_locking: Any = importlib.import_module("msvcrt" if sys.platform == "win32" else "fcntl")
_BEYOND = 1 << 40
"""Windows keeps others from the bytes that are locked: the one at this offset is none of the file's."""
SHARED = sys.platform != "win32"
"""Whether locks can be shared, and folders locked. Windows needs neither: it keeps what is in use from being renamed."""


def lock(descriptor: int, *, wait: bool = False, shared: bool = False) -> bool:
    """Lock an open file for as long as it is open; False if another process holds it.

    `wait` waits for the other, `shared` admits others who share too (where `SHARED`). OSError where the file
    system has no locks.
    """
    if sys.platform == "win32":
        return _lock_on_windows(descriptor, wait)
    kind = _locking.LOCK_SH if shared else _locking.LOCK_EX
    try:
        _locking.flock(descriptor, kind | (0 if wait else _locking.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def claim(descriptor: int) -> bool:
    """Lock a file to write it; a file system without locks has no claims to respect."""
    try:
        return lock(descriptor)
    except OSError:
        return True


def _lock_on_windows(descriptor: int, wait: bool) -> bool:
    place = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, _BEYOND, os.SEEK_SET)
    try:
        while True:
            try:
                _locking.locking(descriptor, _locking.LK_LOCK if wait else _locking.LK_NBLCK, 1)
            except OSError:  # LK_LOCK gives up after ten seconds
                if wait:
                    continue
                return False
            return True
    finally:
        os.lseek(descriptor, place, os.SEEK_SET)
