"""Single results as compact data for the page."""

from __future__ import annotations

from pathlib import Path

from harness.records import Header, Result


class Payload:
    """Collects what the page's module needs; nothing yet."""

    def __init__(self, header: Header) -> None:
        self.header = header

    def add(self, result: Result) -> None:
        """Take one result."""

    def add_tensors(self, folder: Path) -> None:
        """Take the tensors kept of failing cases."""

    def encode(self) -> str:
        """Return the data."""
        return ""
