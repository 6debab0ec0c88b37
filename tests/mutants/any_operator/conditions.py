"""Kernels that are right but where one condition holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, nearest
from harness.model.float_formats import decode, encode
from harness.model.onnx_schemas import operator_schema
from harness.specs.coverage.kind_cases import is_of_kind
from tests.mutants.any_operator import AnyMistake, Sample

Part = Callable[[Array], Array]
"""Chooses a part of an output, as a view."""


def whole(array: Array) -> Array:
    return array.reshape(-1)


@dataclass(frozen=True)
class WrongWhere:
    """Where a condition holds, a part of an output has other values; of all outputs, or of one."""

    name: str
    concerns: Callable[[Sample], bool]
    part: Part = whole
    output: int | None = None

    def shows(self, sample: Sample) -> bool:
        outputs = range(len(sample.expected)) if self.output is None else (self.output,)
        return any(_spoiled(sample, position, self.part) for position in outputs)


def _spoiled(sample: Sample, position: int, part: Part) -> bool:
    """Say whether other values in a part of an output turn a case red."""
    wanted = sample.expected[position]
    right = nearest(wanted)
    array = np.array(right.array, order="C", ndmin=1)
    found = part(array)
    if not found.size:
        return False
    dtype = DTYPES[right.dtype]
    if dtype.storage == "O":
        found[...] = np.array([f"{text}!" for text in found.reshape(-1)], object).reshape(found.shape)
    elif isinstance(wanted, Approx):
        bound = part(np.array(wanted.bound, order="C", ndmin=1))
        with np.errstate(all="ignore"):
            value = decode(right.dtype, found)
            other = value + np.maximum(bound * 4, np.abs(value) / 8 + 1e-3)
        found[...] = encode(right.dtype, np.where(np.isfinite(value), other, 1.0))
    elif right.dtype == "bool":
        found[...] = ~found
    else:
        width = dtype.itemsize // 2 if dtype.storage[0] == "c" else dtype.itemsize
        bits = array.view(f"u{width}")
        changed = array.copy().view(f"u{width}")
        changed ^= np.array(
            1 << (width * 8 - 3 if dtype.is_float or dtype.storage[0] == "c" else 0), bits.dtype
        )
        found[...] = part(changed.view(array.dtype).reshape(array.shape))
    return compare(wanted, Tensor(right.dtype, array.reshape(right.array.shape))).diff is not None


OPTIONS: Mapping[str, Callable[[Sample], bool]] = {
    "symbolic shapes": lambda sample: sample.case.options.shapes == "symbolic",
    "static shapes": lambda sample: sample.case.options.shapes == "static",
    "undeclared shapes": lambda sample: sample.case.options.shapes == "undeclared",
    "optimisation": lambda sample: sample.case.options.optimization != "off",
    "neighbours": lambda sample: sample.case.options.neighbours,
}

PARTS: Mapping[str, Part] = {
    "the first element": lambda x: x.reshape(-1)[:1],
    "the last element": lambda x: x.reshape(-1)[-1:],
    "elements from the 16th": lambda x: x.reshape(-1)[16:],
    "elements from the 64th": lambda x: x.reshape(-1)[64:],
    "the last row": lambda x: x[-1:] if x.ndim > 1 else x[:0],
}


def conditions(name: str, cases: Sequence[Sample]) -> Iterator[AnyMistake]:
    """Yield the kernels of an operator that are wrong where one condition holds: those of the types and
    versions that ONNX allows, of narrow types in any version, and those of the ranks, outputs and extents that the cases
    have."""
    narrow: dict[str, WrongWhere] = {}
    for opset in sorted({sample.case.opset for sample in cases}):
        yield WrongWhere(f"version {opset}", lambda s, opset=opset: s.case.opset == opset)
        for parameter in operator_schema(name, opset).inputs:
            if not parameter.optional:
                yield from (
                    _of_type(opset, parameter.name, dtype)
                    for dtype in parameter.wide
                    if dtype in DTYPES and not dtype.startswith("complex")
                )
                found = (
                    _of_type(None, parameter.name, d) for d in parameter.dtypes if d not in parameter.wide
                )
                narrow |= {each.name: each for each in found}
    yield from narrow.values()
    # a kind of input is generated for one case: of a rank that it alone has no two cases turn red
    written = [sample.case for sample in cases if sample.case.inputs and not is_of_kind(sample.case)]
    for rank in sorted({len(case.inputs[0].shape) for case in written}):
        yield WrongWhere(
            f"rank {rank}", lambda s, rank=rank: bool(s.case.inputs) and len(s.case.inputs[0].shape) == rank
        )
    for option, holds in OPTIONS.items():
        yield WrongWhere(option, holds)
    if any(len(sample.case.inputs) > 1 for sample in cases):  # an only input would be folded away
        yield WrongWhere("an initializer", lambda s: s.case.options.initializer is not None)
    vector = any(expected.shape for sample in cases for expected in sample.expected[:1])
    for place, part in PARTS.items():
        if vector:
            yield WrongWhere(place, lambda s: True, part)
    for position in range(1, max((len(sample.call.outputs) for sample in cases), default=1)):
        yield WrongWhere(
            f"output {position}", lambda s, position=position: len(s.expected) > position, whole, position
        )


def _of_type(opset: int | None, formal: str, dtype: str) -> WrongWhere:
    def concerns(sample: Sample) -> bool:
        return opset in (None, sample.case.opset) and any(
            each.dtype == dtype and each.name.partition(".")[0] == formal for each in sample.case.inputs
        )

    return WrongWhere(f"{formal} of {dtype} in version {opset or 'any'}", concerns)
