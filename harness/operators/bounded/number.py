"""Numbers with a bound on the error of an implementation: running error analysis (Higham, "Accuracy and
Stability", 2nd ed., 3.3).

A `Bounded` holds float64 values and, for each, how far what an implementation computes in a declared
arithmetic may lie from it. Each operation adds its own rounding, what its operands' errors do to its exact
result, and the rounding of the float64 reference itself, so an operator's bound follows from its formula.
With v the reference and v^ the implementation's value, |v^ - v| <= error throughout.

Rules beyond finite numbers:

- Values that are infinite or NaN by IEEE 754's rules from exact operands have error 0: they are required.
  NaN stays NaN in every operation, however large the errors of other operands are.
- An error is infinite where nothing can be claimed: a divisor or a logarithm's argument that may be 0, an infinity that may be a NaN.
- Where |value| + error reaches the magnitude from which the working type rounds to infinity, the implementation's value may be that
  infinity; an operation whose result would not show it, a difference for instance, has an infinite error.
- A reference that overflows float64 is held as the largest float64, which no narrower type reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from math import copysign, isnan
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harness.model.case import Tensor
from harness.model.expected import Approx
from harness.model.float_formats import FORMATS, Float64, Format, decode, greatest
from harness.operators.bounded.arithmetic import Arithmetic

REFERENCE = FORMATS["float64"]
HUGE = REFERENCE.largest
_CUT = 2.0**-40
"""Relative error of a reference that overflowed float64 and is held as its largest value; and what a bound is
widened by for its own rounding, which is 2**-53 for each of the few thousand operations that make it."""

Mask = NDArray[np.bool_]
_RULES: dict[Any, Callable[..., Any]] = {}

_Rule = TypeVar("_Rule", bound=Callable[..., Any])


def implements(*functions: Any) -> Callable[[_Rule], _Rule]:
    """Register a function as what functions of NumPy do with numbers with a bound."""

    def registered(rule: _Rule) -> _Rule:
        _RULES.update(dict.fromkeys(functions, rule))
        return rule

    return registered


def _operator(ufunc: Any) -> tuple[Callable[[Any, Any], Bounded], Callable[[Any, Any], Bounded]]:
    """Return the method of an operator, and that of a number on its right."""
    return lambda x, y: _RULES[ufunc](x, y), lambda x, y: _RULES[ufunc](y, x)


class Bounded:
    """Float64 values with the errors of an implementation in one arithmetic; both arrays have one shape.

    NumPy's functions that have a rule here take it (`np.exp`, `np.sum`, `np.concatenate`, ...), and the
    package has them under their names with types. All others raise TypeError, as do comparisons: an
    implementation whose values lie elsewhere within their bounds may decide otherwise.
    """

    __slots__ = ("arithmetic", "error", "value")

    def __init__(self, value: Float64, error: Float64, arithmetic: Arithmetic) -> None:
        self.value = value
        self.error = error
        self.arithmetic = arithmetic

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def unclaimed(self, value: float = 0.0) -> Bounded:
        """Return elements of the same shape without a claim: their errors are infinite."""
        return Bounded(np.full(self.shape, value), np.full(self.shape, np.inf), self.arithmetic)

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def T(self) -> Bounded:  # noqa: N802 # as NumPy names it
        return Bounded(self.value.T, self.error.T, self.arithmetic)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: Any) -> Bounded:
        return Bounded(np.asarray(self.value[index]), np.asarray(self.error[index]), self.arithmetic)

    def __repr__(self) -> str:
        return f"Bounded({self.value!r}, {self.error!r}, {self.arithmetic.name} {self.arithmetic.form.dtype})"

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        rule = _RULES.get(ufunc)
        if rule is None or method != "__call__" or keywords:
            raise TypeError(
                f"numpy.{ufunc.__name__} has no rule for numbers with a bound; compare or convert `.value` where that is exact"
            )
        return rule(*inputs)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        rule = _RULES.get(function)
        if rule is None:
            raise TypeError(f"numpy.{function.__name__} has no rule for numbers with a bound")
        return rule(*arguments, **keywords)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "a number with a bound is no array: its error would be lost; take `.value` where that is meant"
        )

    def __bool__(self) -> NoReturn:
        raise TypeError("a number with a bound decides nothing; take `.value` where it is exact")

    __float__ = __int__ = __index__ = __bool__

    def __lt__(self, other: object) -> NoReturn:
        self.__bool__()

    __le__ = __gt__ = __ge__ = __lt__
    __eq__ = __ne__ = __lt__
    __hash__ = None  # type: ignore[assignment] # how Python has it that nothing is hashed

    def __neg__(self) -> Bounded:
        return cast("Bounded", _RULES[np.negative](self))

    def __abs__(self) -> Bounded:
        return cast("Bounded", _RULES[np.absolute](self))

    __add__, __radd__ = _operator(np.add)
    __sub__, __rsub__ = _operator(np.subtract)
    __mul__, __rmul__ = _operator(np.multiply)
    __truediv__, __rtruediv__ = _operator(np.divide)
    __pow__, __rpow__ = _operator(np.power)
    __matmul__, __rmatmul__ = _operator(np.matmul)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Bounded:
        return cast("Bounded", np.sum(cast("Any", self), axis=axis, keepdims=keepdims))

    def mean(self, axis: Any = None, keepdims: bool = False) -> Bounded:
        return cast("Bounded", np.mean(cast("Any", self), axis=axis, keepdims=keepdims))

    def prod(self, axis: Any = None, keepdims: bool = False) -> Bounded:
        return cast("Bounded", np.prod(cast("Any", self), axis=axis, keepdims=keepdims))

    def max(self, axis: Any = None, keepdims: bool = False) -> Bounded:
        return cast("Bounded", np.max(cast("Any", self), axis=axis, keepdims=keepdims))

    def min(self, axis: Any = None, keepdims: bool = False) -> Bounded:
        return cast("Bounded", np.min(cast("Any", self), axis=axis, keepdims=keepdims))

    def cumsum(self, axis: int) -> Bounded:
        return cast("Bounded", np.cumsum(cast("Any", self), axis=axis))

    def reshape(self, *shape: Any) -> Bounded:
        return Bounded(self.value.reshape(*shape), self.error.reshape(*shape), self.arithmetic)

    def transpose(self, *axes: Any) -> Bounded:
        return Bounded(self.value.transpose(*axes), self.error.transpose(*axes), self.arithmetic)

    def stored(self, dtype: str) -> Approx:
        """Return the expected result in an output type; the bound has the conversion's error where that is
        not the working type."""
        arithmetic, form = self.arithmetic, FORMATS[dtype]
        with np.errstate(all="ignore"):
            error = self.error
            if arithmetic.errs and form != arithmetic.form:
                size = np.abs(self.value) + error
                error = np.where(np.isfinite(size), error + arithmetic.operations * form.spacing(size), error)
            bound = error * (1 + _CUT)
            value = self.value
            if (
                arithmetic.operations >= 1
            ):  # rounding may be toward zero, which gives the largest number where others give infinity
                beyond = np.isfinite(value) & (np.abs(value) > form.largest)
                value = np.where(beyond, np.copysign(form.largest, value), value)
                bound = np.where(beyond, np.maximum(bound, form.overflow - form.largest), bound)
            anything = (value - bound <= -form.largest) & (value + bound >= form.largest)
            bound = np.where(anything, np.inf, bound)  # a bound that no finite number of the type leaves
        return Approx(dtype, np.array(value, np.float64), np.array(bound, np.float64))


def number(data: Tensor | ArrayLike | float, arithmetic: Arithmetic) -> Bounded:
    """Take an operator's input: exact, but for subnormals that the arithmetic may take for zero, and for
    values its type does not hold."""
    form, operations, flush = arithmetic.form, arithmetic.operations, arithmetic.flush
    if isinstance(data, float):
        value, error = _constant(data, copysign(1.0, data), form, operations, flush)
        return Bounded(value, error, arithmetic)
    value = decode(*data) if isinstance(data, Tensor) else decode("float64", np.asarray(data))
    held = isinstance(data, Tensor) and data.dtype == form.dtype
    return Bounded(value, _of_given(value, form, operations, flush, held=held), arithmetic)


@lru_cache(maxsize=1024)
def _constant(
    value: float, _sign: float, form: Format, operations: float, flush: bool
) -> tuple[Float64, Float64]:
    """Return a constant of a formula and its error, which no one writes to; 0.0 and -0.0 are equal, so their signs
    tell them apart."""
    made = np.array(value, np.float64)
    error = _of_given(made, form, operations, flush)
    made.flags.writeable = error.flags.writeable = False
    return made, error


def _of_given(value: Float64, form: Format, operations: float, flush: bool, *, held: bool = False) -> Float64:
    """Return the errors of numbers that are given; `held`: the working type holds each of them."""
    if not operations or (held and not flush):
        return np.zeros(value.shape)
    with np.errstate(all="ignore"):
        size = np.abs(value)
        error = np.where(flush & (size < form.smallest_normal), size, 0.0)
        if not held:
            kept = (form.rounded(value) == value) | np.isnan(value)
            error = np.where(kept, error, error + operations * form.spacing(value))
    return error


def shared(operands: Iterable[Any]) -> Arithmetic:
    """Return the one arithmetic of those operands that have one; raise ValueError where there is none, or
    two."""
    found = [operand.arithmetic for operand in operands if isinstance(operand, Bounded)]
    if not found or any(other is not found[0] and other != found[0] for other in found):
        raise ValueError("the operands of an operation need one arithmetic")
    return found[0]


def same(x: Any, y: Any) -> tuple[Bounded, Bounded]:
    """Take the operands of one operation; a plain number or array is a constant, rounded to the working type
    where it must be."""
    if isinstance(x, Bounded) and isinstance(y, Bounded) and x.arithmetic is y.arithmetic:
        return x, y
    arithmetic = shared((x, y))
    return (
        x if isinstance(x, Bounded) else number(x, arithmetic),
        y if isinstance(y, Bounded) else number(y, arithmetic),
    )


def may_overflow(x: Bounded) -> Mask:
    """Say where an implementation's value of a finite number may be an infinity."""
    finite = np.isfinite(x.value) & np.isfinite(x.error)
    return np.asarray(finite & (np.abs(x.value) + x.error >= x.arithmetic.overflow))


def surely_nan(*operands: Bounded) -> Mask:
    """Say where an operand is NaN in every implementation, so that a result is NaN regardless of the other operands."""
    masks = np.broadcast_arrays(*(np.isnan(each.value) & np.isfinite(each.error) for each in operands))
    return np.asarray(np.logical_or.reduce(masks))


def ordinary(x: Bounded) -> bool:
    """Say whether no value is infinite or NaN, and none may be an infinity in an implementation."""
    return greatest(np.abs(x.value) + x.error) < x.arithmetic.overflow


def settle(
    value: Float64,
    spread: Float64,
    arithmetic: Arithmetic,
    own: Float64 | float,
    reference: float,
    given: Mask | None,
) -> Bounded:
    """Finish an operation: add its own error `own` and that of the reference to what the operands' errors do
    (`spread`).

    `reference` is the error of the float64 operation in ULP. `given` says where an infinite or NaN value
    follows from operands that are infinite, NaN or a pole, and not from overflow of float64; None for nowhere.
    """
    size = np.abs(value)
    finite = given is None and greatest(size) < np.inf
    if not finite:
        spread = unknown_infinite(spread)
        beyond = np.isinf(value) & ~(np.zeros(value.shape, np.bool_) if given is None else given)
        value = np.where(beyond, np.copysign(HUGE, value), value)
        spread = np.where(beyond & np.isfinite(spread), np.maximum(spread, HUGE * _CUT), spread)
        size = np.abs(value)
    error = np.asarray(spread + own)
    if reference:
        error = np.asarray(error + reference * REFERENCE.spacing(value))
    if arithmetic.flush:
        lost = size - error < arithmetic.form.smallest_normal
        if np.count_nonzero(lost):
            np.maximum(error, size * lost, out=error)
    error = unknown_infinite(error)
    if not finite:
        error = np.where(np.isfinite(value), error, np.where(np.isinf(spread), np.inf, 0.0))
    return Bounded(np.asarray(value), np.asarray(error), arithmetic)


def in_order(value: Float64) -> Float64:
    """Lay values out as C does: which order a sum of them adds in follows from their layout."""
    return np.asarray(value, order="C")


def unknown_infinite(error: Float64) -> Float64:
    """Return errors with an infinite one for each NaN."""
    return np.where(np.isnan(error), np.inf, error) if isnan(greatest(error)) else error


def whole(x: Bounded) -> Mask:
    """Say where a value is an integer without error."""
    exact = np.asarray(x.error == 0)
    return np.asarray(exact & (np.rint(x.value) == x.value)) if np.count_nonzero(exact) else exact


def basic(
    value: Float64, spread: Float64, arithmetic: Arithmetic, given: Mask | None, integers: Mask
) -> Bounded:
    """Finish an add, subtract or multiply; of `integers` a result that the type holds is exact, since it is
    returned where it is held."""
    if given is None:
        value = in_order(value)
    own: Float64 | float = 0.0
    if arithmetic.errs:
        own = arithmetic.operations * arithmetic.form.spacing(np.abs(value) + spread)
        own = own if greatest(own) < np.inf else np.where(np.isfinite(own), own, 0.0)
    result = settle(value, spread, arithmetic, own, 0.5, given)
    if not np.count_nonzero(integers):
        return result
    held = integers & (np.abs(value) <= 1 / arithmetic.form.unit)
    return Bounded(result.value, np.where(held, 0.0, result.error), arithmetic)
