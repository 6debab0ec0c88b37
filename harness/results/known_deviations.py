"""Groups known deviations by the reviewed entry that explains them, for the section of the same name in every
report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.model.case import Validity
from harness.model.header import Expectation
from harness.model.reference.feature_levels import level_key
from harness.model.result import Result
from harness.model.verdict import Verdict

PENDING = (
    "Nobody has looked yet at why these cases deviate, so nothing is said of who is right. "
    "Whatever they do is recorded and fails no run."
)


class DeviationKey(NamedTuple):
    """What is counted of a result that names an entry; `contradicts` says that it does otherwise by now."""

    number: int
    target: str
    level: str
    validity: Validity
    contradicts: bool


class DeviationRow(NamedTuple):
    """An entry: how many results do what it expects, by target and by feature level, and how many contradict
    it."""

    number: int
    entry: Expectation
    results: int
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


class Deviations:
    """Counts results by the entry that they name. Feed it with `add`, then ask."""

    def __init__(self, entries: Mapping[int, Expectation], targets: Sequence[str]) -> None:
        """`entries` are the header's, `targets` name what is counted, in the order of reading."""
        self.entries = entries
        self._targets = targets
        self._counts: Counter[DeviationKey] = Counter()

    def add(self, number: int, result: Result, level: str) -> None:
        """Count one result that names entry `number`."""
        contradicts = result.verdict is not Verdict.EXPECTED
        self._counts[DeviationKey(number, result.target, level, result.validity, contradicts)] += 1

    def remarks(self, known: int) -> list[str]:
        """Say why the results of all rows together are not the `known` deviations of the run; nothing where
        they are these."""
        as_expected = [
            (key.validity is Validity.UNSPECIFIED, count)
            for key, count in self._counts.items()
            if not key.contradicts
        ]
        unspecified = sum(count for is_unspecified, count in as_expected if is_unspecified)
        without = known + unspecified - sum(count for _, count in as_expected)
        said = []
        if unspecified:
            said.append(
                f"{unspecified:,} of the results are of unspecified cases, which no total counts as deviations."
            )
        if without:
            said.append(
                f"{without:,} more known deviations have no entry in the run file: an earlier run is what they are judged against, or an "
                "older harness judged them."
            )
        return said

    def rows(self, *, pending: bool) -> list[DeviationRow]:
        """Return the entries that results name, the pending ones or the others, the most frequent first."""
        found: dict[int, tuple[Counter[str], Counter[str], Counter[bool]]] = {}
        for key, count in self._counts.items():
            by_target, by_level, total = found.setdefault(key.number, (Counter(), Counter(), Counter()))
            total[key.contradicts] += count
            if not key.contradicts:
                by_target[key.target] += count
                by_level[key.level] += count
        rows = [
            DeviationRow(
                number,
                self.entries[number],
                total[False],
                {target: by_target[target] for target in self._targets if by_target[target]},
                dict(sorted(by_level.items(), key=lambda item: level_key(item[0]))),
                total[True],
            )
            for number, (by_target, by_level, total) in found.items()
            if self.entries[number].pending is pending
        ]
        return sorted(rows, key=lambda row: (-row.results, row.number))
