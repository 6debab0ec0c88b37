"""The signature of what a target did with a case: what two results must share to count as the same, for compare,
explain, bisect, reduce and repro alike, and nothing that changes with a release's wording."""

from __future__ import annotations

from typing import NamedTuple

from harness.model.mismatch_kind import VALUES, difference
from harness.model.result import Diff, Error, Result
from harness.model.verdict import Outcome

_ERROR = 200


class Signature(NamedTuple):
    """What was done: `stage` is load, run or compare, `error` the class of the error, `difference` the kind of the
    first wrong element of a mismatch; each empty where there is none."""

    outcome: Outcome
    stage: str = ""
    error: str = ""
    difference: str = ""

    @property
    def pooled(self) -> Signature:
        """The signature without what one defect can show differently on different inputs."""
        return self._replace(difference="any") if self.difference in VALUES else self

    def __str__(self) -> str:
        """Write it for people: `mismatch (sign of zero)`, `crash at load (SIGFPE)`."""
        detail = self.difference or self.error
        at = f" at {self.stage}" if self.error and self.stage else ""
        return f"{self.outcome.value}{at}" + (f" ({detail})" if detail else "")


def signature_of(outcome: Outcome, stage: str | None, error: Error | None, diff: Diff | None) -> Signature:
    """Return the signature of an outcome; the class of an error is cut off after 200 characters."""
    return Signature(
        outcome,
        stage or "",
        error.class_[:_ERROR] if error is not None else "",
        difference(diff) if diff is not None else "",
    )


def recorded_signature(result: Result) -> Signature:
    """Return the signature of a result of a run file."""
    return signature_of(result.outcome, result.stage, result.error, result.diff)
