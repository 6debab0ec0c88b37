"""Terms of a rule: one column of `features` compared with one value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from harness.model.errors import UsageError
from harness.model.facets import DTYPE_ORDER
from harness.results.rules.relations import Value

Relation = Literal["=", "!=", ">=", "<="]
EXAMPLE = "rank>=3"

_TERM = re.compile(r"(?P<column>[A-Za-z_][\w.]*)\s*(?P<relation>>=|<=|!=|=)\s*(?P<value>[^\s<>=!;]+)\Z")
_INTEGER = re.compile(r"-?\d{1,19}\Z")
_COSTS = {
    "operator": 0.95,
    "dtype": 1.05,
    "rank": 1.05,
    "kind": 1.1,
    "bits": 1.15,
    "validity": 1.0,
    "level": 1.4,
    "elements": 1.3,
    "multiple_of_4": 1.35,
    "first": 1.25,
    "last": 1.25,
    "smallest": 1.25,
    "largest": 1.25,
    "has_extent_1": 1.3,
    "tuples": 1.25,
    "ranks": 1.1,
    "extents": 1.1,
    "broadcast": 1.1,
    "broadcast_last": 1.15,
    "rank_gap": 1.1,
    "count": 1.05,
    "sign": 1.1,
    "all": 1.1,
    "ascending": 1.1,
    "repeated": 1.1,
    "last_dimension": 1.1,
    "omitted": 1.05,
    "result_rank": 1.05,
    "sweep": 2.6,
    "case": 2.7,
    "shape": 1.9,
    "begins": 1.6,
    "ends": 1.6,
    "draw": 3.0,
}
_RELATIONS: dict[str, Relation] = {"=": "=", "!=": "!=", ">=": ">=", "<=": "<="}
_RELATION_COSTS = {"=": 0.0, ">=": 0.02, "<=": 0.03, "!=": 0.3}
_PHRASES = {
    "batch_sizes=differ": "batch sizes differ",
    "batch_sizes=equal": "batch sizes agree",
    "ranks=differ": "ranks differ",
    "ranks=equal": "ranks agree",
    "broadcast=none": "no broadcasting",
    "broadcast=both": "both are broadcast",
    "broadcast=first": "the first input is broadcast",
    "broadcast=second": "the second input is broadcast",
    "broadcast=impossible": "shapes that do not broadcast",
    "broadcast_last=first": "the first input is broadcast along the last dimension",
    "broadcast_last=second": "the second input is broadcast along the last dimension",
    "extents=same": "extents agree",
    "extents=fewer": "extents of the second input are smaller",
    "extents=more": "extents of the second input are larger",
    "extents=both": "extents of the second input are smaller and larger",
    "tuples_to_batches=fewer": "fewer index tuples than batches",
    "tuples_to_batches=multiple": "index tuples a multiple of the batches",
    "tuples_to_batches=other": "more index tuples than batches and no multiple of them",
    "tuples_to_batches!=fewer": "no fewer index tuples than batches",
    "tuples_to_batches!=multiple": "index tuples no multiple of the batches",
    "tuple=0": "empty index tuples",
    "omitted=none": "no input omitted",
    "in_place=true": "in place",
    "neighbours=true": "between neighbours",
    "after=same": "after another call of its size",
    "after=larger": "after a larger call",
    "after=smaller": "after a smaller call",
    "variant=none": "no variant",
    "initializer=none": "no initializer",
    "shapes=static": "static shapes",
    "shapes=symbolic": "symbolic shapes",
}
_PATTERNS = tuple(
    (re.compile(pattern), phrase)
    for pattern, phrase in (
        (r"(\w+)_in_range=yes", r"\1 in range"),
        (r"(\w+)_in_range=no", r"\1 out of range"),
        (r"(\w+)\.last=yes", r"\1 is the last"),
        (r"(\w+)\.last=no", r"\1 is not the last"),
        (r"(\w+)\.last_dimension=yes", r"\1 holds the last dimension"),
        (r"(\w+)\.last_dimension=no", r"\1 does not hold the last dimension"),
        (r"(\w+)\.all=yes", r"\1 holds every dimension"),
        (r"(\w+)\.repeated=yes", r"\1 holds a dimension twice"),
        (r"(\w+)\.negative=yes", r"\1 holds a negative number"),
        (r"off_(\w+)=same", r"extents agree off the \1"),
        (r"off_(\w+)=fewer", r"the second input is smaller off the \1"),
        (r"off_(\w+)=more", r"the second input is larger off the \1"),
        (r"along_(\w+)=same", r"extents agree along the \1"),
        (r"along_(\w+)=fewer", r"the second input is shorter along the \1"),
        (r"along_(\w+)=more", r"the second input is longer along the \1"),
        (r"omitted=(.+)", r"\1 omitted"),
    )
)
"""Phrases for relations that bear the name of an attribute."""


_HAS = {
    "multiple_of_4": ("has a multiple of 4 elements", "has no multiple of 4 elements"),
    "empty": ("is empty", "is not empty"),
    "has_extent_1": ("has an extent of 1", "has no extent of 1"),
}


class Term(NamedTuple):
    """`column relation value`; `>=` and `<=` compare integers, and hold of no case without the column."""

    column: str
    relation: Relation
    value: Value

    @classmethod
    def parse(cls, text: str) -> Term:
        """Parse `column=value`, `!=`, `>=` or `<=`; raise UsageError that shows a right one."""
        found = _TERM.match(text.strip())
        if found is None:
            raise UsageError(
                f"bad term {text!r}: write column=value, with =, !=, >= or <=, for example {EXAMPLE!r}"
            )
        value: Value = int(found["value"]) if _INTEGER.match(found["value"]) else found["value"]
        relation = _RELATIONS[found["relation"]]
        if relation in (">=", "<=") and isinstance(value, str):
            raise UsageError(f"bad term {text!r}: {relation} compares integers, for example {EXAMPLE!r}")
        return cls(found["column"], relation, value)

    def holds(self, of: Mapping[str, Value]) -> bool:
        """Say whether the term holds of a case with these features."""
        found = of.get(self.column)
        if self.relation in (
            "=",
            "!=",
        ):  # as text: where one case of a column has no int64, all its values are words
            equal = found == self.value or (found is not None and str(found) == str(self.value))
            return equal == (self.relation == "=")
        if not isinstance(found, int) or not isinstance(self.value, int):
            return False
        return found >= self.value if self.relation == ">=" else found <= self.value

    def __str__(self) -> str:
        return f"{self.column}{self.relation}{self.value}"

    @property
    def words(self) -> str:
        """The term as people read it."""
        plain = str(self)
        if self.column == "operator":
            return str(self.value) if self.relation == "=" else f"not {self.value}"
        whose, _, what = self.column.rpartition(".")
        if what in _HAS:
            yes = (self.value == "yes") == (self.relation == "=")
            return f"{whose or 'the first input'} {_HAS[what][not yes]}"
        if plain in _PHRASES:
            return _PHRASES[plain]
        matches = ((pattern.fullmatch(plain), phrase) for pattern, phrase in _PATTERNS)
        return next((match.expand(phrase) for match, phrase in matches if match), plain)

    @property
    def cost(self) -> float:
        """How much a rule pays for the term: 1 for a property of the call; more for a name that says nothing
        of the cause."""
        column = self.column
        cost = _COSTS.get(column)
        if cost is None:
            cost = _COSTS.get(column.rpartition(".")[2], 1.0) if "." in column else 1.0
        equal_number = (
            0.1 if self.relation == "=" and isinstance(self.value, int) and self.column != "opset" else 0.0
        )
        return cost + _RELATION_COSTS[self.relation] + equal_number


def say(terms: Iterable[Term]) -> str:
    """Write a conjunction: `GatherND and batch_dims>=1 and batch sizes differ`; the empty one holds
    always."""
    return " and ".join(term.words for term in sorted(terms, key=reading_order)) or "every case"


def reading_order(term: Term) -> tuple[int, str, str]:
    """Sort key: operator, opset, element types, then the rest by name."""
    first = {"operator": 0, "opset": 1, "dtype": 2, "rank": 4}
    of_input = (
        3 if "." not in term.column and isinstance(term.value, str) and term.value in DTYPE_ORDER else 5
    )
    return first.get(term.column, of_input), term.column, term.relation
