"""Expected outputs of a case: exactly one tensor, one of a few by element, a value with a bound on the error, or
elements that are drawn.

An operator's formula gives one of these for each output, and `diff.compare` judges accordingly; no tolerance
is chosen anywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from harness.model.case import Tensor
from harness.model.float_formats import FORMATS, Float64, encode


class Exact(msgspec.Struct, frozen=True, eq=False):
    """The result is defined to the bit (NaN equals any NaN)."""

    tensor: Tensor

    @property
    def dtype(self) -> str:
        return self.tensor.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.array.shape


class OneOf(msgspec.Struct, frozen=True, eq=False):
    """Each element equals, to the bit, the element at its place of one of the candidates; they share dtype
    and shape."""

    candidates: tuple[Tensor, ...]

    def __post_init__(self) -> None:
        kinds = {(tensor.dtype, tensor.array.shape) for tensor in self.candidates}
        if len(kinds) != 1:
            raise ValueError(f"candidates need one dtype and shape, not {sorted(map(str, kinds))}")

    @property
    def dtype(self) -> str:
        return self.candidates[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.candidates[0].array.shape


class Approx(msgspec.Struct, frozen=True, eq=False):
    """|actual - value| <= bound for each element; an infinite bound claims nothing for its element.

    `value` and `bound` are float64 of the output's shape. A NaN or an infinity with a finite bound is
    required. Where |value| + bound reaches the magnitude from which `dtype` rounds to infinity, that infinity
    is admissible too. The sign of zero is not judged. `limits` are the least and the greatest element that the
    function has, numbers or arrays of that shape: an element beyond them is wrong however near its value is.
    """

    dtype: str
    value: Float64
    bound: Float64
    limits: tuple[Float64 | float, Float64 | float] | None = None

    def __post_init__(self) -> None:
        if self.dtype not in FORMATS:
            raise ValueError(f"{self.dtype} is not a floating-point type")
        for name, array in (("value", self.value), ("bound", self.bound)):
            if not isinstance(array, np.ndarray) or array.dtype != np.float64:
                raise ValueError(f"the {name} is not a float64 array")
        if self.value.shape != self.bound.shape:
            raise ValueError(f"the bound has shape {self.bound.shape}, the value {self.value.shape}")
        if not np.all(self.bound >= 0):
            raise ValueError("a bound is negative or NaN")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def claims(self) -> bool:
        """Say whether anything is claimed of any element; a tensor without elements has nothing left to claim
        and counts as claimed."""
        return not self.bound.size or bool(np.isfinite(self.bound).any())


class OfLaw(msgspec.Struct, frozen=True, eq=False):
    """The elements are random; `judge` names the fault of an output, with all outputs of its graph, or None. `sample`
    are elements that could be drawn; `says` is the promise, in words."""

    sample: Tensor
    judge: Callable[[Tensor, Sequence[Tensor]], str | None]
    says: str

    @property
    def dtype(self) -> str:
        return self.sample.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.sample.array.shape


Expected = Exact | OneOf | Approx | OfLaw


def nearest(expected: Expected) -> Tensor:
    """Return one tensor that is as expected: the exact one, the first candidate, or the values rounded to
    their type; of drawn elements some."""
    if isinstance(expected, Exact):
        return expected.tensor
    if isinstance(expected, OneOf):
        return expected.candidates[0]
    if isinstance(expected, OfLaw):
        return expected.sample
    return Tensor(expected.dtype, encode(expected.dtype, expected.value))
