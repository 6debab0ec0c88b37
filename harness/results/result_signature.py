"""The signature that failing results share before any rule: outcome, stage, error class, how the output
differs, flaky or not."""

from __future__ import annotations

from typing import NamedTuple

from harness.model.case import Validity
from harness.model.result import Result
from harness.model.signature import NEAR_ULP, VALUES, recorded_signature
from harness.model.verdict import Outcome

_WORDS = {
    "dtype": "another dtype",
    "shape": "another shape",
    "ulp": f"up to {NEAR_ULP} ULP",
    "value": "another value",
    "element": "another element",
    "sign": "another sign",
    "any": "other values",
}


class ResultSignature(NamedTuple):
    """How results failed. `difference` is of a mismatch: a kind of `difference_kind`, or `any` for all that
    one defect can show."""

    validity: Validity
    outcome: Outcome
    stage: str
    error: str
    difference: str = ""
    flaky: bool = False

    @property
    def words(self) -> str:
        """The signature in a few words."""
        stage = f"at {self.stage}" if self.error and self.stage else ""
        parts = ["flaky" if self.flaky else "", self.outcome.value, self.error, stage, self.difference_words]
        return ", ".join(part for part in parts if part)

    @property
    def difference_words(self) -> str:
        """The kind of difference as people read it."""
        return _WORDS.get(self.difference, self.difference)

    @property
    def pooled(self) -> ResultSignature:
        """The signature without what one defect can show differently on different inputs."""
        return self._replace(difference="any") if self.difference in VALUES else self


def signature(result: Result) -> ResultSignature:
    """Return the signature of a result."""
    return ResultSignature(result.validity, *recorded_signature(result), result.flaky)
