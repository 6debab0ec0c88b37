"""The signature of a failure beyond its outcome: enough to decide whether two cases fail alike, and nothing
that changes with a release's wording."""

from __future__ import annotations

from typing import NamedTuple

from harness.model.mismatch_kind import difference
from harness.model.records import Outcome, Stage
from harness.run.judge import Judgement
from harness.targets.execution import Execution


class Signature(NamedTuple):
    """How a case fails; `error` is the class of the error, `difference` the kind of the first wrong element
    of a mismatch."""

    outcome: Outcome
    stage: Stage
    error: str | None
    difference: str | None

    def __str__(self) -> str:
        """Write it for people: `mismatch (sign of zero)`, `crash at load (SIGFPE)`."""
        detail = self.difference or self.error
        at = f" at {self.stage}" if self.error else ""
        return f"{self.outcome.value}{at}" + (f" ({detail})" if detail else "")


def signature(judgement: Judgement, execution: Execution) -> Signature:
    """Return the signature of what a target did with a case."""
    return Signature(
        judgement.outcome,
        execution.stage,
        judgement.error.class_ if judgement.error else None,
        difference(judgement.diff) if judgement.diff else None,
    )
