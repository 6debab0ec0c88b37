"""What literal cases and sweeps of a spec file share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from harness.model.case import Validity
from harness.specs.reading.schema_types import Name, Opsets, Strict, Text, refuse

TensorName = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$")]
LayoutName = Literal[
    "packed", "explicit", "padded", "stepped", "transposed", "broadcast", "broadcast_last", "zero"
]
DimensionCount = Annotated[int, Field(ge=1, le=9)]


class SpecEntry(Strict):
    """What literal cases and sweeps share."""

    name: Name
    source: Text | None = None
    opsets: Opsets | None = None
    validity: Annotated[Validity, Field(strict=False)] = Validity.VALID
    rule: Text | None = None

    @model_validator(mode="after")
    def _rule_given(self) -> SpecEntry:
        if self.validity is Validity.VALID and self.rule is not None:
            raise refuse("'rule' says why a case is not valid, but its validity is 'valid'")
        if self.validity is not Validity.VALID and self.rule is None:
            broken = (
                "which rule of the operator it breaks"
                if self.validity is Validity.INVALID
                else "what the sources leave open"
            )
            raise refuse(f"an {self.validity.value} case needs a 'rule': {broken}")
        return self
