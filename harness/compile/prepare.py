"""Prepares cases: generates inputs, compiles graphs or lowers DirectML calls, and puts consecutive cases of one graph
together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from harness.compile.composed import as_run
from harness.compile.directml import lowered
from harness.compile.directml import prepared as laid_out
from harness.compile.graphs import compile_case
from harness.model.case import Case, TensorSpec
from harness.model.target_info import DIRECTML
from harness.operators import OPERATORS
from harness.operators.directml.lowering import NotExpressible, lower
from harness.specs.graphs import deployments
from harness.specs.graphs.operator import FAMILY
from harness.specs.sweeps.calls import StreamLayout, call_of, case_inputs, chosen_inputs, sized_layout
from harness.specs.sweeps.sessions import earlier_case
from harness.targets.execution import Graph, GraphCases, Prepared

_CASES = 512
Refuse = Callable[[Case, str], None]


def by_graph(
    cases: Iterable[Case], seed: int, provider: str = "", refuse: Refuse = lambda _case, _reason: None
) -> Iterator[GraphCases]:
    """Yield graphs with at most some hundred cases each; `refuse` receives each that the
    provider's API cannot express."""
    alike: _Alike | _Composed | None = None
    current: Graph | None = None
    collected: list[Prepared] = []
    for case in cases:
        try:
            if provider == DIRECTML:
                graph, prepared = _lowered(case, seed)
            else:
                if alike is None or not alike.holds(case):
                    composed = OPERATORS[case.operator].family is FAMILY
                    alike = _Composed(case, provider, seed) if composed else _Alike(case, provider)
                graph, prepared = alike.prepare(case, seed)
        except NotExpressible as error:
            refuse(case, str(error))
            continue
        if current is not None and (not _alike(graph, current) or len(collected) >= _CASES):
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
            _as_graph(case, provider)
    except NotExpressible as error:
        return str(error)
    return None


def _as_graph(case: Case, provider: str) -> None:
    if case.directml is not None:
        raise NotExpressible("a call of DirectML's own API, which no ONNX graph expresses")
    why = deployments.refusal(case, provider)
    if why is not None:
        raise NotExpressible(why)


class _Alike:
    """What cases have in common that differ in the values of their inputs alone, as neighbours do: the call, the
    graph unless inputs are part of it, and the layouts of the inputs by which of them the operator chooses."""

    def __init__(self, case: Case, provider: str) -> None:
        _as_graph(case, provider)
        self.case = case
        self.call = call_of(case)
        operator = OPERATORS[case.operator]
        self.shapes = operator.family.output_shapes(operator, self.call)
        self.graph: Graph | None = None
        self._layouts: dict[tuple[bool, ...], StreamLayout] = {}

    def holds(self, case: Case) -> bool:
        """Say whether a case is one of them. Written-out elements may decide the call: such a case stands alone."""
        first = self.case
        return (
            case.attributes is first.attributes
            and case.options is first.options
            and case.operator is first.operator
            and case.opset == first.opset
            and case.literals is first.literals is None
            and case.directml is first.directml
            and len(case.inputs) == len(first.inputs)
            and all(map(_same_type, case.inputs, first.inputs))
        )

    def prepare(self, case: Case, seed: int) -> tuple[Graph, Prepared]:
        """Return graph and inputs of one of them."""
        call = self.call
        chosen = chosen_inputs(case)
        layout = self._layouts.get(chosen)
        if layout is None:
            layout = self._layouts[chosen] = sized_layout(case, chosen)
        inputs = case_inputs(call, case, seed, layout)
        graph = self.graph
        if graph is None:
            graph = compile_case(case, call, inputs, self.shapes)
            self.graph = graph if case.options.initializer is None else None
        if case.options.after is None:
            return graph, Prepared(case, call, inputs, inferred=self.shapes)
        earlier = earlier_case(case)
        assert earlier is not None
        return graph, Prepared(
            case,
            call,
            inputs,
            inferred=self.shapes,
            before=case_inputs(earlier[1], earlier[0], seed),
        )


class _Composed:
    """What cases of a graph of several operators have in common that differ in its level of optimisation and its
    deployment alone: call, inputs and model."""

    def __init__(self, case: Case, provider: str, seed: int) -> None:
        _as_graph(case, provider)
        self.provider = provider
        self.operator = OPERATORS[case.operator]
        self.elements = FAMILY.elements_of(case.id)
        call = call_of(case)
        inputs, shapes = case_inputs(call, case, seed), FAMILY.output_shapes(self.operator, call)
        self.graph = compile_case(case, call, inputs, shapes)
        self.prepared = Prepared(case, call, inputs, inferred=shapes)

    def holds(self, case: Case) -> bool:
        """Say whether a case is one of them."""
        first = self.prepared.case
        return (
            OPERATORS[case.operator] is self.operator
            and case.literals is first.literals
            and FAMILY.elements_of(case.id) == self.elements
        )

    def prepare(self, case: Case, _seed: int) -> tuple[Graph, Prepared]:
        """Return graph and inputs of one of them."""
        _as_graph(case, self.provider)
        call, inputs = self.prepared.call, self.prepared.inputs
        return as_run(self.graph, case, call, inputs), self.prepared._replace(case=case)


def with_inputs(case: Case, seed: int = 0) -> Prepared:
    """Return a case with its call and its inputs alone."""
    call = call_of(case)
    return Prepared(case, call, case_inputs(call, case, seed))


def _same_type(one: TensorSpec, other: TensorSpec) -> bool:
    return (
        one.shape == other.shape
        and one.dtype == other.dtype
        and one.name == other.name
        and one.elements == other.elements
    )


def _lowered(case: Case, seed: int) -> tuple[Graph, Prepared]:
    call = call_of(case)
    description = lower(case, call)
    return lowered(case, call, description), laid_out(case, call, case_inputs(call, case, seed), description)


def _alike(a: Graph, b: Graph) -> bool:
    """Say whether one session can run both: the same bytes, optimised and bound in the same way, with the
    same element types."""
    return a is b or (a.digest == b.digest and a._replace(model=b.model) == b)
