"""Keeps the line with which a command answers about all of the harness's own specs, where finding it takes seconds:
under a digest of the code, the specs and the expectations that it follows from, in the user's cache.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from harness.model.cache_folder import cache_folder
from harness.operators import VARIABLE
from harness.specs.cache import digests, kept
from harness.specs.reading.load import default_folder


def answer(question: str) -> str | None:
    """Return the kept answer to a question about the present specs and expectations; None if there is
    none."""
    path = _path(question)
    if path is None:
        return None
    data = kept.read(path)
    return None if data is None else data.decode()


def keep(question: str, said: str) -> str:
    """Keep an answer in place of the one before, and return it."""
    path = _path(question)
    if path is not None:
        kept.write(path, said.encode(), 1)
    return said


def _path(question: str) -> Path | None:
    """Return where an answer is kept; None where operators of one's own may change it."""
    if os.environ.get(VARIABLE):
        return None
    try:
        own = sorted(path for path in default_folder().rglob("*.yaml") if path.is_file())
        total = sha256(question.encode() + digests.code() + digests.files(own))
    except OSError:  # whoever asks will say what cannot be read
        return None
    slug = "".join(letter for letter in question.partition(" ")[0] if letter.isalnum())
    return cache_folder("answers") / f"{slug}-{total.hexdigest()[:16]}.txt"
