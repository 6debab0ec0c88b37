"""Judges against an earlier run: the outcome of each case there is the expectation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness.model.case import Validity
from harness.model.errors import UsageError
from harness.model.header import Against
from harness.model.result_key import result_key
from harness.model.verdict import (
    NOT_EXECUTED,
    Outcome,
    Verdict,
    conforms,
)
from harness.results.runfile import RunReader

_OUTCOMES = tuple(Outcome)


class Baseline:
    """Outcomes of an earlier run by case and target, in a few bytes each.

    Targets are paired by name; the only one of the earlier run with the only one of the present, whatever
    they are called.
    """

    def __init__(self, path: Path, targets: Sequence[str]) -> None:
        """Read the run that `targets` are judged against. Errors: UsageError for a damaged run, or one that
        has none of the targets."""
        reader = RunReader(path)
        self._header = reader.header
        there = tuple(reader.header.targets)
        alone = len(there) == len(targets) == 1
        self._pairs = (
            {targets[0]: there[0]} if alone else {target: target for target in targets if target in there}
        )
        if not self._pairs:
            names = f"it has {', '.join(there)}, this run {', '.join(targets)}"
            raise UsageError(
                f"{path}: no target in common: {names}; runs of a single target each are held against each other by whatever name"
            )
        self._outcomes: dict[bytes, int] = {}
        self._held: Counter[tuple[str, str]] = Counter()
        for result in reader:
            self._outcomes[result_key(result.case, result.target)] = _OUTCOMES.index(result.outcome)
            self._held[result.target, result.operator] += 1

    def gone(self, case_ids: Iterable[str], operators: Iterable[str], targets: Sequence[str]) -> int:
        """Return how many results the earlier run has, for these operators on these targets, of cases that
        are none of these."""
        then = [self._pairs[target] for target in targets if target in self._pairs]
        kept = sum(result_key(case_id, target) in self._outcomes for case_id in case_ids for target in then)
        return sum(self._held[target, operator] for operator in set(operators) for target in then) - kept

    def against(self, hashes: Mapping[str, str], seed: int) -> Against:
        """Say for the header what the earlier run is, and what differs in it."""
        differing = [
            name for name in ("specs", "oracle") if self._header.hashes.get(name) != hashes.get(name)
        ]
        return Against(
            self._header.run_id, self._pairs, (*differing, *(["seed"] if self._header.seed != seed else []))
        )

    def verdict(self, case_id: str, target: str, validity: Validity, outcome: Outcome) -> Verdict:
        """Hold an outcome against the earlier run's; a case that ran then and cannot be asked now is
        missing."""
        position = self._outcomes.get(result_key(case_id, self._pairs.get(target, "")))
        if outcome is Outcome.NOT_RUN:
            ran = position is not None and _OUTCOMES[position] not in NOT_EXECUTED
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
