"""Kernels that are right but for what is peculiar to types of at most 8 bits: how they are packed and how numbers become
theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.dtypes import DTYPES, Array, DType
from harness.model.expected import Expected, nearest
from harness.model.float_formats import MINIFLOATS, decode
from harness.operators import OPERATORS
from harness.worker.worker import packed, unpacked
from tests.mutants.any_operator import AnyMistake, Sample

Change = Callable[[Array, DType], Array]


def _reordered(array: Array, entry: DType) -> Array:
    """The elements of each byte from the high bits on."""
    bits = packed(array, entry.onnx)
    each = 8 // entry.narrow
    mask = (1 << entry.narrow) - 1
    turned = sum(
        ((bits >> (n * entry.narrow)) & mask) << ((each - 1 - n) * entry.narrow) for n in range(each)
    )
    return np.asarray(unpacked(np.asarray(turned, np.uint8), entry.onnx, array.shape))


def _without_tail(array: Array, entry: DType) -> Array:
    """Zeros in a last byte that is not full."""
    found = array.reshape(-1).copy()
    found[found.size // (8 // entry.narrow) * (8 // entry.narrow) :] = 0
    return found.reshape(array.shape)


def _other_sign(array: Array, entry: DType) -> Array:
    """Elements of signed types taken as unsigned ones, where that can be told: the upper half of the range as the lower."""
    return np.asarray(np.where(array < 0, entry.limits.max, array), array.dtype)


def _negative_zero(array: Array, entry: DType) -> Array:
    """-0, which the types of "uz" do not have, in place of 0."""
    return np.where(array == 0, MINIFLOATS[entry.name].sign, array).astype(array.dtype)


@dataclass(frozen=True)
class Packed:
    """A kernel that takes or gives elements of a type in another way."""

    dtype: str
    of: str
    what: str
    change: Change

    @property
    def name(self) -> str:
        return f"{self.of} of {self.dtype}: {self.what}"

    def concerns(self, sample: Sample) -> bool:
        if self.of == "outputs":
            return self.dtype in sample.call.outputs
        return any(spec.dtype == self.dtype for spec in sample.case.inputs)

    def shows(self, sample: Sample) -> bool:
        if self.of == "outputs":
            return _told(sample.expected, [self._changed(nearest(each)) for each in sample.expected])
        inputs = {name: self._changed(each) for name, each in sample.inputs.items()}
        with np.errstate(all="ignore"):
            return _told(
                sample.expected,
                list(map(nearest, OPERATORS[sample.case.operator].oracle(sample.call, inputs, "opencl"))),
            )

    def _changed(self, tensor: Tensor) -> Tensor:
        return (
            Tensor(tensor.dtype, self.change(tensor.array, DTYPES[self.dtype]))
            if tensor.dtype == self.dtype
            else tensor
        )


@dataclass(frozen=True)
class Converted:
    """A kernel that makes a narrow float of numbers in another way; `attributes` are those that it takes instead."""

    dtype: str
    what: str
    attributes: Mapping[str, int]
    truncates: bool = False

    @property
    def name(self) -> str:
        return f"{self.dtype}: {self.what}"

    def concerns(self, sample: Sample) -> bool:
        given = sample.call.attributes
        return self.dtype in sample.call.outputs and all(
            given.get(k, v) != v for k, v in self.attributes.items()
        )

    def shows(self, sample: Sample) -> bool:
        if self.truncates:
            source = next(iter(sample.inputs.values()))
            if not DTYPES[source.dtype].is_float:
                return False
            right = nearest(sample.expected[0])
            numbers, found = decode(*source), decode(self.dtype, right.array)
            if numbers.shape != found.shape:
                return False
            with np.errstate(all="ignore"):
                away = (np.abs(found) > np.abs(numbers)) & np.isfinite(numbers)
            return _told(sample.expected, [Tensor(right.dtype, right.array - away.astype(np.uint8))])
        call = sample.call._replace(attributes={**sample.call.attributes, **self.attributes})
        with np.errstate(all="ignore"):
            found = OPERATORS[sample.case.operator].oracle(call, sample.inputs, "opencl")
        return _told(sample.expected, list(map(nearest, found)))


def _told(expected: Sequence[Expected], found: Sequence[Tensor]) -> bool:
    return any(compare(*pair).diff is not None for pair in zip(expected, found, strict=True))


def narrow(name: str, cases: Sequence[Sample]) -> Iterator[AnyMistake]:
    """Yield the mistakes that concern the narrow types which cases of an operator take and give."""
    taken = {
        spec.dtype
        for sample in cases
        for spec in sample.case.inputs
        if spec.name not in OPERATORS[name].constants
        and not (spec.name.endswith("zero_point") and DTYPES[spec.dtype].is_minifloat)  # always 0
    }
    given = {dtype for sample in cases for dtype in sample.call.outputs}
    for of, dtypes in (("inputs", taken), ("outputs", given)):
        if of == "inputs" and not any(DTYPES[dtype].narrow or dtype != "int64" for dtype in given):
            continue  # Shape and Size look at no element
        for entry in (DTYPES[dtype] for dtype in sorted(dtypes)):
            if 0 < entry.narrow < 8:
                yield Packed(entry.name, of, "from the high bits on", _reordered)
                yield Packed(entry.name, of, "without the tail", _without_tail)
                if entry.storage == "i1":
                    yield Packed(entry.name, of, "without a sign", _other_sign)
    for dtype in sorted(given & set(MINIFLOATS)):
        casts = any("saturate" in sample.call.attributes and dtype in sample.call.outputs for sample in cases)
        if dtype.endswith("fnuz") and casts:
            yield Packed(dtype, "outputs", "-0 for 0", _negative_zero)
        if casts and dtype.startswith("float8") and dtype != "float8e8m0":
            yield Converted(dtype, "saturates always", {"saturate": 1})
            yield Converted(dtype, "never saturates", {"saturate": 0})
        if name.startswith("Cast") and dtype != "float8e8m0":
            yield Converted(dtype, "cut off", {}, truncates=True)
