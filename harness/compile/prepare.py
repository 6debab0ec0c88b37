"""Turns cases into units: generates inputs, compiles graphs or lowers DirectML calls, and groups consecutive
cases of one graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from harness.compile.directml import lowered
from harness.compile.directml import prepared as laid_out
from harness.compile.graphs import compile_case
from harness.model.records import DIRECTML, Case
from harness.operators.directml.lowering import NotExpressible, lower
from harness.specs.calls import call_of
from harness.specs.values import case_inputs
from harness.targets.execution import Graph, GraphCases, Prepared

_UNIT_CASES = 512
Refuse = Callable[[Case, str], None]


def units(
    cases: Iterable[Case], seed: int, provider: str = "", refuse: Refuse = lambda _case, _reason: None
) -> Iterator[GraphCases]:
    """Yield the cases as units of at most some hundred cases each; `refuse` is told of each that the
    provider's API cannot express."""
    prepare = _lowered if provider == DIRECTML else _compiled
    current: Graph | None = None
    collected: list[Prepared] = []
    for case in cases:
        try:
            graph, prepared = prepare(case, seed)
        except NotExpressible as error:
            refuse(case, str(error))
            continue
        if current is not None and (not _alike(graph, current) or len(collected) >= _UNIT_CASES):
            yield GraphCases(current, collected)
            collected = []
        current = graph
        collected.append(prepared)
    if current is not None and collected:
        yield GraphCases(current, collected)


def refusal(case: Case, provider: str) -> str | None:
    """Return why a provider's API cannot express a case, None where it can."""
    try:
        if provider == DIRECTML:
            lower(case, call_of(case))
        else:
            _as_graph(case)
    except NotExpressible as error:
        return str(error)
    return None


def _as_graph(case: Case) -> None:
    if case.directml is not None:
        raise NotExpressible("a call of DirectML's own API, which no ONNX graph expresses")


def _compiled(case: Case, seed: int) -> tuple[Graph, Prepared]:
    _as_graph(case)
    call = call_of(case)
    inputs = case_inputs(call, case, seed)
    return compile_case(case, call, inputs), Prepared(case, call, inputs)


def _lowered(case: Case, seed: int) -> tuple[Graph, Prepared]:
    call = call_of(case)
    description = lower(case, call)
    return lowered(case, call, description), laid_out(case, call, case_inputs(call, case, seed), description)


def _alike(a: Graph, b: Graph) -> bool:
    """Say whether one session can run both: the same bytes, optimised and bound in the same way, with the
    same element types."""
    return a is b or (a.digest == b.digest and a._replace(model=b.model) == b)
