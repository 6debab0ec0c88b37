"""Loads a data file of many operators: reads it on first use, and decodes each operator on demand."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec


class DataFile(msgspec.Struct, frozen=True):
    """A file's operators by name, still encoded."""

    operators: dict[str, msgspec.Raw]


@cache
def data_file(name: str) -> DataFile:
    """Read one of the package's JSON files."""
    return msgspec.json.decode(file_bytes(name), type=DataFile)


def file_bytes(name: str) -> bytes:
    """Return a data file of the package."""
    return files("harness.model.data").joinpath(name).read_bytes()
