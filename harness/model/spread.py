"""Summarises which cases a group of results holds, as far as a table shows it: counted one by one, written as
opsets and element types."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.model.facets import Facets, dtype_key

_NAMED = 6


@dataclass(kw_only=True)
class Spread:
    """How many results, and the opsets, element types and ranks that occur among them."""

    number: int = 0
    opsets: set[int] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)

    def count(self, read: Facets) -> None:
        """Take one more result."""
        self.number += 1
        self.opsets.add(read.opset)
        self.ranks.add(read.rank)
        if read.dtype:
            self.dtypes.add(read.dtype)

    def which(self, operator: str) -> str:
        """Write which cases: `Round 11, 22, float16, float32`."""
        named = sorted(self.dtypes, key=dtype_key)
        shown = ", ".join(named) if len(named) <= _NAMED else f"{len(named)} element types"
        return f"{operator} {', '.join(map(str, sorted(self.opsets)))}" + (f", {shown}" if shown else "")
