"""Reads a spec of a graph and checks all that can be wrong with it, each problem with its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pydantic import ValidationError

from harness.model import onnx_schemas, signatures
from harness.model.case import DEPLOYMENTS
from harness.model.caseid import value_text
from harness.model.errors import SpecError
from harness.model.onnx_schemas import OpsetUnavailable, UnknownOperator
from harness.model.reference import kernels
from harness.operators import OPERATORS, elements
from harness.specs.graphs.control_flow import CONTROL_FLOW
from harness.specs.graphs.operator import register
from harness.specs.graphs.pattern import OPTIONS, Pattern, Unfit, every_node, parameters_in, plain
from harness.specs.graphs.schema import GraphSpec, Subgraph
from harness.specs.graphs.variations import (
    NODE_OPTIONS,
    combined,
    factor_names,
    factor_problem,
    lost_levels,
    made,
    misfit,
)
from harness.specs.reading.attribute_values import WrongValue
from harness.specs.reading.literals import LiteralError
from harness.specs.reading.problems import validation_problems
from harness.specs.reading.source import Key, KeyPath, Source

_MACHINE_LEARNING = "ai.onnx.ml."


def graph_spec(file: Source) -> GraphSpec:
    """Return what a file says of a graph. Errors: SpecError with every problem that the file alone has."""
    problems: list[str] = []
    try:
        spec = GraphSpec.model_validate(file.tree)
    except ValidationError as error:
        raise SpecError(file.by_line(validation_problems(file, error, GraphSpec))) from error
    if spec.graph in onnx_schemas.operator_versions():
        problems.append(
            file.problem(("graph",), f"{spec.graph} is an operator of ONNX; give the graph a name of its own")
        )
    for check in (_names, _operators, _fused):
        problems += check(file, spec)
    if problems:
        raise SpecError(file.by_line(problems))
    return spec


def load_graph(file: Source, spec: GraphSpec, others: Mapping[str, str]) -> Pattern:
    """Return the graph of a checked file and register it as an operator; raise SpecError with every problem. `others` are
    the graphs of other files, and where they are named."""
    if spec.graph in others:
        what = (
            f"the name {spec.graph!r} is already used, {others[spec.graph]}; give the graph a name of its own"
        )
        raise SpecError([file.problem(("graph",), what)])
    pattern = Pattern(spec)
    if problems := list(_factors(file, pattern)):
        raise SpecError(file.by_line(problems))
    register(pattern)
    return pattern


def _names(file: Source, spec: GraphSpec) -> Iterator[str]:
    """Check that each tensor is made once, before it is taken, and is used."""
    made_at: dict[str, KeyPath] = {name: ("inputs", name) for name in spec.inputs}
    made_at |= {name: ("constants", name) for name in spec.constants}
    taken = set(spec.outputs)
    yield from _names_of(file, (), spec, made_at, taken)
    for name in spec.parameters:
        if name in (*NODE_OPTIONS, *OPTIONS, *DEPLOYMENTS):
            what = f"{name!r} is a factor of every graph; give the parameter another name"
            yield file.problem(("parameters", name), what)
    by_parameter = {text for value in spec.parameters.values() for text in _texts(value)}
    by_parameter |= {
        text for sweep in spec.sweeps for levels in sweep.factors.values() for text in _texts(levels)
    }
    for kind in ("inputs", "constants"):
        for name in getattr(spec, kind) if spec.sweeps else ():
            if name not in taken and name not in by_parameter:
                yield file.problem((kind, name), f"no node takes {name!r}; remove it")
    referred = _referred(spec)
    for name in spec.parameters if spec.sweeps else ():
        if name not in referred:
            what = f"nothing takes '${name}': its levels would differ in name alone; remove it"
            yield file.problem(("parameters", name), what)
    types = {given.type for given in spec.inputs.values()} | referred | set(list(spec.types)[:1])
    for graph in _graphs(spec):
        types |= {each.type for each in graph.constants.values() if each.type is not None}
        types |= set(graph.types.values()) if isinstance(graph, Subgraph) else set()
    for name in spec.types if spec.sweeps else ():
        if name not in types:
            what = f"nothing is of the type {name!r}: its levels would differ in name alone; remove it"
            yield file.problem(("types", name), what)


def _graphs(spec: GraphSpec) -> Iterable[GraphSpec | Subgraph]:
    """Return the graph and those in its nodes."""
    return [spec, *(inner for _, node in every_node(spec.nodes) for inner in node.subgraphs.values())]


def _referred(spec: GraphSpec) -> set[str]:
    """Return the names of parameters that something refers to."""
    values: list[object] = []
    for graph in _graphs(spec):
        values += [graph.outputs, *(each.values for each in graph.constants.values())]
    for _, node in every_node(spec.nodes):
        values += [node.operator, node.inputs, node.outputs, *node.attributes.values()]
    return set(parameters_in(tuple(values)))


def _names_of(
    file: Source, path: KeyPath, graph: GraphSpec | Subgraph, made_at: dict[str, KeyPath], taken: set[str]
) -> Iterator[str]:
    """Check the nodes of a graph, or of a graph in a node, which sees the values made before it; add its inputs to
    `taken`."""
    later = {
        output: (*path, "nodes", number)
        for number, node in enumerate(graph.nodes)
        for output in node.outputs
        if output
    }
    for number, node in enumerate(graph.nodes):
        here: tuple[Key, ...] = (*path, "nodes", number)
        for name in node.inputs:
            taken.add(name)
            if not name or name in made_at or name.startswith("$"):
                continue
            if name in node.outputs:
                yield file.problem(
                    (*here, "inputs"), f"the node takes its own output {name!r}; a graph has no cycle"
                )
            elif name in later:
                what = f"{name!r} is made by a later node, {file.where(*later[name])}; a graph has no cycle, and its nodes stand in order"
                yield file.problem((*here, "inputs"), what)
            else:
                what = f"nothing makes {name!r}"
                yield file.problem((*here, "inputs"), what, given=name, allowed=made_at)
        for key, inner in node.subgraphs.items():
            within = (*here, "attributes", key)
            known = dict(made_at)
            for kind in ("inputs", "constants"):
                for name in getattr(inner, kind):
                    if name in made_at:
                        yield file.problem(
                            (*within, kind), f"{name!r} is made already, {file.where(*made_at[name])}"
                        )
                    known[name] = (*within, kind)
            taken.update(inner.outputs)
            yield from _names_of(file, within, inner, known, taken)
        for name in filter(None, node.outputs):
            if name in made_at:
                what = f"{name!r} is made already, {file.where(*made_at[name])}"
                yield file.problem((*here, "outputs"), what)
            made_at.setdefault(name, here)
    for name in graph.outputs:
        if name not in made_at and not name.startswith("$"):
            yield file.problem((*path, "outputs"), f"no node makes {name!r}", given=name, allowed=later)


def _texts(value: object) -> list[str]:
    if isinstance(value, tuple):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def _operators(file: Source, spec: GraphSpec) -> Iterator[str]:
    """Check operators, attributes and parameters of nodes."""
    known = {*spec.parameters, *OPTIONS, *spec.types}
    for path, node in every_node(spec.nodes):
        values = (node.operator, node.inputs, node.outputs, *node.attributes.values())
        for name in parameters_in(values):
            if name not in known:
                yield file.problem(
                    path, f"there is no parameter {name!r}", given=name, allowed=spec.parameters
                )
        for name in parameters_in((node.inputs, node.outputs)):
            for place, value in _values_of(spec, name):
                if not all(
                    isinstance(each, str) for each in (value if isinstance(value, tuple) else (value,))
                ):
                    what = f"{name!r} stands for tensors of a node, and should be a name or a list of names"
                    yield file.problem(place, what)
        for place, operator in _operators_of(spec, (*path, "operator"), node.operator):
            if "." in operator and not operator.startswith(_MACHINE_LEARNING):
                what = f"graphs contain operators of ONNX's domains; {operator!r} can have a spec of its own"
                yield file.problem(place, what)
        if node.operator.startswith("$") or ("." in node.operator and node.operator not in OPERATORS):
            continue
        if node.operator not in OPERATORS and node.operator not in CONTROL_FLOW:
            what, known_ones = f"the harness has no oracle for {node.operator!r}", [*OPERATORS, *CONTROL_FLOW]
            yield file.problem((*path, "operator"), what, given=node.operator, allowed=known_ones)
            continue
        for opset in spec.opsets:
            try:
                schema = onnx_schemas.operator_schema(node.operator, opset)
            except (OpsetUnavailable, UnknownOperator) as error:
                yield file.problem((*path, "operator"), str(error))
                continue
            graphs = {name for name, each in schema.attributes.items() if each.type == "GRAPH"}
            if graphs != node.subgraphs.keys():
                what = f"{node.operator} has graphs as {', '.join(sorted(graphs)) or 'no attribute'}"
                yield file.problem((*path, "attributes"), what)
            for name, value in node.attributes.items():
                if name not in schema.attributes and not parameters_in(value):
                    what = f"{node.operator} has no attribute {name!r} at opset {opset}"
                    yield file.problem(
                        (*path, "attributes", name), what, given=name, allowed=schema.attributes
                    )


def _operators_of(spec: GraphSpec, path: KeyPath, operator: str) -> Iterator[tuple[KeyPath, str]]:
    """Yield the operator of a node, or each that a parameter gives it, and where it is named."""
    if not operator.startswith("$"):
        yield path, operator
        return
    for place, value in _values_of(spec, operator[1:]):
        for text in _texts(value):
            yield place, text


def _values_of(spec: GraphSpec, name: str) -> Iterator[tuple[KeyPath, object]]:
    """Yield the value of a parameter and each that a sweep gives it, and where it stands."""
    if name in spec.parameters:
        yield ("parameters", name), spec.parameters[name]
    for number, sweep in enumerate(spec.sweeps):
        for value in sweep.factors.get(name, ()):
            yield ("sweeps", number, "factors", name), value


def _fused(file: Source, spec: GraphSpec) -> Iterator[str]:
    """Check that ONNX or ONNX Runtime has the operators of `fuses_to`, which may lack their domain."""
    known = [
        *onnx_schemas.operator_versions(),
        *(name.replace(":", ".") for name in kernels.release().others),
    ]
    known += signatures.layouts()
    short = {name.rpartition(".")[2]: None for name in known}
    for number, name in enumerate(spec.fuses_to):
        if name not in known and name not in short:
            what = f"neither ONNX nor ONNX Runtime has an operator {name!r}"
            allowed = known if "." in name else short
            yield file.problem(("fuses_to", number), what, given=name, allowed=allowed)


def _factors(file: Source, pattern: Pattern) -> Iterator[str]:
    kinds = [kind.name for kind in elements.ELEMENT_KINDS]
    for name, given in pattern.spec.inputs.items():
        if given.values not in kinds:
            what = f"no kind of values is named {given.values!r}"
            yield file.problem(("inputs", name, "values"), what, given=given.values, allowed=kinds)
    for number, sweep in enumerate(pattern.spec.sweeps):
        for name, levels in sweep.factors.items():
            path = ("sweeps", number, "factors", name)
            if name == "optimization":
                what = "every graph runs at all four levels of optimisation; remove this factor"
                yield file.problem(path, what)
                continue
            if name not in factor_names(pattern):
                what = f"{pattern.spec.graph} has no factor {name!r}"
                yield file.problem(path, what, given=name, allowed=factor_names(pattern))
                continue
            for level in levels:
                wrong = factor_problem(pattern, name, level)
                if name.endswith(".values") and level not in kinds:
                    wrong = f"no kind of values is named {level!r}"
                if wrong is not None:
                    yield file.problem(path, wrong)
        for name in sweep.alone:
            if name not in sweep.factors and name != "opset":
                yield file.problem(("sweeps", number, "alone"), f"{name!r} is no factor of the sweep")


def misfits(file: Source, pattern: Pattern) -> Iterator[str]:
    """Check that the graph with the first level of each factor is one, at each opset of the sweep, and that a case has
    each of the other levels."""
    for number, sweep in enumerate(pattern.spec.sweeps):
        levels, fit = next(combined(pattern, sweep)), True
        for opset in sweep.factors.get("opset", pattern.spec.opsets):
            try:
                wrong = misfit(made(pattern, sweep, {**levels, "opset": opset}))
            except (WrongValue, LiteralError, Unfit, KeyError) as error:
                wrong = f"{type(error).__name__}: {error}"
            if wrong is not None:
                fit = False
                what = f"the nodes do not fit together at opset {opset}: {wrong}"
                yield file.problem(("sweeps", number), what)
        for name, level, why in lost_levels(pattern, sweep) if fit else ():
            what = f"no case has {value_text(plain(sweep.factors[name][level]))}: {why}; remove it, or list it in a sweep where it fits"
            yield file.problem(("sweeps", number, "factors", name, level), what)
