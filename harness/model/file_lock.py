"""One writer of a file at a time, also among processes; the system takes a claim back when its process ends,
however it ends."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

_locking: Any = importlib.import_module("msvcrt" if sys.platform == "win32" else "fcntl")
_BEYOND = 1 << 40
"""Windows keeps others from the bytes that are locked: the one at this offset is none of the file's."""


def claim(descriptor: int) -> bool:
    """Claim an open file for as long as it is open; False if another has it. A file system without locks has
    no claims to respect."""
    if sys.platform == "win32":
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        try:
            _locking.locking(descriptor, _locking.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(descriptor, place, os.SEEK_SET)
        return True
    try:
        _locking.flock(descriptor, _locking.LOCK_EX | _locking.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
