"""Reads the kinds of input that get no case: those of which a definition leaves open what becomes of them, or that it
excludes in words that no rule of an operator states."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import yaml

from harness.specs.reading.load import default_folder


@cache
def left_out() -> dict[str, dict[str, str]]:
    """Read by operator, or by a pattern of operators, the cells that get no case, an input and a kind each, and why."""
    return {
        operator: {cell: " ".join(entry["because"].split()) for entry in entries for cell in entry["cells"]}
        for operator, entries in yaml.safe_load(left_out_file().read_bytes()).items()
    }


def left_out_file() -> Path:
    """Return the file beside the specs."""
    return default_folder() / "kinds" / "left_out.yaml"


def reasons(operator: str) -> dict[str, str]:
    """Return the cells of an operator that get no case, with the reasons."""
    return {
        cell: because
        for pattern, cells in left_out().items()
        if fnmatchcase(operator, pattern)
        for cell, because in cells.items()
    }
