"""Encodes the single results of a run as compact columns, which the page's module decodes (`data.js`).

Layout: a deflate stream in base64 of a little-endian 32-bit length, that many bytes of JSON (dictionaries,
and a directory of the columns), then the columns. A column is unsigned, and written as its lowest bytes, then
its next bytes, and so on, because each of these planes compresses well alone.

Case ids are split at `;` and stored as numbers in a dictionary of their parts. Kinds of cases and states of
results have the numbers of `Tables`; times are numbers in a dictionary of milliseconds in two digits. Texts
are data in JSON in base64: none of them can become markup.
"""

from __future__ import annotations

import zlib
from array import array
from base64 import b64encode
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from harness.model.header import Header
from harness.model.result import Accuracy, Result, inexpressible
from harness.model.result_key import artifact_name
from harness.model.target_info import REPRODUCED
from harness.model.verdict import DEFECTS, NOT_EXECUTED, Outcome, Reading
from harness.render.documents import document
from harness.render.markup import host
from harness.render.tensors import read_tensors
from harness.render.text import line, message, visible, without_paths
from harness.results.known_deviations import in_words
from harness.results.level_table import MARKS, STATUS_WORDS, levels
from harness.results.numbering import Numbering
from harness.results.tables import Tables
from harness.results.tally import CaseKind, State

MESSAGE = 4000
DETAILS_BUDGET = 4 << 20
"""Characters of error messages and differences in a page; expected deviations may use half of it."""
TENSORS_BUDGET = 2 << 20
"""Characters of tensors in a page."""
TENSOR_CASES = 300
INEXPRESSIBLE = "does not apply"
"""Stands in place of a reading for a case that a target's API cannot express."""
_READINGS = (
    *(each.value for each in (*DEFECTS, Reading.NOT_SUPPORTED, Reading.NOT_JUDGED, Reading.CORRECT)),
    INEXPRESSIBLE,
)
"""What a result means to a reader, in the order of the page's table."""
COUNTED = f"!{INEXPRESSIBLE}"
"""The page's filter for what a cell counts."""
_LONGEST = 0xFFFFFFFF
_COLUMNS = ("length", "part", "kind", "case", "state", "place", "detail", "time", "expectation", "near")


class Payload:
    """Takes the results of a run as they stream by, after `Tables` has counted them."""

    def __init__(self, *, one_target: bool = False) -> None:
        """Take results of several targets, or of one alone: then no case comes twice, and none need be
        remembered."""
        self._cases: dict[str, int] | None = None if one_target else {}
        self._other_kinds: dict[tuple[str, int], int] = {}
        self._parts: Numbering[str] = Numbering()
        self._places: Numbering[tuple[str | None, str | None]] = Numbering()
        self._details: Numbering[Hashable] = Numbering({None: 0, "left out": 1})
        self._spent = 0
        self._wanted_kinds: Counter[tuple[str, ...]] = Counter()
        self._wanted: list[tuple[bool, int, int, str, str]] = []
        self._tensors: dict[str, Any] = {}
        self._columns = {name: array("I") for name in _COLUMNS}
        self._named: Numbering[int | None] = Numbering({None: 0})
        self._durations: Numbering[float] = Numbering({0.0: 0})
        self._nearnesses: Numbering[tuple[float, ...]] = Numbering({(): 0})
        self._before = -1

    def add(self, result: Result, kind: int, state: int, note: str = "") -> None:
        """Take one result with the numbers of its kind and state, as `Tables.add` returns them; `note` says
        more of what happened."""
        columns = self._columns
        case = None if self._cases is None else self._cases.get(result.case)
        again = case is not None and columns["kind"][case] != kind
        if again:  # on `directml` the level is that of the call
            case = self._other_kinds.get((result.case, kind))
        if case is None:
            case = len(columns["kind"])
            if again:
                self._other_kinds[result.case, kind] = case
            elif self._cases is not None:
                self._cases[result.case] = case
            parts = result.case.split(";")
            columns["length"].append(len(parts))
            columns["part"].extend(map(self._parts.__getitem__, parts))
            columns["kind"].append(kind)
        if result.outcome is not Outcome.PASS:
            self._want(result)
        columns["case"].append(case - self._before & _LONGEST)
        self._before = case
        columns["state"].append(state)
        placed = " ".join(filter(None, (result.placed_on, result.as_function))) or None
        columns["place"].append(self._places[result.stage, placed])
        columns["detail"].append(self._detail(result, note) if result.error or result.diff or note else 0)
        columns["near"].append(self._nearnesses[_nearness(result)])
        columns["expectation"].append(self.entry(result))
        columns["time"].append(self._durations[float(f"{result.seconds * 1000:.2g}")])

    def _want(self, result: Result) -> None:
        """Note a result whose tensors are worth showing: unexpected ones before known ones, and of each kind the
        first before the second."""
        if result.conforms or result.outcome in NOT_EXECUTED:
            return
        kind = (
            result.operator,
            result.target,
            result.outcome.value,
            result.error.class_ if result.error else "",
            result.verdict.value,
        )
        place = self._wanted_kinds[kind]
        self._wanted_kinds[kind] += 1
        if place < TENSOR_CASES:
            self._wanted.append((not result.fails, place, len(self), result.case, result.target))

    def _detail(self, result: Result, note: str) -> int:
        error, diff = result.error, result.diff
        words = () if error is None else _error(error.class_, error.message)
        numbers: tuple[Any, ...] = ()
        if diff is not None:
            at = None if diff.first_index is None else tuple(diff.first_index)
            numbers = (
                diff.max_ulp,
                diff.differing,
                diff.total,
                at,
                message(diff.expected, 400),
                message(diff.actual, 400),
            )
            if diff.bound is not UNSET or diff.output is not UNSET:
                numbers += tuple(None if each is UNSET else each for each in (diff.error, diff.bound))
            if diff.output is not UNSET:
                numbers += (diff.output,)
        if self._spent > (DETAILS_BUDGET if result.fails else DETAILS_BUDGET // 2):
            kept = (words[:1], ())  # the page filters by the error's class
            return self._details[(*kept, note) if note else kept] if words else self._details["left out"]
        known = len(self._details)
        number = self._details[(words, numbers, note) if note else (words, numbers)]
        if number == known:
            self._spent += sum(len(text) for text in (*words, *numbers, note) if isinstance(text, str)) + 40
        return number

    def add_tensors(self, folder: Path) -> None:
        """Take tensors kept of results that do not conform, as far as they fit; pass over absent and damaged
        files."""
        try:
            present = {entry.name for entry in folder.iterdir()}
        except OSError:
            return
        spent = 0
        for _, _, number, case, target in sorted(self._wanted):
            name = artifact_name(case, target)
            if name not in present:
                continue
            tensors = read_tensors(folder / name, case)
            if tensors is None:
                continue
            spent += len(msgspec.json.encode(tensors))
            if spent > TENSORS_BUDGET or len(self._tensors) >= TENSOR_CASES:
                return
            self._tensors[str(number)] = tensors

    def __len__(self) -> int:
        """Return how many results it holds."""
        return len(self._columns["case"])

    def entry(self, result: Result) -> int:
        """Return the number of the entry that a result names, 0 where it names none."""
        return self._named[result.expectation if isinstance(result.expectation, int) else None]

    def encode(self, tables: Tables, more: Mapping[str, Any] | None = None, **columns: Iterable[int]) -> str:
        """Return everything as base64 text; `tables` counted the same results or more, `more` and `columns` are
        additional data for the page."""
        operators = {name.partition(":")[0] for name in tables.header.origins}
        return self.encode_with(
            {
                **(more or {}),
                "targets": [visible(target) for target in tables.targets],
                "asked": [visible(whole) for whole in tables.names],
                "reproduced": [info.provider in REPRODUCED for info in tables.header.targets.values()],
                "levels": [visible(level) for level in levels(tables)],
                **kind_rows(tables.kinds),
                "states": [_state(state) for state in tables.states],
                "judgements": _READINGS,
                "marks": MARKS,
                "statuses": STATUS_WORDS,
                "expectations": self._expectations(tables.header),
                "origins": {
                    name: (
                        visible(each.source or ""),
                        visible(each.rule or ""),
                        visible(without_paths(each.spec or "")),
                        host(page) and page,
                    )
                    for name, each in tables.header.origins.items()
                    for page in [document(each.source or "", operators)]
                },
                "seed": tables.header.seed,
            },
            **columns,
        )

    def _expectations(self, header: Header) -> list[tuple[Any, ...]]:
        """Return, for each entry that a result names, its number and the fields that the page shows."""
        found = ((number, header.expectations[number]) for number in self._named if number is not None)
        return [
            (
                number,
                line(entry.name),
                in_words(entry.expect),
                line(entry.reason, 1000),
                line(entry.documents or "", 1000),
                line(entry.link, 1000),
                host(entry.link),
                entry.pending,
            )
            for number, entry in found
        ]

    def encode_with(self, legend: Mapping[str, Any], **more: Iterable[int]) -> str:
        """Return everything as base64 text; `legend` says what the numbers of kinds and states mean."""
        columns = {**{name: array("I", values) for name, values in more.items()}, **self._columns}
        if len(self._named) == 1 or "expectations" not in legend:
            del columns["expectation"]
        if len(self._nearnesses) == 1:
            del columns["near"]
        planes: list[bytes] = []
        directory = []
        for name, values in columns.items():
            width = max(1, (max(values, default=0).bit_length() + 7) // 8)
            directory.append((name, width, len(values)))
            raw = np.asarray(values).astype("<u4").tobytes()
            planes += [raw[place::4] for place in range(width)]
        dictionaries = {
            "columns": directory,
            **legend,
            "places": [(stage or "", visible(placed or "")) for stage, placed in self._places],
            "durations": list(self._durations),
            "nearnesses": list(self._nearnesses),
            "parts": list(self._parts),
            "details": list(self._details),
            "tensors": self._tensors,
        }
        text = msgspec.json.encode(dictionaries)
        stream = zlib.compressobj(
            9, wbits=-15
        )  # without a header: what DecompressionStream calls deflate-raw
        parts = (len(text).to_bytes(4, "little"), text, *planes)
        return b64encode(b"".join(map(stream.compress, parts)) + stream.flush()).decode()


def kind_rows(kinds: Iterable[CaseKind]) -> dict[str, Any]:
    """Write kinds of cases as the page reads them: words as numbers of a dictionary, opsets and ranks as they
    are."""
    words: Numbering[str] = Numbering()
    rows = []
    for facets, level, validity in kinds:
        operator, dtype, types, variant, allowed, named = (
            words[visible(word)]
            for word in (facets.operator, facets.dtype, facets.types, facets.variant, level, validity.value)
        )
        rows.append((operator, facets.opset, dtype, facets.rank, types, variant, allowed, named))
    return {"kinds": rows, "words": list(words)}


@lru_cache(maxsize=64)
def _error(class_: str, text: str) -> tuple[str, str]:
    return message(class_, 200), message(text, MESSAGE)


def meaning(result: Result) -> str:
    """Write the meaning of a result."""
    return INEXPRESSIBLE if inexpressible(result) else result.reading.value


def _state(state: State) -> tuple[Any, ...]:
    means = INEXPRESSIBLE if state.reading is None else state.reading.value
    red = "yes" if state.unexpected else "no"
    return visible(state.target), state.outcome.value, state.verdict.value, _READINGS.index(means), red


def _nearness(result: Result) -> tuple[float, ...]:
    """Return ratio and ULP in two digits, then how many elements nothing is claimed of and all of them where
    there are such."""
    near = result.accuracy
    if not isinstance(near, Accuracy):
        return ()
    measured = (float(f"{near.ratio:.2g}"), float(f"{near.ulp:.2g}"))
    return (*measured, near.unclaimed, near.compared) if near.unclaimed else measured
