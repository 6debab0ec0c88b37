"""Element types and shapes of a graph's outputs, node by node, as far as the families of its operators tell them.

A node is evaluated where elements that it gives may decide a shape or break a rule further on: one of exact tensors,
unless it rounds. Of any other its family says what its formula gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.onnx_schemas import operator_schema
from harness.operators import OPERATORS
from harness.operators.base import UNKNOWN, Call, Family, Shape
from harness.operators.formulas import FormulaOracle
from harness.specs.graphs.composition import limit_elements, operands, valid_call
from harness.specs.graphs.known import Form, known_of, shape_of
from harness.specs.graphs.pattern import FilledGraph, GraphNode

_Found = Tensor | Form


class _ElementsDecide(Exception):
    """Elements of a tensor that has only a form decide what a node gives."""


def forms(
    graph: FilledGraph, opset: int, inputs: Mapping[str, Tensor], declared: str
) -> tuple[tuple[str, Shape], ...] | None:
    """Return element type and shape of each output that `composed` gives for these inputs in any arithmetic; None where
    only composition tells them. Raises Unfit as that does."""
    if any(node.subgraphs or _takes_lists(node.operator, opset) for node in graph.nodes):
        return None
    known: dict[str, _Found] = {**inputs, **graph.constants}
    try:
        for node in graph.nodes:
            for name, found in zip(node.outputs, _outputs(node, opset, known, declared), strict=True):
                known[name] = found
                limit_elements(name, found)
    except _ElementsDecide:
        return None
    return tuple((known[name].dtype, shape_of(known[name])) for name in graph.outputs)


@cache
def _takes_lists(operator: str, opset: int) -> bool:
    """Say whether sequences or optionals are among what an operator takes and gives."""
    schema = operator_schema(operator, opset)
    return any(each.sequence or each.optional_type for each in (*schema.inputs, *schema.outputs))


def _outputs(node: GraphNode, opset: int, known: Mapping[str, _Found], declared: str) -> Sequence[_Found]:
    operator = OPERATORS[node.operator]
    given = operands(node, opset, known)
    formed = {name: each for name, each in given.items() if isinstance(each, Form)}
    exact = any(each.exact for each in formed.values())
    decides = type(operator.family).broken_by_values is not Family.broken_by_values
    if (exact and decides) or not formed.keys().isdisjoint(operator.constants):
        raise _ElementsDecide
    call, tensors = valid_call(operator, node, opset, given)
    oracle = operator.oracle
    way = oracle.way if isinstance(oracle, FormulaOracle) else None
    dtypes = {*call.outputs, *(each.dtype for each in given.values())}
    rounds = way == "bounded" and given and all(DTYPES[dtype].is_float for dtype in dtypes)
    if not formed and not rounds:
        found = map(known_of, oracle(call, tensors, declared))
        return [each if isinstance(each, Tensor) else Form(each.dtype, each.shape, False) for each in found]
    if isinstance(oracle, FormulaOracle) and way == "moved" and not exact:
        return [*_moved(oracle, call, given)]
    shapes = operator.family.output_shapes(operator, call)
    if len(shapes) < len(call.outputs) or any(UNKNOWN in shape for shape in shapes):
        raise _ElementsDecide
    return [
        Form(dtype, shape, exact or not DTYPES[dtype].is_float)
        for dtype, shape in zip(call.outputs, shapes, strict=False)
    ]


def _moved(oracle: FormulaOracle, call: Call, given: Mapping[str, _Found]) -> Iterable[_Found]:
    """Yield the outputs of a formula that moves elements of one type without looking at them."""
    arrays = {
        name: each.array if isinstance(each, Tensor) else np.zeros(each.shape, DTYPES[each.dtype].storage)
        for name, each in given.items()
    }
    moved = {each.dtype for each in given.values() if isinstance(each, Form)}
    if len(moved) > 1:
        raise _ElementsDecide
    for dtype, found in zip(call.outputs, oracle.given(call, arrays, lambda each: each), strict=True):
        array = np.asarray(found)
        yield Form(dtype, array.shape, False) if dtype in moved else Tensor(dtype, array)
