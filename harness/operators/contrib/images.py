"""Operators on images: GridSample."""

from __future__ import annotations

from typing import ClassVar

from harness.operators.base import Call, Operator
from harness.operators.image.grid_sampling import GridSampling, grid_sample


class _Sampling(GridSampling):
    """As `GridSampling` of version 16, with places named Grid."""

    own: ClassVar = {"Grid": GridSampling.own["grid"]}
    relations: ClassVar = {"Grid": GridSampling.relations["grid"]}

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """Return the type of X."""
        return (call.first.dtype,)


OPERATORS = (Operator("com.microsoft.GridSample", _Sampling(), grid_sample),)
