"""A graph as an operator: the family that chooses its elements and infers its outputs, and its oracle, by which
cases of graphs travel as those of operators do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

import numpy as np

from harness.model import onnx_schemas
from harness.model.case import DEPLOYMENTS, Tensor, Value
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Expected
from harness.operators import OPERATORS
from harness.operators.base import UNKNOWN, Call, Operator, Shape, Undefined
from harness.operators.computing import Computing
from harness.specs.graphs.composition import composed
from harness.specs.graphs.forms import forms
from harness.specs.graphs.pattern import FilledGraph, Pattern, Unfit

_KEPT = 32
"""How many compositions are kept for the other levels of optimisation."""
_AS_RUN = re.compile(rf";({'|'.join(('optimization', *DEPLOYMENTS))})=[^;]*")
_SAMPLE = "opencl"
"""The arithmetic in which outputs are inferred; their types and shapes are the same in any."""


class GraphFamily(Computing):
    """Graphs of several operators: elements of any kind, outputs as the composition gives them."""

    def elements_of(self, case_id: str) -> str:
        """Return the id without the level of optimisation and the deployment: all compute with the same elements."""
        return _AS_RUN.sub("", case_id)

    def output_count(self, operator: Operator, call: Call) -> int:
        return len(filled_graph(operator, call).outputs)

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        return tuple(dtype for dtype, _ in _inferred(operator.options, *_form(operator, call)))

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        return tuple(shape for _, shape in _inferred(operator.options, *_form(operator, call)))


FAMILY = GraphFamily()
_Form = tuple[int, tuple[tuple[str, str], ...], tuple[tuple[str, Shape], ...], tuple[tuple[str, Value], ...]]


def filled_graph(operator: Operator, call: Call) -> FilledGraph:
    """Return the graph that a call of it is."""
    opset, dtypes, _, attributes = _form(operator, call)
    pattern: Pattern = operator.options
    return pattern.filled(opset, dtypes, attributes)


def _form(operator: Operator, call: Call) -> _Form:
    return (
        call.opset,
        tuple((name, each.dtype) for name, each in call.inputs.items()),
        tuple((name, each.shape) for name, each in call.inputs.items()),
        tuple(sorted(call.attributes.items())),
    )


@lru_cache(maxsize=4096)
def _inferred(
    pattern: Pattern,
    opset: int,
    dtypes: tuple[tuple[str, str], ...],
    shapes: tuple[tuple[str, Shape], ...],
    attributes: tuple[tuple[str, Value], ...],
) -> tuple[tuple[str, Shape], ...]:
    """Return element type and shape of each output, by what nodes say of tensors of ones or by the composition of these; of
    a graph whose nodes choose what runs, of zeros as well where they have a result: an extent that is another is UNKNOWN."""
    of_shape, graph = dict(shapes), pattern.filled(opset, dtypes, attributes)

    def inputs_of(number: int) -> dict[str, Tensor]:
        return {name: Tensor(dtype, _filled(number, dtype, of_shape[name])) for name, dtype in dtypes}

    written = forms(graph, opset, inputs_of(1), _SAMPLE)
    if written is not None:
        return written
    found = []
    for number in (1, 0) if any(node.subgraphs for node in graph.nodes) else (1,):
        with suppress(*(() if number else (Undefined,))):
            outputs = composed(graph, opset, inputs_of(number), _SAMPLE, bounds=False)
            found.append([(each.dtype, each.shape) for each in outputs])
    return tuple(_either(each) for each in zip(*found, strict=True))


def _either(forms: Sequence[tuple[str, Shape]]) -> tuple[str, Shape]:
    types, ranks = {dtype for dtype, _ in forms}, {len(shape) for _, shape in forms}
    if len(types) > 1 or len(ranks) > 1:
        raise Unfit("what runs decides the type or the rank of an output")
    extents = zip(*(shape for _, shape in forms), strict=True)
    return types.pop(), tuple(each[0] if len(set(each)) == 1 else UNKNOWN for each in extents)


def _filled(number: int, dtype: str, shape: Shape) -> Array:
    if dtype == "bfloat16":
        return np.full(shape, 0x3F80 * number, np.uint16)
    if dtype == "string":
        return np.full(shape, str(number), object)
    return np.full(shape, number, DTYPES[dtype].storage)


def _elements(tensor: Tensor) -> object:
    return tuple(tensor.array.flat) if tensor.dtype == "string" else tensor.array.tobytes()


def oracle(pattern: Pattern) -> Operator:
    """Return a graph as an operator."""

    latest: dict[object, tuple[Expected, ...]] = {}

    def expected(call: Call, inputs: Mapping[str, Tensor], arithmetic: str) -> tuple[Expected, ...]:
        """Return what the composition gives, once for all levels of optimisation, which compute with the same elements."""
        form = _form(operator, call)
        key = (form, repr(form[-1]), arithmetic, *map(_elements, inputs.values()))
        if key not in latest:
            if len(latest) >= _KEPT:
                del latest[next(iter(latest))]
            latest[key] = composed(filled_graph(operator, call), call.opset, inputs, arithmetic)
        return latest[key]

    operator = Operator(pattern.spec.graph, FAMILY, expected, options=pattern)
    return operator


def register(pattern: Pattern) -> Operator:
    """Make a graph known under its name, as operators are."""
    name = pattern.spec.graph
    known = OPERATORS.get(name)
    if known is not None and isinstance(known.options, Pattern) and known.options.spec == pattern.spec:
        return known  # with the outputs that were inferred of it
    operator = oracle(pattern)
    OPERATORS[name] = operator
    onnx_schemas.register_graph(name, pattern.schema)
    return operator
