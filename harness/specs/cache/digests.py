"""Digests that name files of the user's cache: digests of the code that made them, of libraries, and of
files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnx

_PACKAGE = Path(__file__).resolve().parents[2]
_CODE = (".py", ".json", ".yaml")


@cache
def code(*rooms: str) -> bytes:
    """Return a digest of all that rooms of the harness compute with, data and the releases of libraries included; of
    all rooms if none is named."""
    releases = (*sys.version_info[:3], np.__version__, onnx.__version__)
    total = sha256(repr(releases).encode())
    for folder in (_PACKAGE / room for room in rooms or (".",)):
        for inside, below, names in os.walk(folder):
            below.sort()
            for path in (os.path.join(inside, name) for name in sorted(names) if name.endswith(_CODE)):
                with open(path, "rb") as file:
                    total.update(f"{os.path.relpath(path, _PACKAGE)}\0".encode() + file.read())
    return total.digest()


def files(paths: Iterable[Path]) -> bytes:
    """Return a digest of the names and bytes of files."""
    total = sha256()
    for path in paths:
        data = path.read_bytes()
        total.update(f"{path.name}\0{len(data)}\0".encode() + data)
    return total.digest()
