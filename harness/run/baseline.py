"""Judges against an earlier run: the outcome of each case there is the expectation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import UNSET, UnsetType

from harness.model.case import Validity
from harness.model.errors import UsageError
from harness.model.header import Against, Header, differing_inputs
from harness.model.result import Memory
from harness.model.result_key import result_key
from harness.model.verdict import NOT_EXECUTED, Outcome, Verdict, conforms
from harness.results.runfile import RunReader

_OUTCOMES = tuple(Outcome)
_WITH_OUTPUTS = frozenset({Outcome.MISMATCH, Outcome.ACCEPTED_INVALID})
"""Outcomes whose outputs are the tested provider's."""


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
        self._outputs: dict[bytes, bytes] = {}
        """Hashes of outputs that are not the oracle's, where memory does not decide them."""
        self._outside: set[bytes] = set()
        self._held: Counter[tuple[str, str]] = Counter()
        for result in reader:
            key = result_key(result.case, result.target)
            self._outcomes[key] = _OUTCOMES.index(result.outcome)
            memory = result.memory
            outside = isinstance(memory, Memory) and memory.outside > 0
            decided = outside or (isinstance(memory, Memory) and bool(memory.unwritten or memory.unstable))
            if isinstance(result.output, str) and not decided and result.outcome in _WITH_OUTPUTS:
                self._outputs[key] = bytes.fromhex(result.output)
            if outside:
                self._outside.add(key)
            self._held[result.target, result.operator] += 1

    def gone(self, case_ids: Iterable[str], operators: Iterable[str], targets: Sequence[str]) -> int:
        """Return how many results the earlier run has, for these operators on these targets, of cases that
        are none of these."""
        then = [self._pairs[target] for target in targets if target in self._pairs]
        kept = sum(result_key(case_id, target) in self._outcomes for case_id in case_ids for target in then)
        return sum(self._held[target, operator] for operator in set(operators) for target in then) - kept

    def against(self, header: Header) -> Against:
        """Say for the header of a run what the earlier run is, and what differs in it."""
        return Against(self._header.run_id, self._pairs, differing_inputs(self._header, header))

    @property
    def seed(self) -> int:
        """The seed of the earlier run."""
        return self._header.seed

    def read_outside(self, case_id: str, target: str) -> bool:
        """Say whether the earlier run's outputs hold memory from outside of the inputs too."""
        return result_key(case_id, self._pairs.get(target, "")) in self._outside

    def verdict(
        self, case_id: str, target: str, validity: Validity, outcome: Outcome, output: str | UnsetType = UNSET
    ) -> Verdict:
        """Hold an outcome against the earlier run's; a case that ran then and cannot be asked now is
        missing.

        `output` is the hash of outputs that are not the oracle's, given where the inputs are those of the earlier run:
        other wrong outputs are a change.
        """
        key = result_key(case_id, self._pairs.get(target, ""))
        position = self._outcomes.get(key)
        if outcome is Outcome.NOT_RUN:
            ran = position is not None and _OUTCOMES[position] not in NOT_EXECUTED
            return Verdict.MISSING if ran else Verdict.EXPECTED
        if position is None:
            return Verdict.NEW
        earlier = _OUTCOMES[position]
        if earlier is outcome:
            then = self._outputs.get(key)
            same = then is None or output is UNSET or then.hex() == output
            return Verdict.EXPECTED if same else Verdict.CHANGED
        if validity is Validity.UNSPECIFIED:
            return Verdict.CHANGED
        if conforms(validity, outcome):
            return Verdict.IMPROVEMENT
        return Verdict.REGRESSION if conforms(validity, earlier) else Verdict.CHANGED
