"""Limits of a known mismatch: of what kind its difference is, and how large it may be.

Without them an entry of `expect: mismatch` would cover any wrong value in the cases that it matches, also one
that another defect makes.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from pydantic import Field, model_validator

from harness.model.mismatch_kind import difference
from harness.model.result import Diff
from harness.specs.schema_types import Alternatives, Strict, refuse

LimitKind = Literal["dtype", "shape", "NaN", "infinity", "sign of zero", "sign", "value"]

_NUMBERS = {"ulp", "bound", "value", "element"}
"""Kinds of `mismatch_kind.difference` that are one here: by how far two numbers differ depends on the
processor's instructions, and `ulp` and `error` limit it."""


class DifferenceLimit(Strict):
    """What a known mismatch looks like; a condition that is absent holds for every difference.

    `kind` is that of the first wrong element: NaN or infinity on one side alone, another sign, of zero or
    not, else another value. `ulp` is the largest distance in units of the last place of the output's type,
    `error` the largest absolute error where the expected result has a bound.
    """

    kind: Alternatives[LimitKind] | None = None
    ulp: Annotated[int, Field(gt=0)] | None = None
    error: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> DifferenceLimit:
        if self.kind is None and self.ulp is None and self.error is None:
            raise refuse("limits nothing: give 'kind', 'ulp' or 'error'")
        return self

    def allows(self, diff: Diff) -> bool:
        """Say whether a measured difference is the known one."""
        kind = difference(diff)
        if self.kind is not None and ("value" if kind in _NUMBERS else kind) not in self.kind:
            return False
        if self.ulp is not None and (diff.max_ulp or 0) > self.ulp:
            return False
        largest = diff.largest_error
        return self.error is None or (
            largest is not None and (largest is msgspec.UNSET or largest <= self.error)
        )
