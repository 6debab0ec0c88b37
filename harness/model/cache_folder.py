"""The folders of files that the harness can make or download again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import platformdirs

CACHE_ENV = "HARNESS_CACHE"


def cache_folder(kind: str) -> Path:
    """Return the folder for one type of cached files: below HARNESS_CACHE, by default below the user's cache."""
    named = os.environ.get(CACHE_ENV)
    base = Path(named) if named else platformdirs.user_cache_path("onnxruntime-conformance-harness")
    return base.absolute() / kind


def put(path: Path, data: bytes) -> None:
    """Write a file of a cache, whole or not at all; OSError where that cannot be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".partial")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(partial, path)
    except OSError:
        os.unlink(partial)
        raise
