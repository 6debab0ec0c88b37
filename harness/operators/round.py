"""Round: nearest integer, halves to even (ONNX Round, versions 11 and 22), and DirectML's two other rounding modes as variants."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from harness.dtypes import DTYPES, Array
from harness.operators.base import Attributes, DirectmlCall, Entropy, Operator, Shape, Shapes, ValueKind
from harness.operators.binary_floats import decode_bfloat16, encode, encode_bfloat16, halfway_values, special_patterns
from harness.records import Tensor

TOWARD_ZERO = "toward_zero"
HALVES_AWAY = "halves_away_from_zero"

# Y = the integer nearest to X, of two equally near ones the even one          (no variant; DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN)
# Y = X without its fraction                                                    (toward_zero; DML_ROUNDING_MODE_TOWARD_ZERO)
# Y = the integer nearest to X, of two equally near ones the one farther from 0 (halves_away_from_zero; DML_ROUNDING_MODE_TOWARD_INFINITY)
#
# X itself where X is integral, 0, -0, NaN or infinite. A result 0 keeps the sign of X, as IEEE 754's roundToIntegral operations do.


def oracle(inputs: Sequence[Tensor], attributes: Attributes, variant: str | None) -> Tensor:
    """Round by the formula above; bfloat16 goes through float32, which holds each of its values and results exactly."""
    del attributes
    dtype, bits = inputs[0]
    x = decode_bfloat16(bits) if dtype == "bfloat16" else bits
    with np.errstate(invalid="ignore"):
        y = _rounded(x, variant)
    return Tensor(dtype, encode_bfloat16(y) if dtype == "bfloat16" else y)


def _rounded(x: Array, variant: str | None) -> Array:
    if variant is None:
        return np.asarray(np.rint(x))
    whole = np.trunc(x)
    if variant == TOWARD_ZERO:
        return np.asarray(whole)
    one = np.copysign(np.ones((), x.dtype), x)
    return np.where(np.abs(x - whole) >= 0.5, whole + one, whole)  # x - whole is exact


def generate(kind: str, dtype: str, given: Shapes, attributes: Attributes, entropy: Entropy) -> Array:
    """Choose X by kind, repeated or cut to the shape.

    random: any bit pattern; ordinary: uniform in -100..100; specials, halves: lists that `natural_shape` holds whole; subnormal: random
    nonzero subnormals; patterns: every bit pattern of a 16-bit type, in order.
    """
    del attributes
    shape = given[0]
    count = prod(shape)
    storage = np.dtype(DTYPES[dtype].storage)
    if kind in ("random", "subnormal"):
        drawn = np.frombuffer(entropy, f"<u{storage.itemsize}", count)
        if kind == "subnormal":
            drawn = _subnormal(drawn, dtype)
        return np.array(drawn.view(storage).reshape(shape))
    if kind == "ordinary":
        quarters = np.frombuffer(entropy, "<u4", count) % 801
        return encode(quarters / 4.0 - 100.0, dtype).reshape(shape)
    if kind == "patterns":
        whole = np.arange(1 << (8 * storage.itemsize), dtype=f"<u{storage.itemsize}") if storage.itemsize == 2 else None
        if whole is None:
            raise ValueError("only 16-bit types have few enough bit patterns")
        return np.resize(whole, shape).view(storage)
    return np.resize(special_patterns(dtype) if kind == "specials" else halfway_values(dtype), shape)


def _subnormal(drawn: NDArray[np.generic], dtype: str) -> NDArray[np.generic]:
    mantissa = DTYPES[dtype].mantissa
    assert mantissa is not None
    width = drawn.dtype.itemsize * 8
    kept = drawn & drawn.dtype.type((1 << mantissa) - 1 | 1 << (width - 1))
    return np.asarray(kept | drawn.dtype.type(1))


def natural_shape(kind: str, dtype: str) -> Shape | None:
    """The shape in which a kind's list of values stands once."""
    if kind == "specials":
        return (special_patterns(dtype).size,)
    if kind == "halves":
        return (halfway_values(dtype).size,)
    return (1 << 16,) if kind == "patterns" and DTYPES[dtype].itemsize == 2 else None


ROUNDING_MODES = {None: 0, TOWARD_ZERO: 1, HALVES_AWAY: 2}
"""DML_ROUNDING_MODE by variant (DirectML.h)."""


def directml(operator: str | None, given: Shapes, attributes: Attributes, variant: str | None) -> DirectmlCall:
    """Lower to DML_OPERATOR_ELEMENT_WISE_ROUND; a variant is a RoundingMode there."""
    del attributes
    return DirectmlCall(
        operator or "DML_OPERATOR_ELEMENT_WISE_ROUND", ("InputTensor",), (given[0], given[0]), 1, {"RoundingMode": ROUNDING_MODES[variant]}
    )


OPERATOR = Operator(
    name="Round",
    inputs=("X",),
    output="Y",
    values_input="X",
    value_kinds=tuple(map(ValueKind, ("ordinary", "random", "specials", "halves", "subnormal", "patterns"))),
    choices={"X": ()},
    shapes=lambda first, _chosen, _attributes: (first,),
    domain=lambda _attribute, _given: (),
    broken_rule=lambda _given, _attributes: None,
    broken_by_values=lambda _inputs, _attributes: None,
    generate=generate,
    oracle=oracle,
    output_shape=lambda given, _: given[0],
    directml_rank=lambda given, _: max(1, len(given[0])),
    directml=directml,
    applies=lambda kind, dtype, _given: kind != "patterns" or DTYPES[dtype].itemsize == 2,
    natural_shape=natural_shape,
    variants=(TOWARD_ZERO, HALVES_AWAY),
)
