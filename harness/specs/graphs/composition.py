"""The oracle of a graph: composes the formulas of its nodes, each of which takes the values of the nodes before
it and the bounds on their errors.

A value between nodes is a tensor, known to the bit, or `Within` a bound. What a node makes of the latter follows
from how its formula treats elements:

- One that rounds takes numbers with a bound, as its own inputs would be (running error analysis).
- One that moves elements moves each bound with its value.
- Any other is asked at the value, at both ends of its bound, and at 0 where the bound reaches it. It is right where
  an output is monotone in each input, or turns at 0 alone: comparisons with constants, roundings, conversions,
  minima and maxima, absolute values, quantisation. Decisions
  that depend on two inexact values at once (`ArgMax`, `TopK`, `Equal`) need inputs that are exact.

The bounds are those of each node in its own element type. A kernel that does the work of several nodes rounds
less often, and a transformer that moves a factor to a constant rounds as often: both stay within them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.model.float_formats import FORMATS, Float64, decode, encode
from harness.model.onnx_schemas import operator_schema
from harness.operators import OPERATORS
from harness.operators.base import Call, Operator, Shape, TensorType
from harness.operators.bounded import Bounded, arithmetic, number
from harness.operators.formulas import FormulaOracle
from harness.specs.calls import make_call
from harness.specs.graphs.pattern import FilledGraph, GraphNode, Unfit

_MOST_CORNERS = 8
_MOST_INTEGERS = 16
"""As many integers may be admissible for one element; of more, nothing is known that is worth a test."""
_TRACED = 1 << 40
"""The number of the first element that is followed through a node that moves elements: no such node fills with it."""


class Within(NamedTuple):
    """Numbers of an element type, each within an error of its value, as an implementation may hold them."""

    dtype: str
    value: Float64
    error: Float64

    @property
    def shape(self) -> Shape:
        return self.value.shape


Known = Tensor | Within


def composed(
    graph: FilledGraph, opset: int, inputs: Mapping[str, Tensor], declared: str, bounds: bool = True
) -> tuple[Expected, ...]:
    """Return what each output of a graph is held against in a declared arithmetic; raise Unfit where a node cannot
    take what it is given. Without `bounds`, element types and shapes are right, and bounds may be too narrow."""
    known: dict[str, Known] = {**inputs, **graph.constants}
    expected: dict[str, Expected] = {}
    for node in graph.nodes:
        for name, found in zip(node.outputs, _outputs(node, opset, known, declared, bounds), strict=True):
            if isinstance(found, (Tensor, Within)):
                known[name] = found
            else:
                expected[name], known[name] = found, _known(found)
    return tuple(expected.get(name) or _expected(known[name]) for name in graph.outputs)


def _outputs(
    node: GraphNode, opset: int, known: Mapping[str, Known], declared: str, bounds: bool
) -> Iterable[Known | Expected]:
    """Return the outputs of a node: of exact inputs as its operator's own oracle says."""
    operator = OPERATORS[node.operator]
    given = _operands(node, opset, known)
    call = _call(operator, node, opset, given)
    exact = {name: each for name, each in given.items() if isinstance(each, Tensor)}
    broken = operator.broken(call, exact) if len(exact) == len(given) else operator.broken_rule(call)
    if broken is not None:
        raise Unfit(f"{node.operator} of {', '.join(filter(None, node.inputs))}: {broken}")
    if len(exact) == len(given):
        return operator.oracle(call, exact, declared)
    oracle = operator.oracle
    if isinstance(oracle, FormulaOracle) and oracle.way == "moved":
        return _moved(oracle, call, given)
    return _at_corners(operator, call, given, declared, bounds)


def _operands(node: GraphNode, opset: int, known: Mapping[str, Known]) -> dict[str, Known]:
    """Return what the node takes under the formal names of its inputs."""
    parameters = operator_schema(node.operator, opset).inputs
    found: dict[str, Known] = {}
    for position, name in enumerate(node.inputs):
        formal = parameters[min(position, len(parameters) - 1)]
        if position >= len(parameters) and not formal.variadic:
            raise Unfit(f"{node.operator} takes {len(parameters)} inputs, not {len(node.inputs)}")
        if name:
            place = f"{formal.name}.{position - len(parameters) + 1}" if formal.variadic else formal.name
            found[place] = known[name]
    return found


def _call(operator: Operator, node: GraphNode, opset: int, given: Mapping[str, Known]) -> Call:
    schema = operator_schema(node.operator, opset)
    by_parameter: dict[str, str] = {}
    for name, each in given.items():
        parameter = schema.input(name)
        assert parameter is not None
        alike = by_parameter.setdefault(parameter.type_param, each.dtype)
        if each.dtype not in parameter.dtypes or (alike != each.dtype and parameter.alike):
            raise Unfit(f"{node.operator} at opset {opset} does not take {each.dtype} for {name}")
    needed = [p.name for p in schema.inputs if p.needed and not p.variadic and p.name not in given]
    if needed:
        raise Unfit(f"{node.operator} needs the input {needed[0]}")
    constants = {
        name: each.array
        for name, each in given.items()
        if name in operator.constants and isinstance(each, Tensor)
    }
    types = {name: TensorType(each.dtype, _shape(each)) for name, each in given.items()}
    return make_call(operator, opset, types, node.attributes, constants, None, len(node.outputs))


def _shape(known: Known) -> Shape:
    return known.array.shape if isinstance(known, Tensor) else known.shape


def _known(expected: Expected) -> Known:
    """Return an output as the input of a further node."""
    if isinstance(expected, Exact):
        return expected.tensor
    if isinstance(expected, Approx):
        return Within(expected.dtype, expected.value, expected.bound)
    return _hull([_known(Exact(each)) for each in expected.candidates])


def _hull(known: Sequence[Known]) -> Known:
    """Return what holds all of several: the middle of where they reach, and how far that is; the first one's elements
    where they all have them, or where one is infinite or NaN, within the distance to the others."""
    first = known[0]
    if all(isinstance(each, Tensor) for each in known) and not DTYPES[first.dtype].is_float:
        arrays = [each.array for each in known if isinstance(each, Tensor)]
        if all(np.array_equal(arrays[0], each) for each in arrays[1:]):
            return first
    several = [_as_within(each) for each in known]
    with np.errstate(all="ignore"):
        values = np.stack([each.value for each in several])
        errors = np.stack([each.error for each in several])
        low, high = (values - errors).min(0), (values + errors).max(0)
        ordinary = np.isfinite(low) & np.isfinite(high) & (low < high)
        same = (values == values[0]) | (np.isnan(values) & np.isnan(values[0]))
        apart = (
            np.where(same, 0.0, np.nan_to_num(np.abs(values - values[0]), nan=np.inf, posinf=np.inf)) + errors
        )
        return Within(
            first.dtype,
            np.asarray(np.where(ordinary, low / 2 + high / 2, values[0])),
            np.asarray(np.where(ordinary, high / 2 - low / 2, apart.max(0))),
        )


def _as_within(known: Known) -> Within:
    if isinstance(known, Within):
        return known
    return Within(known.dtype, _numbers(known), np.zeros(known.array.shape))


def _numbers(tensor: Tensor) -> Float64:
    if DTYPES[tensor.dtype].is_float:
        return decode(tensor.dtype, tensor.array)
    return np.asarray(tensor.array, np.float64)


def _moved(oracle: FormulaOracle, call: Call, given: Mapping[str, Known]) -> Iterator[Known]:
    """Follow each element of an inexact input to its places in the outputs."""
    followed = {name: each for name, each in given.items() if isinstance(each, Within)}
    starts: dict[str, int] = {}
    size = 0
    for name, each in followed.items():
        starts[name] = _TRACED + size
        size += each.value.size

    def number_of(name: str) -> Array:
        return np.arange(starts[name], starts[name] + followed[name].value.size).reshape(followed[name].shape)

    one = next(iter(followed.values())).dtype
    values = {
        name: each.value if isinstance(each, Within) else _moving(each, one) for name, each in given.items()
    }
    numbers = {
        name: number_of(name) if name in followed else _counting(each, one) for name, each in given.items()
    }
    errors = np.concatenate([each.error.reshape(-1) for each in followed.values()])
    places = oracle.given(call, numbers, lambda each: each)
    for dtype, found, at in zip(
        call.outputs, oracle.given(call, values, lambda each: each), places, strict=True
    ):
        array, origin = np.asarray(found), np.asarray(at)
        if dtype != one:
            yield Tensor(dtype, array)
            continue
        traced = origin.astype(np.int64) - _TRACED
        error = np.where(
            traced >= 0, errors[np.clip(traced, 0, errors.size - 1)] if errors.size else 0.0, 0.0
        )
        yield Within(dtype, np.asarray(array, np.float64), np.asarray(error))


def _moving(known: Known, dtype: str) -> Array:
    """Return an exact operand: as numbers where it is of the type that is moved, which indices are not."""
    assert isinstance(known, Tensor)
    return _numbers(known) if known.dtype == dtype else known.array


def _counting(known: Known, dtype: str) -> Array:
    assert isinstance(known, Tensor)
    return np.zeros(known.array.shape, np.int64) if known.dtype == dtype else known.array


def _at_corners(
    operator: Operator, call: Call, given: Mapping[str, Known], declared: str, bounds: bool
) -> Iterator[Known]:
    """Ask at the values, where all of an inexact input lie at one end of their bounds, and where they lie nearest to 0,
    at which even functions turn; a formula that rounds takes the bounds themselves as well."""
    inexact = [name for name, each in given.items() if isinstance(each, Within)]
    asked = []
    oracle = operator.oracle
    if (
        isinstance(oracle, FormulaOracle)
        and oracle.way == "bounded"
        and all(DTYPES[given[name].dtype].is_float for name in inexact)
    ):
        found = oracle.given(call, given, lambda each: _with_bound(oracle, each, declared))
        asked.append([oracle.expected(dtype, one) for dtype, one in zip(call.outputs, found, strict=True)])
    else:
        asked.append(list(operator.oracle(call, _ends(given, {}), declared)))
    if bounds and any(np.any(each.error) for each in given.values() if isinstance(each, Within)):
        signs: list[tuple[int | None, ...]] = list(product((-1, 1), repeat=len(inexact)))
        if len(signs) > _MOST_CORNERS:
            signs = [(-1,) * len(inexact), (1,) * len(inexact)]
        for each in (*signs, (None,) * len(inexact)):
            ends = _ends(given, dict(zip(inexact, each, strict=True)))
            asked.append(list(operator.oracle(call, ends, declared)))
    for outputs in zip(*asked, strict=True):
        yield _hull([_known(each) for each in outputs])


def _with_bound(oracle: FormulaOracle, known: Known, declared: str) -> Bounded | Array:
    if isinstance(known, Within):
        taken = number(known.value, arithmetic(declared, known.dtype))
        return Bounded(known.value, np.maximum(known.error, taken.error * 0), taken.arithmetic)
    found: Bounded | Array = oracle.taken(known, declared)
    return found


def _ends(given: Mapping[str, Known], signs: Mapping[str, int | None]) -> dict[str, Tensor]:
    """Return operands of which inexact ones stand at their value, or at an end of their bound, rounded outward, or for
    no sign as near to 0 as their bound lets them."""
    return {
        name: each if isinstance(each, Tensor) else _end(each, signs.get(name, 0))
        for name, each in given.items()
    }


def _end(within: Within, sign: int | None) -> Tensor:
    with np.errstate(all="ignore"):
        value, moves = within.value, (within.error > 0) & np.isfinite(within.error)
        if sign is None:
            sign, value = 0, np.where(np.abs(value) <= within.error, 0.0, value)
        if not DTYPES[within.dtype].is_float:
            storage = DTYPES[within.dtype].storage
            if storage == "|b1" or within.dtype == "bool":
                return Tensor(within.dtype, (value + sign * np.where(moves, within.error, 0.0)) > 0.5)
            limits = np.iinfo(storage)
            moved = np.clip(
                value + sign * np.where(moves, within.error, 0.0), float(limits.min), float(limits.max)
            )
            return Tensor(within.dtype, moved.astype(storage))
        form = FORMATS[within.dtype]
        outward = within.error + form.spacing(np.abs(value) + within.error)
        ends = np.where(moves, value + sign * outward, value)
        anything = np.isinf(within.error) & (sign != 0)
        return Tensor(within.dtype, encode(within.dtype, np.where(anything, sign * np.inf, ends)))


def _expected(known: Known) -> Expected:
    """Return what an output is held against."""
    if isinstance(known, Tensor):
        return Exact(known)
    if DTYPES[known.dtype].is_float:
        return Approx(known.dtype, known.value, known.error)
    low, high = np.ceil(known.value - known.error), np.floor(known.value + known.error)
    steps = int(np.max(high - low, initial=0.0)) if np.isfinite(known.error).all() else _MOST_INTEGERS
    if steps >= _MOST_INTEGERS:
        raise Unfit(f"an output of {known.dtype} may be any of more than {_MOST_INTEGERS} integers")
    storage = DTYPES[known.dtype].storage
    found = [np.minimum(low + step, high).astype(storage) for step in range(steps + 1)]
    return OneOf(tuple(Tensor(known.dtype, each) for each in found))
