"""Where the harness keeps what it can make or fetch again."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

CACHE_ENV = "HARNESS_CACHE"


def cache_folder(kind: str) -> Path:
    """Return the folder of one kind of things that are kept: under HARNESS_CACHE, else under the user's
    cache."""
    named = os.environ.get(CACHE_ENV)
    base = Path(named) if named else platformdirs.user_cache_path("onnxruntime-conformance-harness")
    return base.absolute() / kind
