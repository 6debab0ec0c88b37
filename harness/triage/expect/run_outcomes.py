"""What became of cases in a run, on the targets that an entry speaks of."""

from __future__ import annotations

from harness.model.case import Validity
from harness.model.verdict import NOT_EXECUTED, Outcome
from harness.results.runfile import RunReader
from harness.specs.expectations.located import Located


class RunOutcomes:
    """The outcomes of a run by target; what did not run or has no defined result is not known."""

    def __init__(self, reader: RunReader) -> None:
        self._targets = reader.header.targets
        self._by_target: dict[str, dict[str, Outcome]] = {name: {} for name in self._targets}
        for result in reader:
            if result.validity is not Validity.UNSPECIFIED and result.outcome not in NOT_EXECUTED:
                self._by_target[result.target][result.case] = result.outcome

    def otherwise(self, located: Located, case_id: str) -> bool | None:
        """Say whether a case does other than the entry expects, on a target of the entry; None if none ran
        it."""
        known = [
            self._by_target[name][case_id] is not located.entry.expect
            for name, info in self._targets.items()
            if located.entry.when.holds(name, info) and case_id in self._by_target[name]
        ]
        return any(known) if known else None
