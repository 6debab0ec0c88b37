"""Groups known results by the reviewed entry that explains them, for the section of known defects in every
report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.model.caseid import elements, operator_of
from harness.model.header import Expectation
from harness.model.reference.feature_levels import level_key
from harness.model.verdict import DEFECTS, Reading, Verdict
from harness.results.tally import State

PENDING = (
    "Nobody has looked yet at why these cases deviate, so nothing is said of who is right. "
    "Whatever they do is recorded and fails no run."
)


class DeviationKey(NamedTuple):
    """The counted facts of a result that names an entry."""

    number: int
    level: str
    state: State


class DeviationRow(NamedTuple):
    """An entry: the number of results that agree with it, by reading, target and feature level, and the
    number of unexpected results that contradict it."""

    number: int
    entry: Expectation
    results: int
    by_reading: dict[Reading, int]
    by_target: dict[str, int]
    by_level: dict[str, int]
    contradicting: int

    @property
    def expects(self) -> str:
        """The outcomes that the entry allows, as words."""
        return in_words(outcome.value for outcome in self.entry.expect)


def in_words(outcomes: Iterable[str]) -> str:
    """Write the outcomes that an entry allows: `rejected, unsupported or not_placed`, and `any` for none in
    particular."""
    *most, last = [*outcomes] or ["any"]
    return f"{', '.join(most)} or {last}" if most else last


def numbers(counts: Mapping[str, int]) -> str:
    """Write counts by name: `cpu 12, dml 1,234`."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


@dataclass
class KnownDefect:
    """The results with one reading that an entry explains: how many by operator and by target, and the case with the
    fewest elements, on its target."""

    number: int
    entry: Expectation
    reading: Reading
    operators: Counter[str] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)
    smallest: tuple[int, str, str] | None = None

    @property
    def results(self) -> int:
        return self.operators.total()


class Deviations:
    """Counts results by the entry that they name. Feed it with `add`, then ask."""

    def __init__(self, entries: Mapping[int, Expectation], targets: Sequence[str]) -> None:
        """`entries` are those of the header, `targets` names the counted targets, in the order of reading."""
        self.entries = entries
        self._targets = targets
        self._counts: Counter[DeviationKey] = Counter()
        self._defects: dict[tuple[int, Reading], KnownDefect] = {}

    def add(self, number: int, state: State, level: str, case: str, results: int = 1) -> None:
        """Count one result that names entry `number`, or several that are counted alike."""
        self._counts[DeviationKey(number, level, state)] += results
        if state.reading in DEFECTS and state.verdict is Verdict.EXPECTED:
            found = self._defects.get((number, state.reading))
            if found is None:
                found = self._defects[number, state.reading] = KnownDefect(
                    number, self.entries[number], state.reading
                )
            found.operators[operator_of(case)] += results
            found.targets[state.target] += results
            found.smallest = min(filter(None, (found.smallest, (elements(case), case, state.target))))

    def defects(self) -> list[KnownDefect]:
        """Return wrong, crashed and accepted results by entry, in the order of the readings, then the most
        frequent first."""
        return sorted(
            self._defects.values(),
            key=lambda found: (DEFECTS.index(found.reading), -found.results, found.number),
        )

    def by_reading(self, reading: Reading) -> list[tuple[Expectation, int]]:
        """Return the entries by which results with a reading are known, and how many: the most frequent
        first."""
        found: Counter[int] = Counter()
        for key, count in self._counts.items():
            if key.state.reading is reading and key.state.verdict is Verdict.EXPECTED:
                found[key.number] += count
        return [
            (self.entries[number], count)
            for number, count in sorted(found.items(), key=lambda item: (-item[1], item[0]))
        ]

    def remarks(self, known: int) -> list[str]:
        """Say why the results of all rows together are not the `known` ones of the run that do not do what
        ONNX defines; nothing where they are these."""
        named = sum(row.results for pending in (False, True) for row in self.rows(pending=pending))
        judged = sum(
            count for reading in (*DEFECTS, Reading.NOT_SUPPORTED) for _, count in self.by_reading(reading)
        )
        said = []
        if others := named - judged:
            said.append(f"{others:,} of the results are correct or not judged, as unspecified cases are.")
        if without := known - judged:
            said.append(
                f"{without:,} more known results have no entry in the run file: an earlier run is what they are judged against, or an "
                "older harness judged them."
            )
        return said

    def rows(self, *, pending: bool) -> list[DeviationRow]:
        """Return the entries that results name, the pending ones or the others: those of defects first, then the
        most frequent."""
        found: dict[int, tuple[Counter[Reading], Counter[str], Counter[str], Counter[bool]]] = {}
        for key, count in self._counts.items():
            by_reading, by_target, by_level, total = found.setdefault(
                key.number, (Counter(), Counter(), Counter(), Counter())
            )
            if key.state.verdict is Verdict.EXPECTED and key.state.reading is not None:
                total[False] += count
                by_reading[key.state.reading] += count
                by_target[key.state.target] += count
                by_level[key.level] += count
            elif key.state.unexpected:
                total[True] += count
        rows = [
            DeviationRow(
                number,
                self.entries[number],
                total[False],
                {reading: by_reading[reading] for reading in Reading if by_reading[reading]},
                {target: by_target[target] for target in self._targets if by_target[target]},
                dict(sorted(by_level.items(), key=lambda item: level_key(item[0]))),
                total[True],
            )
            for number, (by_reading, by_target, by_level, total) in found.items()
            if self.entries[number].pending is pending
        ]
        return sorted(rows, key=_order)


def _order(row: DeviationRow) -> tuple[bool, int, int]:
    return row.by_reading.keys().isdisjoint(DEFECTS), -row.results, row.number
