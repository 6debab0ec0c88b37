"""The oracle of a graph: composes the formulas of its nodes; each takes the values of the earlier nodes and
the bounds on their errors.

A value between nodes is a tensor, known to the bit, or `Within` a bound. What a node makes of the latter follows
from how its formula treats elements:

- One that rounds takes numbers with a bound, as its own inputs would be (running error analysis).
- One that moves elements moves each bound with its value, unless what chooses them is inexact as well.
- Any other is asked at the value, at both ends of its bound, and at 0 where the bound reaches it. It is right where
  an output is monotone in each input, or turns at 0 alone: comparisons with constants, roundings, conversions,
  minima and maxima, absolute values, quantisation. Decisions
  that depend on two inexact values at once (`ArgMax`, `TopK`, `Equal`) need inputs that are exact. So does what decides a
  shape (`Unique`).

The bounds are those of each node in its own element type. A kernel that does the work of several nodes rounds
less often, and a transformer that moves a factor to a constant rounds as often: both stay within them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple, TypeVar

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Expected
from harness.model.float_formats import FORMATS, encode
from harness.model.onnx_schemas import operator_schema
from harness.operators import OPERATORS
from harness.operators.base import Call, Operator, TensorType
from harness.operators.bounded import Bounded, arithmetic, number
from harness.operators.formulas import FormulaOracle
from harness.specs.graphs.control_flow import CONTROL_FLOW
from harness.specs.graphs.known import (
    Form,
    Known,
    Shapeless,
    TensorList,
    Value,
    Within,
    expected_of,
    form_of,
    hull,
    known_of,
    numbers_of,
    shape_of,
    tensor_of,
    value_of,
)
from harness.specs.graphs.pattern import FilledGraph, GraphNode, Unfit
from harness.specs.reading.literals import MAX_ELEMENTS
from harness.specs.sweeps.calls import make_call

_Value = TypeVar("_Value")
_MOST_CORNERS = 8
_TRACED = 1 << 40
"""The number of the first element that is followed through a node that moves elements: no such node fills with it."""


def composed(
    graph: FilledGraph,
    opset: int,
    inputs: Mapping[str, Tensor],
    declared: str,
    *,
    bounds: bool = True,
    operators: Mapping[str, Operator] = OPERATORS,
) -> tuple[Expected, ...]:
    """Return the expected result of each output of a graph in a declared arithmetic; raise Unfit if a node cannot
    take its operands. Without `bounds`, element types and shapes are right, and bounds may be too narrow. Formulas
    are those of `operators`."""
    found = _made(graph, _Way(opset, declared, bounds, operators), inputs)
    return tuple(
        expected_of(tensor_of(each)) if isinstance(each, (Tensor, Within, TensorList)) else each
        for each in found
    )


class _Way(NamedTuple):
    """How a graph is composed: see `composed`."""

    opset: int
    declared: str
    bounds: bool
    operators: Mapping[str, Operator]


def _made(graph: FilledGraph, way: _Way, around: Mapping[str, Value]) -> list[Value | Expected]:
    """Return the outputs of a graph, or of one in a node, whose nodes take tensors `around` it as well."""
    known: dict[str, Value] = {**around, **graph.constants}
    expected: dict[str, Expected] = {}
    for node in graph.nodes:
        for name, found in zip(node.outputs, _outputs(node, way, known), strict=True):
            if isinstance(found, (Tensor, Within, TensorList)):
                known[name] = found
            else:
                expected[name], known[name] = found, known_of(found)
            value = known[name]
            for each in value.tensors if isinstance(value, TensorList) else (value,):
                limit_elements(name, each)
    return [expected.get(name) or known[name] for name in graph.outputs]


def limit_elements(name: str, known: Known | Form) -> None:
    """Raise Unfit if a tensor has more elements than any may have."""
    count = math.prod(shape_of(known))
    if name and count > MAX_ELEMENTS:
        raise Unfit(f"{name} has {count:,} elements, above the limit of {MAX_ELEMENTS:,} per tensor")


def _outputs(node: GraphNode, way: _Way, known: Mapping[str, Value]) -> Iterable[Value | Expected]:
    """Return the outputs of a node. Those that a sequence or an optional is written out as are one."""
    values = operands(node, way.opset, known)
    if node.operator in CONTROL_FLOW:

        def run(name: str, fed: Sequence[Value] = ()) -> list[Value | Expected]:
            graph = node.subgraphs[name]
            if len(fed) != len(graph.inputs):
                raise Unfit(f"{name} of {node.operator} takes {len(fed)} inputs, not {len(graph.inputs)}")
            around = {**known, **dict(zip(graph.inputs, fed, strict=True))}
            return _made(graph, way, around)

        return CONTROL_FLOW[node.operator](node, values, run)
    given = dict(_written_out(node, way.opset, values))
    found = [*_computed(node, way, given)]
    if any(isinstance(each, Shapeless) for each in given.values()):
        flat = {name: _flat(each) for name, each in given.items()}
        if [*map(form_of, found)] != [*map(form_of, _computed(node, way, flat))]:
            raise Unfit("slices of a body that never runs have no shape")
    last = operator_schema(node.operator, way.opset).outputs[-1]
    if last.sequence or last.optional_type:
        return [TensorList(tuple(tensor_of(value_of(each)) for each in found[1:]))]
    return found


def _flat(known: Known) -> Known:
    return Tensor(known.dtype, known.array.reshape(-1)) if isinstance(known, Shapeless) else known


def _written_out(node: GraphNode, opset: int, values: Mapping[str, Value]) -> Iterator[tuple[str, Known]]:
    """Yield the tensors of sequences as variadic inputs, and that of an optional, if it has one, as a plain one."""
    schema = operator_schema(node.operator, opset)
    for name, each in values.items():
        formal = schema.input(name)
        assert formal is not None
        if formal.sequence != (isinstance(each, TensorList) and not formal.optional_type):
            raise Unfit(f"{node.operator} takes {'a sequence' if formal.sequence else 'a tensor'} for {name}")
        if not isinstance(each, TensorList):
            yield name, each
        elif formal.sequence:
            yield from ((f"{name}.{number}", one) for number, one in enumerate(each.tensors))
        else:
            yield from ((name, one) for one in each.tensors)


def _computed(node: GraphNode, way: _Way, given: Mapping[str, Known]) -> Iterable[Known | Expected]:
    """Return the outputs of a node's operator for tensors; for exact ones those of its own oracle."""
    operator = way.operators[node.operator]
    call, exact = valid_call(operator, node, way.opset, given)
    if len(exact) == len(given):
        return operator.oracle(call, exact, way.declared)
    oracle = operator.oracle
    inexact = {each.dtype for each in given.values() if isinstance(each, Within)}
    if isinstance(oracle, FormulaOracle) and oracle.way == "moved" and inexact <= {*call.outputs}:
        return _moved(oracle, call, given)
    return _at_corners(operator, call, given, way.declared, way.bounds)


def operands(node: GraphNode, opset: int, known: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return what the node takes under the formal names of its inputs."""
    parameters = operator_schema(node.operator, opset).inputs
    found: dict[str, _Value] = {}
    for position, name in enumerate(node.inputs):
        formal = parameters[min(position, len(parameters) - 1)]
        if position >= len(parameters) and not formal.variadic:
            raise Unfit(f"{node.operator} takes {len(parameters)} inputs, not {len(node.inputs)}")
        if name:
            counted = formal.variadic and not formal.sequence
            place = f"{formal.name}.{position - len(parameters) + 1}" if counted else formal.name
            found[place] = known[name]
    return found


def valid_call(
    operator: Operator, node: GraphNode, opset: int, given: Mapping[str, Known | Form]
) -> tuple[Call, dict[str, Tensor]]:
    """Return the call of a node's operator and its exact inputs; raise Unfit if it breaks a rule."""
    call = _call(operator, node, opset, given)
    exact = {name: each for name, each in given.items() if isinstance(each, Tensor)}
    broken = operator.unlike_constants(call) or (
        operator.broken(call, exact) if len(exact) == len(given) else operator.broken_rule(call)
    )
    if broken is not None:
        raise Unfit(f"{node.operator} of {', '.join(filter(None, node.inputs))} breaks the rule: {broken}")
    return call, exact


def _call(operator: Operator, node: GraphNode, opset: int, given: Mapping[str, Known | Form]) -> Call:
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
    missing = [
        name for name, each in schema.attributes.items() if each.required and name not in node.attributes
    ]
    if missing:
        raise Unfit(f"{node.operator} needs the attribute {missing[0]}")
    constants = {
        name: each.array
        for name, each in given.items()
        if name in operator.constants and isinstance(each, Tensor)
    }
    types = {name: TensorType(each.dtype, shape_of(each)) for name, each in given.items()}
    several = schema.outputs[-1].sequence or schema.outputs[-1].optional_type
    count = None if several else len(node.outputs)
    return make_call(operator, opset, types, node.attributes, constants, None, count)


def _moved(oracle: FormulaOracle, call: Call, given: Mapping[str, Known]) -> Iterator[Known]:
    """Follow each element of an inexact input to its places in the outputs."""
    followed = [each for each in given.values() if isinstance(each, Within)]
    errors = np.concatenate([each.error.reshape(-1) for each in followed])
    one, first = followed[0].dtype, _TRACED
    values: dict[str, Array] = {}
    numbers: dict[str, Array] = {}
    for name, each in given.items():
        if isinstance(each, Within):
            values[name] = each.value
            numbers[name] = np.arange(first, first + each.value.size).reshape(each.shape)
            first += each.value.size
        elif each.dtype == one:
            values[name], numbers[name] = numbers_of(each), np.zeros(each.array.shape, np.int64)
        else:  # indices
            values[name] = numbers[name] = each.array
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


def _at_corners(
    operator: Operator, call: Call, given: Mapping[str, Known], declared: str, bounds: bool
) -> Iterator[Known]:
    """Ask at the values, where all of an inexact input lie at one end of their bounds, and where they lie nearest to 0,
    at which even functions turn; a formula that rounds takes the bounds themselves as well."""
    inexact = {name: each for name, each in given.items() if isinstance(each, Within)}
    asked = []
    oracle = operator.oracle
    if (
        isinstance(oracle, FormulaOracle)
        and oracle.way == "bounded"
        and all(DTYPES[each.dtype].is_float for each in inexact.values())
    ):
        found = oracle.given(call, given, lambda each: _with_bound(oracle, each, declared))
        asked.append([oracle.expected(dtype, one) for dtype, one in zip(call.outputs, found, strict=True)])
    else:
        values = {name: _end(each, 0) for name, each in inexact.items()}
        asked.append(list(operator.oracle(call, _with_ends(given, values), declared)))
    if bounds and any(np.count_nonzero(each.error) for each in inexact.values()):
        ends = {(name, sign): _end(each, sign) for name, each in inexact.items() for sign in (-1, 1, None)}
        signs: list[tuple[int | None, ...]] = list(product((-1, 1), repeat=len(inexact)))
        if len(signs) > _MOST_CORNERS:
            signs = [(-1,) * len(inexact), (1,) * len(inexact)]
        for each in (*signs, (None,) * len(inexact)):
            corner = {name: ends[name, sign] for name, sign in zip(inexact, each, strict=True)}
            asked.append(list(operator.oracle(call, _with_ends(given, corner), declared)))
    for outputs in zip(*asked, strict=True):
        found = [known_of(each) for each in outputs]
        if len({shape_of(each) for each in found}) > 1:
            raise Unfit(f"inexact inputs of {operator.name} decide the shape of an output")
        yield hull(found)


def _with_bound(oracle: FormulaOracle, known: Known, declared: str) -> Bounded | Array:
    if isinstance(known, Within):
        taken = number(known.value, arithmetic(declared, known.dtype))
        return Bounded(known.value, np.maximum(known.error, taken.error * 0), taken.arithmetic)
    found: Bounded | Array = oracle.taken(known, declared)
    return found


def _with_ends(given: Mapping[str, Known], ends: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return operands with elements in place of the inexact ones."""
    return {name: each if isinstance(each, Tensor) else ends[name] for name, each in given.items()}


def _end(within: Within, sign: int | None) -> Tensor:
    """Return an inexact operand at its value (0), at the lower or upper end of its bound, rounded outward, or, without a
    sign, at the number nearest to 0 within the bound."""
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
