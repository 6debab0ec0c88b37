"""Add, Sub, Mul, Div, Mod, Pow of two elements, Sum and Mean of any number: floats round, integers wrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Approx, Expected
from harness.model.nan_bits import signalling
from harness.operators.base import Call, Operator, Oracle
from harness.operators.bounded import Bounded, broadcast_to, number, power, stack, where
from harness.operators.elementwise.elementwise_family import ELEMENTWISE, alike_before_8, decides, of_two
from harness.operators.formulas import Either, bounded

# Add: C = A + B      Sub: C = A - B      Mul: C = A * B
# Div: C = A / B, of integers without its fraction
# Mod: C = A - n B with n = floor(A / B), with fmod = 1 n = A / B without its fraction
# Pow: Z = X ** Y, in the element type of X
# Sum: sum = data_0[0] + data_0[1] + ...      Mean: the sum divided by the number of inputs


def divide(a: Any, b: Any) -> Any:
    """Divide by the formula above."""
    if isinstance(a, Bounded):
        return a / b
    return (a - np.fmod(a, b)) // b


def modulo(a: Any, b: Any, fmod: int) -> Any:
    """Take the remainder by the formula above. The rest of A after whole B is exact in binary; adding B once more may
    round."""
    if not isinstance(a, Bounded):
        return np.fmod(a, b) if fmod else np.mod(a, b)
    value = np.fmod(a.value, b.value)
    rest = Bounded(
        value,
        np.where(np.broadcast_to((a.error > 0) | (b.error > 0), value.shape), np.inf, 0.0),
        a.arithmetic,
    )
    return rest if fmod else where((value != 0) & (np.signbit(value) != np.signbit(b.value)), rest + b, rest)


def raised(x: Any, y: Any) -> Any:
    """Raise x to y; a power of an integer that is no integer loses its fraction, and in float64 it may be one of two
    neighbours."""
    exponent = y.value if isinstance(y, Bounded) else y
    if isinstance(x, Bounded):
        held = number(exponent, x.arithmetic)
        lost = (exponent % 2 == 1) & (np.abs(held.value) >= 2.0**53)  # odd, and even once it is float64
        return power(x, Bounded(held.value, np.where(lost, np.inf, held.error), x.arithmetic))
    whole = (exponent >= 0) & (exponent == np.rint(exponent))
    powers = np.power(x.astype(np.uint64), np.where(whole, exponent, 0).astype(np.uint64)).astype(x.dtype)
    near = np.power(x.astype(np.float64), exponent.astype(np.float64))
    exact = np.asarray(~whole & (np.abs(near) < 2.0**53))
    exact[exact] = _is_power(*(each[exact] for each in np.broadcast_arrays(np.rint(near), x, exponent)))
    ends = (np.nextafter(near, end * near) for end in (0.0, np.inf))
    choices = [
        np.where(whole, powers, np.where(exact, np.rint(near), each).astype(x.dtype))
        for each in (near, *ends)
    ]
    return choices[0] if all(np.array_equal(choices[0], each) for each in choices) else Either(*choices)


@partial(np.vectorize, otypes=[bool])
def _is_power(whole: float, x: int, y: float) -> bool:
    """Say whether a whole number is x ** y itself, and not only the float64 next to it: 2 ** 31 and the root of
    2 ** 62 + 1 round alike."""
    if abs(x) <= 1:
        return True
    if y < 0:  # a fraction, of which nothing is left if it is at most a half
        return whole == 0
    numerator, degree = float(y).as_integer_ratio()
    return degree < 64 and int(whole) ** degree == int(x) ** numerator  # a root of degree 63 needs 2 ** 63


def _whatever_signals(oracle: Oracle) -> Oracle:
    """Claim nothing where a signalling NaN meets what makes 1 of a quiet one: pow(x, 0) and pow(1, y) may be NaN
    then (IEEE 754-2019, 9.2.1)."""

    def asked(call: Call, inputs: Mapping[str, Tensor], arithmetic: str) -> tuple[Expected, ...]:
        (found,) = oracle(call, inputs, arithmetic)
        signals = np.logical_or(*(signalling(tensor) for tensor in inputs.values()))
        if isinstance(found, Approx) and signals.any():
            found = Approx(
                found.dtype, found.value, np.where(signals & (found.value == 1), np.inf, found.bound)
            )
        return (found,)

    return asked


def total(data_0: Sequence[Bounded]) -> Bounded:
    """Sum in any order."""
    return _stacked(data_0).sum(0)


def mean(data_0: Sequence[Bounded]) -> Bounded:
    """Divide the sum by the number of its terms."""
    return _stacked(data_0).mean(0)


def _stacked(terms: Sequence[Bounded]) -> Bounded:
    """Put terms after one another, to be summed in the working type: elementwise operators have no wider
    accumulator."""
    shape = np.broadcast_shapes(*(term.shape for term in terms))
    found = stack([broadcast_to(term, shape) for term in terms])
    a = found.arithmetic
    return Bounded(found.value, found.error, a._replace(accumulator=a.form, accumulator_flush=a.flush))


def _modulus(call: Call) -> str:
    return "DML_OPERATOR_ELEMENT_WISE_MODULUS_" + ("TRUNCATE" if call.attributes.get("fmod") else "FLOOR")


def _integers_without_fmod(call: Call) -> str | None:
    floats = call.first.dtype in ("float16", "bfloat16", "float32", "float64")
    return "fmod is 1 for floats" if floats and call.opset < 28 and not call.attributes.get("fmod") else None


OPERATORS = (
    Operator("Add", ELEMENTWISE, bounded(np.add)),
    Operator("Sub", ELEMENTWISE, bounded(np.subtract)),
    Operator("Mul", ELEMENTWISE, bounded(np.multiply)),
    Operator("Div", ELEMENTWISE, bounded(divide)),
    Operator("Mod", ELEMENTWISE, bounded(modulo), rule=_integers_without_fmod, lower=decides(_modulus)),
    Operator("Pow", ELEMENTWISE, _whatever_signals(bounded(raised))),
    Operator(
        "Sum", ELEMENTWISE, bounded(total), rule=alike_before_8, lower=of_two("DML_OPERATOR_ELEMENT_WISE_ADD")
    ),
    Operator(
        "Mean",
        ELEMENTWISE,
        bounded(mean),
        rule=alike_before_8,
        lower=of_two("DML_OPERATOR_ELEMENT_WISE_MEAN"),
    ),
)
