"""Reads the kinds of input that get no case: those of which a definition leaves open what becomes of them, or that it
excludes in words that no rule of an operator states."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from harness.specs.reading.load import default_folder


class CellsWithoutCase(NamedTuple):
    """Cells of an operator, an input and a kind each, that get no case, and why."""

    cells: tuple[str, ...]
    because: str


@cache
def left_out() -> dict[str, tuple[CellsWithoutCase, ...]]:
    """Read what gets no case, by operator or by a pattern of operators."""
    tree: dict[str, list[dict[str, Any]]] = yaml.safe_load(left_out_file().read_bytes())
    return {
        operator: tuple(CellsWithoutCase(tuple(entry["cells"]), entry["because"]) for entry in entries)
        for operator, entries in tree.items()
    }


def left_out_file() -> Path:
    """Return the file beside the specs."""
    return default_folder() / "kinds" / "left_out.yaml"


def reasons(operator: str) -> dict[str, str]:
    """Return the cells of an operator that get no case, as the file writes them, with the reasons."""
    return {
        cell: " ".join(entry.because.split())
        for pattern, entries in left_out().items()
        if fnmatchcase(operator, pattern)
        for entry in entries
        for cell in entry.cells
    }
