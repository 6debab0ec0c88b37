"""An earlier run as the expectation: what each case did then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

from harness.records import Outcome, Validity, Verdict, conforms
from harness.runfile import RunReader

_OUTCOMES = tuple(Outcome)


class Baseline:
    """Outcomes of an earlier run by case and target, in a few bytes each."""

    def __init__(self, path: Path) -> None:
        self._outcomes: dict[bytes, int] = {}
        self._held: Counter[tuple[str, str]] = Counter()
        for result in RunReader(path):
            self._outcomes[_key(result.case, result.target)] = _OUTCOMES.index(result.outcome)
            self._held[result.target, result.operator] += 1

    def gone(self, case_ids: Iterable[str], operators: Iterable[str], targets: Sequence[str]) -> int:
        """Return how many results the earlier run has, for these operators on these targets, of cases that are none of these."""
        kept = sum(_key(case_id, target) in self._outcomes for case_id in case_ids for target in targets)
        return sum(self._held[target, operator] for operator in set(operators) for target in targets) - kept

    def verdict(self, case_id: str, target: str, validity: Validity, outcome: Outcome) -> Verdict:
        """Hold an outcome against the earlier run's; a case that ran then and cannot be asked now is missing."""
        position = self._outcomes.get(_key(case_id, target))
        if outcome is Outcome.NOT_RUN:
            ran = position is not None and _OUTCOMES[position] not in (Outcome.NOT_RUN, Outcome.UNAVAILABLE)
            return Verdict.MISSING if ran else Verdict.EXPECTED
        if position is None:
            return Verdict.NEW
        earlier = _OUTCOMES[position]
        if earlier is outcome:
            return Verdict.EXPECTED
        if validity is Validity.UNSPECIFIED:
            return Verdict.CHANGED
        if conforms(validity, outcome):
            return Verdict.IMPROVEMENT
        return Verdict.REGRESSION if conforms(validity, earlier) else Verdict.CHANGED


def _key(case_id: str, target: str) -> bytes:
    return blake2b(f"{case_id}|{target}".encode(), digest_size=10).digest()
