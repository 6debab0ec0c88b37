"""Limits of a known mismatch: which elements may be wrong, what they may hold, and by how much they may differ.

Shape, element type and number of outputs are those expected: a deviation in one of these needs a formula
(`gives`). Without limits an entry would cover any wrong value in the cases that it matches, also one that
another defect makes.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, WithJsonSchema, model_validator

from harness.model.wrong_elements import WrongElements
from harness.specs.reading.schema_types import Alternatives, Strict, refuse

LimitKind = Literal["NaN", "infinity", "sign of zero", "sign", "value"]
Held = Annotated[float | int | bool | str, WithJsonSchema({"type": ["number", "boolean", "string"]})]
"""A number, a text, or one of the words `NaN`, `inf`, `-inf`, `lowest`, `largest`, `subnormal`."""


class DifferenceLimit(Strict):
    """What each wrong element of a known mismatch is; every key that is given has to hold for it.

    `kind` compares it with the expected element: NaN or infinite on one side alone, a zero of the other sign,
    a number of the other sign, or another value. `expected` and `actual` list what the two may be. `ulp` is the
    largest distance in units of the last place of the output's type, `error` the largest absolute error,
    `bounds` the largest error as a multiple of the element's bound. A limit that cannot be measured, as the error
    of a NaN, is not met.
    """

    kind: Alternatives[LimitKind] | None = None
    expected: Alternatives[Held] | None = None
    actual: Alternatives[Held] | None = None
    ulp: Annotated[int, Field(gt=0)] | None = None
    error: Annotated[float, Field(gt=0)] | None = None
    bounds: Annotated[float, Field(gt=1)] | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> DifferenceLimit:
        if not self.model_fields_set:
            raise refuse("limits nothing: give 'kind', 'expected', 'actual', 'ulp', 'error' or 'bounds'")
        return self

    def met(self, wrong: WrongElements) -> NDArray[np.bool_]:
        """Say for each wrong element whether it keeps to the limit, shape (elements,)."""
        found = np.ones(len(wrong), np.bool_)
        if self.kind is not None:
            found &= np.isin(wrong.kinds, self.kind)
        for held, elements in ((self.expected, wrong.expected), (self.actual, wrong.actual)):
            if held is not None:
                found &= np.logical_or.reduce([wrong.holds(each, elements) for each in held])
        for most, distances in (
            (self.ulp, wrong.ulps),
            (self.error, wrong.errors),
            (self.bounds, wrong.bounds),
        ):
            if most is not None:
                found &= distances <= most  # NaN where it cannot be measured
        return found
