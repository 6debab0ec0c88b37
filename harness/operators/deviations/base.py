"""The arguments of a deviation's formula, its registration under the name that expectations use, and helpers for
results with a bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Tensor, Value
from harness.model.dtypes import Array
from harness.model.expected import Approx, Exact, Expected, OneOf, nearest
from harness.model.float_formats import FORMATS, Float64, Format
from harness.operators.base import Call, Operator, Oracle, TensorType


class Deviating(NamedTuple):
    """One call with its elements, as the operator's own formula is given it."""

    operator: Operator
    call: Call
    inputs: Mapping[str, Tensor]
    arithmetic: str

    def again(
        self,
        *,
        inputs: Mapping[str, Tensor] | None = None,
        outputs: tuple[str, ...] | None = None,
        constants: Mapping[str, Array] | None = None,
        without: tuple[str, ...] = (),
        **attributes: Value,
    ) -> Deviating:
        """Return the call with other inputs, element types of outputs, constants or attributes; `without` names
        attributes that are left out."""
        taken = self.inputs if inputs is None else inputs
        kept = {name: value for name, value in self.call.attributes.items() if name not in without}
        call = self.call._replace(
            inputs={name: TensorType(each.dtype, each.array.shape) for name, each in taken.items()},
            attributes={**kept, **attributes},
            outputs=self.call.outputs if outputs is None else outputs,
            constants={
                **{name: taken[name].array for name in self.call.constants if name in taken},
                **(constants or {}),
            },
        )
        return self._replace(call=call, inputs=taken)

    def formula(self, **changes: Any) -> tuple[Expected, ...]:
        """Return what the operator's own formula gives; `changes` are those of `again`."""
        operator, call, inputs, arithmetic = self.again(**changes)
        return operator.oracle(call, inputs, arithmetic)

    def having(self, **elements: Array | Callable[[Array], Array]) -> dict[str, Tensor]:
        """Return the inputs, some with other elements of the same type, or with what a function makes of theirs."""
        inputs = dict(self.inputs)
        for name, each in elements.items():
            dtype, array = inputs[name]
            inputs[name] = Tensor(dtype, each(array) if callable(each) else each)
        return inputs

    def converted(self, dtype: str) -> dict[str, Tensor]:
        """Return the inputs as numbers of another type that NumPy has."""
        return {name: Tensor(dtype, each.array.astype(dtype)) for name, each in self.inputs.items()}

    def lacking(self, name: str) -> dict[str, Tensor]:
        """Return the inputs but one."""
        return {each: tensor for each, tensor in self.inputs.items() if each != name}

    def approx(self, **changes: Any) -> Approx:
        """Return the only output of the formula, which has a bound; `changes` are those of `formula`."""
        (found,) = self.formula(**changes)
        assert isinstance(found, Approx)
        return found

    def exact(self, **changes: Any) -> Exact:
        """Return the only output of the formula, which is exactly one tensor."""
        (found,) = self.formula(**changes)
        assert isinstance(found, Exact)
        return found


Deviation = Callable[[Deviating], tuple[Expected, ...]]
"""Returns what each output is held against, as an operator's oracle does; raises `Undefined` where it has nothing
to say of a call."""

DEVIATIONS: dict[str, Deviation] = {}


def register(name: str, formula: Deviation) -> None:
    """Register a formula under a name."""
    assert name not in DEVIATIONS
    DEVIATIONS[name] = formula


def deviation(formula: Deviation) -> Deviation:
    """Register a formula under its own name."""
    register(formula.__name__, formula)
    return formula


def replaced(name: str, oracle: Oracle) -> None:
    """Register under `name` an oracle in place of the operator's."""
    register(name, lambda asked: oracle(asked.call, asked.inputs, asked.arithmetic))


def changed(
    name: str, elements: Mapping[str, Callable[[Array], Array]] | None = None, **changes: Any
) -> None:
    """Register under `name` the operator's own formula of another call: with what functions make of the `elements` of
    inputs, and with `changes` as `Deviating.again` has them, each as it is or as a function of the call."""

    def formula(asked: Deviating) -> tuple[Expected, ...]:
        known = {key: each(asked) if callable(each) else each for key, each in changes.items()}
        return asked.formula(**({"inputs": asked.having(**elements)} if elements else {}), **known)

    register(name, formula)


def low_bits(values: Array) -> Array:
    """Return what the lower 32 bits of integers stand for."""
    return values.astype(np.int32).astype(values.dtype)


def settled(found: Approx, places: NDArray[np.bool_], value: Any) -> Approx:
    """Return a result that is `value` without an error at some places."""
    return Approx(found.dtype, np.where(places, value, found.value), np.where(places, 0.0, found.bound))


def without_nan(found: Approx, value: Any) -> Approx:
    """Return a result that is `value` in place of NaN, with the same bound."""
    return Approx(found.dtype, np.where(np.isnan(found.value), value, found.value), found.bound)


def overflowing(found: Approx, form: Format, dtype: str) -> Approx:
    """Return a result in a type, infinite where a narrower format has no such number, open where that is not certain."""
    size = np.abs(found.value)
    infinite, known = size + found.bound > form.largest, size - found.bound >= form.overflow
    value = np.where(infinite, np.copysign(np.inf, found.value), found.value)
    return Approx(dtype, value, np.where(infinite, np.where(known, 0.0, np.inf), found.bound))


def candidates_of(found: Expected) -> tuple[Tensor, ...]:
    """Return what an output that is chosen may be."""
    return found.candidates if isinstance(found, OneOf) else (nearest(found),)


def moved(found: Approx, move: Callable[[Float64], Float64]) -> Approx:
    """Return a result whose values and bounds a function moves alike."""
    return Approx(found.dtype, move(found.value), move(found.bound))


def neighbours(found: Approx) -> list[Float64]:
    """Return the numbers of float32 that lie within the bounds."""
    steps, nearest = FORMATS["float32"].spacing(found.value), FORMATS["float32"].rounded(found.value)
    most = int(np.max(found.bound / steps, initial=0.0))
    return [nearest + step * steps for step in range(-most, most + 1)]


# What the operator's own formula makes of a call, whatever rule the call breaks.
changed("as_if_allowed")
