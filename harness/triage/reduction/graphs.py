"""Steps that reduce a graph of several operators, and the search that applies those after which the graph
still fails in the same way: fewer outputs, nodes and attributes, plain options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

import msgspec

from harness.model.case import DEPLOYMENTS, Case, Options
from harness.model.dtypes import DTYPES
from harness.specs.graphs.plain import NO_GRAPH, PlainGraph, forget
from harness.specs.graphs.variations import misfit

_PLAIN = {name: getattr(Options(), name) for name in ("shapes", *DEPLOYMENTS)}
"""The usual levels of options that leave the graph as it is."""


def smallest(graph: PlainGraph, name: str, alike: Callable[[Case], bool]) -> PlainGraph:
    """Return the smallest graph with a case that fails alike; each attempt has the name and a number."""
    numbers = count(1)
    smaller: PlainGraph | None = graph
    while smaller is not None:
        graph = smaller
        smaller = next((each for each in _steps(graph) if _is(each, f"{name}{next(numbers)}", alike)), None)
    return graph


def _is(graph: PlainGraph, name: str, alike: Callable[[Case], bool]) -> bool:
    case, _ = graph.known_as(name)
    try:
        return _fits(graph, case) and alike(case)
    finally:
        forget(name)


def _fits(graph: PlainGraph, case: Case) -> bool:
    """Say whether the nodes of a graph fit together."""
    with suppress(*NO_GRAPH):
        return bool(graph.values()) and misfit(case) is None
    return False


def _steps(graph: PlainGraph) -> Iterator[PlainGraph]:
    yield from filter(lambda each: _cost(each) < _cost(graph), map(PlainGraph.pruned, _changes(graph)))


def _cost(graph: PlainGraph) -> tuple[int, ...]:
    return (
        len(graph.nodes),
        len(graph.outputs),
        sum(len(node.attributes) for node in graph.nodes),
        graph.constants_are_nodes
        + sum(getattr(graph.options, name) != level for name, level in _PLAIN.items()),
        len((graph.options.initializer or "").split(",")),
        len(graph.inputs),
    )


def _changes(graph: PlainGraph) -> Iterator[PlainGraph]:
    """Yield graphs with one output, without a node whose value is then an input or a constant, without one whose
    value is then that of its input, without an output, an attribute or an option."""
    for name in graph.made:
        yield graph._replace(outputs=(name,))
    values = graph.values()
    for number, node in reversed(list(enumerate(graph.nodes))):
        rest = graph._replace(nodes=graph.nodes[:number] + graph.nodes[number + 1 :])
        made = {name: values[name] for name in node.outputs if name}
        if not made.keys() & set(graph.outputs):
            if all(DTYPES[each.dtype].is_float for each in made.values()):
                yield rest._replace(inputs={**graph.inputs, **made})
            yield rest._replace(constants={**graph.constants, **made})
        for name in filter(None, node.inputs):
            yield _renamed(rest, node.outputs[0], name)
    for name in graph.outputs:
        yield graph._replace(outputs=tuple(each for each in graph.outputs if each != name))
    for number, node in enumerate(graph.nodes):
        for name in node.attributes:
            fewer = node._replace(
                attributes={key: value for key, value in node.attributes.items() if key != name}
            )
            yield graph._replace(nodes=(*graph.nodes[:number], fewer, *graph.nodes[number + 1 :]))
    yield graph._replace(constants_are_nodes=False)
    yield graph._replace(options=Options(optimization=graph.options.optimization))
    for name, level in {**_PLAIN, "initializer": None}.items():
        options = msgspec.structs.replace(graph.options, **{name: level})
        yield graph._replace(options=options)


def _renamed(graph: PlainGraph, old: str, new: str) -> PlainGraph:
    """Return the graph with one value in the place of another."""

    nodes = tuple(node.called({old: new}) for node in graph.nodes)
    given = {*graph.inputs, *graph.constants}
    named = (new if name == old else name for name in graph.outputs)
    outputs = tuple(dict.fromkeys(name for name in named if name not in given))
    return graph._replace(nodes=nodes, outputs=outputs)
