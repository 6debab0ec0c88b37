"""Deployments: how an application runs a graph, which changes no result. Few cases show every two of their levels
together, those of optimisation among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from harness.model.case import DEPLOYMENTS, Case
from harness.model.target_info import DML
from harness.operators import OPERATORS
from harness.operators.base import UNKNOWN
from harness.specs.graphs.operator import filled_graph
from harness.specs.graphs.pattern import Pattern
from harness.specs.graphs.variations import DEPLOYED, cases_of, combined, made, misfit, with_option
from harness.specs.sweeps.calls import call_of
from harness.specs.sweeps.covering import covering

if TYPE_CHECKING:
    from harness.specs.graphs.schema import GraphSweep

_REFUSED = {
    "concurrent": "DirectML's execution provider forbids runs of one session at the same time",
    "execution": "DirectML's execution provider forbids parallel execution",
}
Level = tuple[str, Any]


def graph_cases(pattern: Pattern, left_out: Counter[str]) -> list[Case]:
    """Return all cases of a graph; count by reason the combinations that make none."""
    found: list[Case] = []
    for sweep in pattern.spec.sweeps:
        found += cases_of(pattern, sweep, left_out)
        found += _deployed(pattern, sweep) if sweep.deployed else ()
    return found


def _deployed(pattern: Pattern, sweep: GraphSweep) -> Iterator[Case]:
    base = {**next(combined(pattern, sweep)), "shapes": "symbolic", "exposed": ""}
    plain = made(pattern, sweep, base)
    for levels in _deployments(plain):
        exposed = _inner_value(plain) if levels["exposed"] else ""
        case = made(pattern, sweep, {**base, **levels, "exposed": exposed})
        yield with_option(case, "optimization", levels["optimization"])


def _deployments(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the levels of few cases of a graph, in which every two stand together that its graph can have."""
    had = deployments_of(case)
    for row in _rows(tuple(map(len, had.values()))):
        levels = {name: had[name][level] for name, level in zip(had, row, strict=True)}
        if any(levels[name] is not None for name in DEPLOYMENTS):
            yield levels


def deployments_of(case: Case) -> dict[str, list[Any]]:
    """Return the levels of each option that a graph can have, the usual one first."""
    without = frozenset(_without(case))
    return {
        name: [each for each in levels if (name, each) not in without] for name, levels in DEPLOYED.items()
    }


@lru_cache(maxsize=64)
def _rows(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    return covering(sizes, lambda _: None, "deployments").rows


def _without(case: Case) -> Iterator[Level]:
    """Yield the levels that a graph cannot have."""
    operator, call = OPERATORS[case.operator], call_of(case)
    constant = (case.options.initializer or "").split(",")
    fed = [each for each in case.inputs if each.name not in constant]
    graph = filled_graph(operator, call)
    texts = "string" in {*call.outputs, *(each.dtype for each in case.inputs)}
    if texts or any(UNKNOWN in shape for shape in operator.family.output_shapes(operator, call)):
        yield "binding", "own"
    if texts or not ((graph.constants and not graph.constants_are_nodes) or len(fed) < len(case.inputs)):
        yield "initializers", "shared"
    if case.options.shapes != "symbolic" or not any(each.shape for each in fed):
        yield "dimensions", "fixed"
    if not _inner_value(case):
        yield "exposed", "value"


def _inner_value(case: Case) -> str:
    """Return the first tensor that a node makes and that is no output."""
    graph = filled_graph(OPERATORS[case.operator], call_of(case))
    inner = (name for node in graph.nodes for name in node.outputs if name and name not in graph.outputs)
    shown = (msgspec.structs.replace(case, attributes={**case.attributes, "exposed": name}) for name in inner)
    return next((str(each.attributes["exposed"]) for each in shown if misfit(each) is None), "")


def refusal(case: Case, provider: str) -> str | None:
    """Return why a provider does not run a deployment; None where it may."""
    asked = [why for name, why in _REFUSED.items() if getattr(case.options, name) is not None]
    return asked[0] if asked and provider == DML else None
