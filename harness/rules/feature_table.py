"""The features of many cases by column, made so that a term is a bit a case.

A case costs three small integers: the numbers of the two halves of its id, which thousands of cases share, and of its level. A column is
kept once a half and spread over the cases when a term asks for it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from harness.rules.features import ABSENT, of_names, of_numbers, split
from harness.rules.relations import Value
from harness.rules.terms import Relation, Term
from harness.tables import Numbers

Rows = NDArray[np.intp]
"""Numbers of rows of a table."""
Readers = tuple[Callable[[str], dict[str, Value]], ...]

_THRESHOLDS = 10
_MISSING = np.iinfo(np.int64).min
_UNLISTED = frozenset({"case", "shape", "begins", "ends", "draw"})
"""Columns so various that `!=` says nothing."""


@dataclass(frozen=True)
class Column:
    """One column: a code for each key of a half. `words` is None for integers, which are their own codes."""

    half: int
    codes: NDArray[np.int64]
    words: tuple[str, ...] | None

    def value(self, code: int) -> Value:
        return code if self.words is None else self.words[code]


class FeatureTable:
    """Collects cases with `add`; ask for the rest after the last."""

    def __init__(self, readers: Readers = (of_numbers, of_names, lambda level: {"level": level})) -> None:
        """Take what reads the features of the two halves of an id and of a level."""
        self._readers = readers
        self._keys: tuple[Numbers[str], ...] = (Numbers(), Numbers(), Numbers())
        self._ids = (array("i"), array("i"), array("i"))

    def __len__(self) -> int:
        return len(self._ids[0])

    def add(self, case_id: str, level: str) -> None:
        """Take one case as the next row."""
        numbers, names = split(case_id)
        for place, key in enumerate((numbers, names, level)):
            self._ids[place].append(self._keys[place][key])

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """All columns by name."""
        columns: dict[str, Column] = {}
        for half, (read, keys) in enumerate(zip(self._readers, self._keys, strict=True)):
            columns.update(_columns(half, [read(key) for key in keys]))
        return columns

    @cached_property
    def _rows(self) -> tuple[NDArray[np.int32], ...]:
        return tuple(np.frombuffer(ids, np.int32) for ids in self._ids)

    def keys(self, rows: Rows) -> tuple[NDArray[np.intp], ...]:
        """Return which keys of each half occur among some rows."""
        counts = (np.bincount(ids[rows], minlength=len(keys)) for ids, keys in zip(self._rows, self._keys, strict=True))
        return tuple(np.flatnonzero(count) for count in counts)

    def mask(self, term: Term, rows: Rows) -> NDArray[np.bool_]:
        """Say for each of some rows whether a term holds."""
        column = self.columns.get(term.column)
        if column is None:
            return np.full(len(rows), term.relation == "!=")
        return _holds(column, term)[self._rows[column.half][rows]]

    def candidates(self, failing: tuple[NDArray[np.intp], ...], anywhere: tuple[NDArray[np.intp], ...]) -> Iterator[Term]:
        """Yield the terms worth asking: each holds for some of the failing and not for every row; both are given as `keys`."""
        for name, column in self.columns.items():
            here, everywhere = (np.unique(column.codes[keys[column.half]]) for keys in (failing, anywhere))
            if len(everywhere) < 2:
                continue
            if column.words is None:
                yield from _numeric(name, here[here != _MISSING], everywhere)
            else:
                yield from _worded(name, column.words, set(here.tolist()), everywhere.tolist())


def _worded(name: str, words: tuple[str, ...], here: set[int], everywhere: list[int]) -> Iterator[Term]:
    present = [code for code in everywhere if words[code] != ABSENT]
    excludable = len(present) > 2 and name.rpartition(".")[2] not in _UNLISTED
    for code in present:
        if code in here:
            yield Term(name, "=", words[code])
        if excludable:
            yield Term(name, "!=", words[code])


def _numeric(name: str, here: NDArray[np.int64], everywhere: NDArray[np.int64]) -> Iterator[Term]:
    if not len(here):
        return
    present = everywhere[everywhere != _MISSING]
    picked = here if len(here) <= _THRESHOLDS else here[np.unique(np.linspace(0, len(here) - 1, _THRESHOLDS).astype(int))]
    for value in picked.tolist():
        yield Term(name, "=", value)
        partial = len(present) < len(everywhere)
        if partial or value > present[0]:
            yield Term(name, ">=", value)
        if partial or value < present[-1]:
            yield Term(name, "<=", value)
    if len(present) > 2:
        yield from (Term(name, "!=", value) for value in (0, 1) if value in present)


def _holds(column: Column, term: Term) -> NDArray[np.bool_]:
    """Say for each key of the column's half whether a term holds."""
    codes, value, relation = column.codes, term.value, term.relation
    if column.words is not None:
        code = column.words.index(str(value)) if str(value) in column.words else -1
        return np.asarray(codes != code if relation == "!=" else codes == code)
    if not isinstance(value, int):
        return np.full(len(codes), relation == "!=")
    compare: dict[Relation, NDArray[np.bool_]] = {
        "=": codes == value,
        "!=": codes != value,
        ">=": (codes >= value) & (codes != _MISSING),
        "<=": (codes <= value) & (codes != _MISSING),
    }
    return compare[relation]


def _columns(half: int, described: list[dict[str, Value]]) -> Iterator[tuple[str, Column]]:
    names = dict.fromkeys(name for each in described for name in each)
    for name in names:
        values = [each.get(name) for each in described]
        if all(value is None or (isinstance(value, int) and -(2**63) < value < 2**63) for value in values):
            yield name, Column(half, np.array([_MISSING if value is None else value for value in values], np.int64), None)
            continue
        numbers: Numbers[str] = Numbers()
        codes = [numbers[ABSENT if value is None else str(value)] for value in values]
        yield name, Column(half, np.array(codes, np.int64), tuple(numbers))
