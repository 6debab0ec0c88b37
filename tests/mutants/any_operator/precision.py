"""Kernels that compute with fewer digits than their element type has: right but for their precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.dtypes import Array
from harness.model.expected import nearest
from harness.operators import OPERATORS
from tests.mutants.any_operator import Sample

DIGITS = {"bfloat16": 8, "float16": 11, "TF32": 11, "float32": 24, "float64": 53}
"""Bits of the significand, the leading one included (IEEE 754; TF32: NVIDIA A100 whitepaper)."""


@np.errstate(all="ignore")
def _rounded(array: Array, digits: int) -> Array:
    """Round to the nearest number of so many binary digits; the range of exponents stays."""
    mantissa, exponent = np.frexp(array)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, digits)), exponent - digits), array.dtype)


@dataclass(frozen=True)
class Imprecise:
    """A kernel of `dtype` whose inputs or outputs are rounded to the digits of another format."""

    dtype: str
    digits: int
    of: str

    @property
    def name(self) -> str:
        return f"{self.dtype} with {self.of} of {self.digits} digits"

    def concerns(self, sample: Sample) -> bool:
        if self.of == "outputs":
            return self.dtype in sample.call.outputs
        return any(spec.dtype == self.dtype for spec in sample.case.inputs)

    def shows(self, sample: Sample) -> bool:
        if self.of == "outputs":
            return any(
                compare(wanted, Tensor(right.dtype, _rounded(right.array, self.digits)))[0] is not None
                for wanted in sample.expected
                if (right := nearest(wanted)).dtype == self.dtype
            )
        with np.errstate(all="ignore"):
            inputs = {
                name: Tensor(each.dtype, _rounded(each.array, self.digits))
                if each.dtype == self.dtype
                else each
                for name, each in sample.inputs.items()
            }
            found = OPERATORS[sample.case.operator].oracle(sample.call, inputs, "opencl")
        return any(
            compare(wanted, nearest(other))[0] is not None
            for wanted, other in zip(sample.expected, found, strict=True)
        )


def imprecise(cases: Sequence[Sample]) -> list[Imprecise]:
    """Return the kernels of lower precision whose element types an operator's cases have."""
    found = [
        Imprecise("float32", DIGITS["bfloat16"], "inputs"),
        Imprecise("float32", DIGITS["TF32"], "inputs"),
        Imprecise("float64", DIGITS["float32"], "inputs"),
        Imprecise("float32", DIGITS["TF32"], "outputs"),
        Imprecise("float64", DIGITS["float32"], "outputs"),
    ]
    return [each for each in found if any(each.concerns(sample) for sample in cases)]
