"""The single results of a run as compact columns, which the page's module decodes (`report.js`).

Layout: a deflate stream in base64 of a little-endian 32-bit length, that many bytes of JSON (dictionaries, and a directory of the columns),
then the columns. A column is unsigned, and written as its lowest bytes, then its next bytes, and so on, because each of these planes
compresses well alone.

Case ids are split at `;` and told as numbers of a dictionary of their parts; everything else that repeats has a dictionary too. Texts are
data in JSON in base64: nothing of them can become markup.
"""

from __future__ import annotations

from array import array
from base64 import b64encode
from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import msgspec

from harness.facets import facets
from harness.published import level_order
from harness.records import BEYOND, Header, Outcome, Result, Validity, Verdict, conforms
from harness.render.deflate import deflate
from harness.render.tensors import artifact_name, read_tensors
from harness.render.text import message, visible
from harness.tables import NOT_EXECUTED, fails

MESSAGE = 4000
DETAILS_BUDGET = 4 << 20
"""Characters of error messages and differences in a page; expected deviations may use half of it."""
TENSORS_BUDGET = 2 << 20
"""Characters of tensors in a page."""
TENSOR_CASES = 300
_STAGES = ("", "load", "run", "compare")
_OUTCOMES = {outcome: number for number, outcome in enumerate(Outcome)}
_VERDICTS = {verdict: number for number, verdict in enumerate(Verdict)}
_VALIDITIES = {validity: number for number, validity in enumerate(Validity)}
_LEFT_OUT = 1
JUDGED = ("failing", "improvement", "known deviation", "not run", "conforms")
"""What a result means to a reader, in the order of the page's table."""
_FAILING, _IMPROVEMENT, _KNOWN, _NOT_RUN, _CONFORMS = range(5)


class Dictionary:
    """Numbers distinct values in the order in which they come."""

    def __init__(self, *values: Hashable) -> None:
        self._numbers: dict[Hashable, int] = {}
        for value in values:
            self.number(value)

    def number(self, value: Hashable) -> int:
        """Return the value's number."""
        return self._numbers.setdefault(value, len(self._numbers))

    def values(self) -> list[Any]:
        """Return the values by number."""
        return list(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class Payload:
    """Takes the results of a run as they stream by."""

    def __init__(self, header: Header) -> None:
        self._targets = Dictionary(*header.targets)
        self._cases: dict[str, int] = {}
        self._parts = Dictionary()
        self._facets = Dictionary()
        self._levels = Dictionary(*level_order())
        self._placed = Dictionary("")
        self._details = Dictionary(None, "left out")
        self._spent = 0
        self._case_columns = {name: array("I") for name in ("length", "part", "facet", "level", "validity")}
        self._columns = {
            name: array("I") for name in ("case", "target", "judged", "outcome", "verdict", "stage", "placement", "detail", "micros")
        }
        self._before = -1
        self._kinds: Counter[tuple[str, ...]] = Counter()
        self._wanted: list[tuple[int, int, int, str, str]] = []
        self._tensors: dict[str, Any] = {}

    def add(self, result: Result) -> None:
        """Take one result."""
        case = self._cases.get(result.case)
        if case is None:
            case = self._new_case(result)
        columns = self._columns
        judged = _judged(result)
        if judged in (_FAILING, _KNOWN):
            self._want(result, judged, len(columns["case"]))
        columns["judged"].append(judged)
        columns["case"].append((case - self._before) & 0xFFFFFFFF)
        self._before = case
        columns["target"].append(self._targets.number(result.target))
        columns["outcome"].append(_OUTCOMES[result.outcome])
        columns["verdict"].append(_VERDICTS[result.verdict])
        columns["stage"].append(_STAGES.index(result.stage or ""))
        columns["placement"].append(self._placed.number(result.placed_on or ""))
        columns["detail"].append(self._detail(result, failing=judged == _FAILING))
        columns["micros"].append(min(round(result.seconds * 1_000_000), 0xFFFFFFFF))

    def _want(self, result: Result, judged: int, number: int) -> None:
        """Note a result whose tensors are worth showing: failing ones before known ones, and of each kind the first before the second."""
        kind = (result.operator, result.target, result.outcome.value, result.error.class_ if result.error else "", result.verdict.value)
        place = self._kinds[kind]
        self._kinds[kind] += 1
        if place < TENSOR_CASES:
            self._wanted.append((judged, place, number, result.case, result.target))

    def _new_case(self, result: Result) -> int:
        number = self._cases[result.case] = len(self._cases)
        parts = result.case.split(";")
        columns = self._case_columns
        columns["length"].append(len(parts))
        columns["part"].extend(map(self._parts.number, parts))
        columns["facet"].append(self._facets.number(facets(result.case)))
        columns["level"].append(self._levels.number(result.levels.get("directml", BEYOND)))
        columns["validity"].append(_VALIDITIES[result.validity])
        return number

    def _detail(self, result: Result, *, failing: bool) -> int:
        if result.error is None and result.diff is None:
            return 0
        error, diff = result.error, result.diff
        words: tuple[Any, ...] = ()
        if error is not None:
            words = (message(error.class_, 200), message(error.message, MESSAGE))
        numbers: tuple[Any, ...] = ()
        if diff is not None:
            at = None if diff.first_index is None else tuple(diff.first_index)
            numbers = (diff.max_ulp, diff.differing, diff.total, at, message(diff.expected, 400), message(diff.actual, 400))
        if self._spent > (DETAILS_BUDGET if failing else DETAILS_BUDGET // 2):
            return _LEFT_OUT
        known = len(self._details)
        number = self._details.number((words, numbers))
        if number == known:
            self._spent += sum(len(text) for text in (*words, *numbers) if isinstance(text, str)) + 40
        return number

    def add_tensors(self, folder: Path) -> None:
        """Take tensors kept of results that do not conform, as far as they fit; pass over absent and damaged files."""
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

    def encode(self) -> str:
        """Return everything as base64 text."""
        columns = {**{f"case_{name}": values for name, values in self._case_columns.items()}, **self._columns}
        planes: list[bytes] = []
        directory = []
        for name, values in columns.items():
            width = _width(max(values, default=0))
            directory.append((name, width, len(values)))
            raw = values.tobytes() if array("I", [1]).tobytes()[0] == 1 else _swapped(values)
            planes += [raw[place :: values.itemsize] for place in range(width)]
        dictionaries = {
            "targets": [visible(target) for target in self._targets.values()],
            "outcomes": [outcome.value for outcome in Outcome],
            "verdicts": [verdict.value for verdict in Verdict],
            "validities": [validity.value for validity in Validity],
            "judgements": JUDGED,
            "stages": _STAGES,
            "levels": self._levels.values(),
            "placed": [visible(place) for place in self._placed.values()],
            "parts": self._parts.values(),
            "facets": self._facets.values(),
            "details": self._details.values(),
            "tensors": self._tensors,
            "columns": directory,
        }
        text = msgspec.json.encode(dictionaries)
        return b64encode(deflate([len(text).to_bytes(4, "little") + text, *planes])).decode()


def _judged(result: Result) -> int:
    if fails(result.validity, result.outcome, result.verdict):
        return _FAILING
    if result.outcome in NOT_EXECUTED:
        return _NOT_RUN
    if result.verdict is Verdict.IMPROVEMENT:
        return _IMPROVEMENT
    return _CONFORMS if conforms(result.validity, result.outcome) else _KNOWN


def _width(largest: int) -> int:
    return max(1, (largest.bit_length() + 7) // 8)


def _swapped(values: array[int]) -> bytes:
    copy = array("I", values)
    copy.byteswap()
    return copy.tobytes()
