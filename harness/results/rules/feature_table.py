"""The features of many cases by column, arranged so that a term is one bit per case.

A case costs three small integers: the numbers of the two halves of its id, which thousands of cases share,
and of its level. A column is stored once per half and spread over the cases when a term asks for it. A column
that both halves of an id can supply (`min` of Clip is an attribute at one opset and an input at another) is
stored once per pair of halves.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.model.caseid import INTEGER
from harness.results.numbering import Numbering
from harness.results.rules.features import ABSENT, of_names, of_numbers, split
from harness.results.rules.relations import Value
from harness.results.rules.terms import Relation, Term

Rows = NDArray[np.intp]
"""Numbers of rows of a table."""
Codes = NDArray[np.signedinteger[Any]]
Values = Mapping[str, Codes]
"""Distinct codes of each column."""
Readers = tuple[Callable[[str], dict[str, Value]], ...]

_THRESHOLDS = 10
_PAIR = 3
"""The place of pairs of halves after the two halves and the level."""
_MISSING = np.iinfo(np.int64).min + 1
"""No number of a case, unlike the least int64, which illegal axes are."""
_UNLISTED = frozenset({"case", "shape", "begins", "ends", "draw"})
"""Columns so various that `!=` says nothing."""


@dataclass(frozen=True)
class Column:
    """One column of the `count` keys of a half, or of a pair of halves: the codes at the `places` that have one, and
    the code of all others, since most keys lack most names, of operators that are not theirs. `words` is None for
    integers, which are their own codes."""

    half: int
    count: int
    places: NDArray[np.int32]
    found: Codes
    other: int
    words: tuple[str, ...] | None

    @property
    def codes(self) -> Codes:
        """A code for each key, `[count]`."""
        codes = np.full(self.count, self.other, self.found.dtype)
        codes[self.places] = self.found
        return codes

    def value(self, code: int) -> Value:
        return code if self.words is None else self.words[code]


class FeatureTable:
    """Collects cases with `add`; ask for the rest after the last."""

    def __init__(self, readers: Readers = (of_numbers, of_names, lambda level: {"level": level})) -> None:
        """Take what reads the features of the two halves of an id and of a level."""
        self._readers = readers
        self._keys: tuple[Numbering[str], ...] = (Numbering(), Numbering(), Numbering())
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
        halves = [_sparse(map(read, keys)) for read, keys in zip(self._readers, self._keys, strict=True)]
        either = [name for name in halves[0] if name in halves[1]]
        columns: dict[str, Column] = {}
        for half, (found, keys) in enumerate(zip(halves, self._keys, strict=True)):
            own = ((name, found.pop(name)) for name in list(found) if name not in either)
            columns.update(_columns(half, len(keys), own))
        pairs = self._pairs[0].T.tolist() if either else []
        for name in either:
            numbers, names = (half[name].by_place() for half in halves[:2])
            values = (
                {**({name: numbers[n]} if n in numbers else {}), **({name: names[m]} if m in names else {})}
                for n, m in pairs
            )
            columns.update(_columns(_PAIR, len(pairs), _sparse(values).items()))
        return columns

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Numbers of the two halves of each distinct pair, `[2, pairs]`, and the pair of every row."""
        numbers, names, _ = (np.frombuffer(ids, np.int32) for ids in self._ids)
        width = max(len(self._keys[1]), 1)
        pairs, rows = np.unique(numbers.astype(np.int64) * width + names, return_inverse=True)
        return np.stack(np.divmod(pairs, width)), rows.astype(np.int32)

    @cached_property
    def _rows(self) -> tuple[NDArray[np.int32], ...]:
        return (*(np.frombuffer(ids, np.int32) for ids in self._ids), self._pairs[1])

    def mask(self, term: Term, rows: Rows) -> NDArray[np.bool_]:
        """Say for each of some rows whether a term holds."""
        column = self.columns.get(term.column)
        if column is None:
            return np.full(len(rows), term.relation == "!=")
        return _holds(column, term)[self._rows[column.half][rows]]

    def all_hold(self, terms: Iterable[Term], rows: Rows) -> NDArray[np.bool_]:
        """Say for each of some rows whether all of some terms hold."""
        found = np.ones(len(rows), np.bool_)
        for term in terms:
            found &= self.mask(term, rows)
        return found

    def nearest_outside(self, term: Term, rows: Rows) -> int | None:
        """Return the value of a threshold's column that comes nearest to it from the other side, among some rows; None
        where there is none, or the term is no threshold of integers."""
        column = self.columns.get(term.column)
        limit = term.value
        if column is None or column.words is not None or isinstance(limit, str) or not len(rows):
            return None
        values = column.codes[self._rows[column.half][rows]]
        if term.relation == ">=":
            outside = values[(values != _MISSING) & (values < limit)]
            return int(outside.max()) if len(outside) else None
        if term.relation == "<=":
            outside = values[(values != _MISSING) & (values > limit)]
            return int(outside.min()) if len(outside) else None
        return None

    def values(self, rows: Rows) -> Values:
        """Return the distinct codes of every column among some rows, in order."""
        keys = [np.unique(ids[rows]) for ids in self._rows]
        return {name: np.unique(column.codes[keys[column.half]]) for name, column in self.columns.items()}

    def candidates(self, failing: Values, passing: Values) -> Iterator[Term]:
        """Yield the terms worth asking: each holds for some of the failing and not for every row."""
        for name, column in self.columns.items():
            here = failing[name]
            everywhere = np.union1d(here, passing[name])
            if len(everywhere) < 2:
                continue
            if column.words is None:
                yield from _numeric(name, here[here != _MISSING], everywhere)
            else:
                yield from _worded(name, column.words, set(here.tolist()), everywhere.tolist())


def _worded(name: str, words: tuple[str, ...], here: set[int], everywhere: list[int]) -> Iterator[Term]:
    if all(words[code] == ABSENT for code in here):
        return  # a column of other operators
    present = [code for code in everywhere if words[code] != ABSENT]
    excludable = len(present) > 2 and name.rpartition(".")[2] not in _UNLISTED
    for code in present:
        if code in here:
            yield Term(name, "=", words[code])
        if excludable:
            yield Term(name, "!=", words[code])
    numbers = sorted(int(words[code]) for code in here if INTEGER.match(words[code]))
    for number in numbers if len(numbers) > 1 else ():  # words beside numbers do not cost these their order
        yield Term(name, ">=", number)
        yield Term(name, "<=", number)


def _numeric(name: str, here: Codes, everywhere: Codes) -> Iterator[Term]:
    if not len(here):
        return
    present = everywhere[everywhere != _MISSING]
    picked = (
        here
        if len(here) <= _THRESHOLDS
        else here[np.unique(np.linspace(0, len(here) - 1, _THRESHOLDS).astype(int))]
    )
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
        if relation in (">=", "<="):
            held = np.array(
                [
                    Term(term.column, relation, value).holds({term.column: _integer(word)})
                    for word in column.words
                ],
                np.bool_,
            )
            return held[codes]
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


def _integer(word: str) -> Value:
    return int(word) if INTEGER.match(word) else word


class _Sparse:
    """The places of keys that have a name, and the number of the value of each."""

    def __init__(self) -> None:
        self.places, self.numbers = array("i"), array("i")
        self.values: Numbering[Value] = Numbering()

    def by_place(self) -> dict[int, Value]:
        values = list(self.values)
        return dict(zip(self.places, (values[number] for number in self.numbers), strict=True))


def _sparse(described: Iterable[Mapping[str, Value]]) -> dict[str, _Sparse]:
    """Return for each name the keys that have it, and their values."""
    found: dict[str, _Sparse] = {}
    for place, each in enumerate(described):
        for name, value in each.items():
            of = found.get(name) or found.setdefault(name, _Sparse())
            of.places.append(place)
            of.numbers.append(of.values[value])
    return found


def _columns(half: int, count: int, found: Iterable[tuple[str, _Sparse]]) -> Iterator[tuple[str, Column]]:
    """Yield the columns of a half, or of pairs, of `count` keys."""
    for name, of in found:
        at, numbers = np.array(of.places, np.int32), np.array(of.numbers, np.int32)
        if all(
            isinstance(value, int) and -(2**63) <= value < 2**63 and value != _MISSING for value in of.values
        ):
            yield name, Column(half, count, at, np.array(list(of.values), np.int64)[numbers], _MISSING, None)
            continue
        words: Numbering[str] = Numbering()
        absent = next((row for row, place in enumerate(of.places) if row != place), len(at))
        codes = []
        for value, first in zip(of.values, np.unique(numbers, return_index=True)[1], strict=True):
            if first >= absent:
                words[ABSENT]  # words follow the order in which they occur
            codes.append(words[str(value)])
        other = words[ABSENT] if len(at) < count else 0
        yield name, Column(half, count, at, np.array(codes, np.int32)[numbers], other, tuple(words))
