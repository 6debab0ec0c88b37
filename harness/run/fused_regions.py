"""The regions of a model that an optimizer changed, cut out as specs of graphs: the nodes between values that the model
and what the optimizer made of it have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from onnx import NodeProto

from harness.compile.decompile import node_attributes
from harness.compile.models import Model
from harness.compile.protos import LeftOut
from harness.model.case import Case, Optimization, Options, Tensor, TensorSpec, Value
from harness.model.caseid import MODEL_REGION
from harness.model.errors import SpecError
from harness.model.onnx_schemas import OpsetUnavailable, UnknownOperator, operator_schema
from harness.operators import OPERATORS
from harness.operators.in_models import CONSTANT
from harness.specs.expand import expand
from harness.specs.reading.literals import shape_problem
from harness.specs.reading.load import GRAPHS, load_specs
from harness.specs.reading.stored import TensorStore
from harness.specs.reading.write import attribute, entry_lines, quoted, written_values
from harness.specs.sweeps.calls import call_of
from harness.targets.execution import Execution

TENSORS = "regions.bin"
_FEW = 64
_MOST_ELEMENTS = 1 << 23
_NAMED = 4
"""Nodes by whose operators a region is named, which entries can match."""
_MOST_NODES = 64
"""As many as a spec of a graph may have."""


class Region(NamedTuple):
    """Nodes that the optimizer changed to `made`; `inputs` are the values that they take, `outputs` those that stay.
    `folded` are further nodes, which make constants of weights."""

    folded: tuple[NodeProto, ...]
    nodes: tuple[NodeProto, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    made: tuple[str, ...]

    @property
    def text(self) -> str:
        """What became of what."""
        return f"{', '.join(node.op_type for node in self.nodes)} → {', '.join(self.made) or 'nothing'}"


class WrittenRegion(NamedTuple):
    """A distinct region with the id of its case, at the lowest level that makes of it what it becomes, the names of the
    nodes of each place, and what became of it by target."""

    region: Region
    case: str
    places: list[tuple[str, ...]]
    made: dict[str, str]


def regions(
    nodes: Sequence[NodeProto], constant: set[str], fed: set[str], optimized: Execution
) -> Iterator[Region]:
    """Yield the regions of a graph that optimisation changed; `constant` are values that follow from weights, `fed`
    the graph's inputs. What makes a constant of weights belongs to the region: a transformer may look for it."""
    makes = {name: node for node in nodes for name in node.output if name and node.op_type != CONSTANT}
    made_by: dict[str, int] = {}
    for number, (_, outputs) in enumerate(optimized.graph_edges):
        made_by.update(dict.fromkeys(outputs, number))
    for number, (_, outputs) in enumerate(optimized.graph_edges):
        kept = tuple(name for name in outputs if name in makes and name not in constant)
        if not kept:
            continue
        operators, border = _back(number, optimized, made_by, makes.keys() | fed)
        found = _between(kept, border, makes, constant)
        if found is None:
            continue
        order = {id(node): n for n, node in enumerate(nodes)}
        ordered = sorted(found[0], key=lambda node: order[id(node)])
        folded = tuple(node for node in ordered if node.output[0] in constant)
        inner = tuple(node for node in ordered if node.output[0] not in constant)
        if operators != [node.op_type for node in inner]:
            yield Region(folded, inner, found[1], kept, tuple(reversed(operators)))


def _back(
    number: int, optimized: Execution, made_by: Mapping[str, int], common: set[str]
) -> tuple[list[str], set[str]]:
    """Return the operators between an optimised node and common values, and these values."""
    operators, border, asked, seen = [], set[str](), [number], {number}
    while asked:
        at = asked.pop()
        operators.append(optimized.graph_nodes[at])
        for name in optimized.graph_edges[at][0]:
            if name in common:
                border.add(name)
            elif name in made_by and made_by[name] not in seen:
                seen.add(made_by[name])
                asked.append(made_by[name])
    return operators, border


def _between(
    outputs: Sequence[str], border: set[str], makes: Mapping[str, NodeProto], constant: set[str]
) -> tuple[list[NodeProto], tuple[str, ...]] | None:
    """Return the model's nodes between values, and all that they take; None where they reach further back."""
    nodes: list[NodeProto] = []
    inputs: dict[str, None] = {}
    asked = list(outputs)
    while asked:
        name = asked.pop()
        if name not in makes:
            if name not in border and name not in constant:
                return None
            inputs[name] = None
        elif name in border - constant and name not in outputs:
            inputs[name] = None
        elif not any(makes[name] is node for node in nodes):
            nodes.append(makes[name])
            asked += [each for each in makes[name].input if each]
    return nodes, tuple(inputs)


class _Held(NamedTuple):
    """A region with its tensors and the shapes of its outputs; those that are `fixed` are constants. `level` is the lowest
    that makes of it what it becomes."""

    model: Model
    region: Region
    tensors: Mapping[str, Tensor]
    fixed: frozenset[str]
    level: Optimization
    shapes: tuple[tuple[int, ...], ...]

    def writes(self, name: str) -> bool:
        """Say whether a tensor stands in the spec: a small constant, whose elements may decide shapes."""
        tensor = self.tensors[name]
        return name in self.fixed and tensor.array.size <= _FEW and tensor.dtype != "string"


class FusedRegions:
    """Collects regions of models and writes each distinct one as a spec of a graph; `too_large` counts others."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[_Held, list[tuple[str, ...]], dict[str, str]]] = {}
        self.too_large = 0

    def add(self, held: _Held, names: Mapping[str, str], target: str) -> None:
        """Take a region of a target whose tensors are known, if each of its operators has a formula; `names` are those of
        nodes by their outputs."""
        region = held.region
        nodes = [*region.folded, *region.nodes]
        known = all(node.op_type in OPERATORS and not node.domain for node in nodes)
        if not known or len(nodes) > _MOST_NODES:
            return
        if sum(each.array.size for each in held.tensors.values()) > _MOST_ELEMENTS:
            self.too_large += 1
            return
        try:
            lines = _nodes(held)
        except (LeftOut, UnknownOperator, OpsetUnavailable):
            return
        form = [
            (each.dtype, each.array.shape, name in held.fixed, _constant(each) if held.writes(name) else "")
            for name, each in held.tensors.items()
        ]
        what = [lines, form, held.model.opsets]
        key = _digest(what)
        if key in self._found and self._found[key][2].get(target, region.text) != region.text:
            key = _digest([*what, region.text])  # a higher level makes something else of it
        _, places, made = self._found.setdefault(key, (held, [], {}))
        made.setdefault(target, region.text)
        place = tuple(names[node.output[0]] for node in region.nodes)
        if place not in places:
            places.append(place)

    def write(self, folder: Path) -> list[WrittenRegion]:
        """Write the specs below a folder, without those whose nodes the composition does not take, and those whose
        outputs have extents that follow from elements."""
        if not self._found:
            return []
        graphs = folder / GRAPHS
        graphs.mkdir(parents=True, exist_ok=True)
        written = []
        with TensorStore(graphs / TENSORS) as store:
            for key, (held, places, made) in self._found.items():
                operators = "".join(node.op_type for node in held.region.nodes[:_NAMED])
                name = f"{MODEL_REGION}{operators}{key.upper()}"
                path = graphs / f"{name}.yaml"
                path.write_text(_spec(name, held, store), encoding="utf-8", newline="\n")
                store.flush()
                try:
                    (case,) = expand(load_specs([path]))
                except SpecError:
                    path.unlink()
                    continue
                operator = OPERATORS[case.operator]
                if operator.family.output_shapes(operator, call_of(case)) != held.shapes:
                    path.unlink()
                    continue
                written.append(WrittenRegion(held.region, case.id, places, made))
        return written


def region_of(
    model: Model, values: Mapping[str, Tensor], constant: set[str], region: Region, level: Optimization
) -> _Held | None:
    """Return a region with its tensors, None where one of them is not known."""
    if any(name not in values for name in (*region.inputs, *region.outputs)):
        return None
    shapes = tuple(values[name].array.shape for name in region.outputs)
    fixed = frozenset(name for name in region.inputs if name in constant)
    return _Held(model, region, {name: values[name] for name in region.inputs}, fixed, level, shapes)


def _digest(what: list[object]) -> str:
    return blake2b(repr(what).encode(), digest_size=4).hexdigest()


def _plain(region: Region) -> dict[str, str]:
    """Return a name for each value that a spec can write."""
    names = {"": ""}
    for number, name in enumerate(region.inputs):
        names[name] = f"x{number}"
    for node in (*region.folded, *region.nodes):
        for name in node.output:
            names.setdefault(name, f"t{len(names)}")
    return names


def _nodes(held: _Held) -> list[str]:
    names = _plain(held.region)
    lines = []
    for node in (*held.region.folded, *held.region.nodes):
        schema = operator_schema(node.op_type, held.model.opsets[""])
        found: dict[str, Value] = dict(node_attributes(schema, node))
        written = ", ".join(f"{key}: {attribute(each)}" for key, each in found.items())
        takes, gives = ([f'"{names[each]}"' for each in side] for side in (node.input, node.output))
        lines.append(
            f"  - {{operator: {node.op_type}, inputs: [{', '.join(takes)}], outputs: [{', '.join(gives)}]"
            + (f", attributes: {{{written}}}}}" if written else "}")
        )
    return lines


def _constant(tensor: Tensor) -> str:
    shape = f", shape: {list(tensor.array.shape)}" if tensor.array.size else ""
    return f"{{type: {tensor.dtype}, {written_values(tensor)}{shape}}}"


def _spec(name: str, held: _Held, store: TensorStore) -> str:
    names, model = _plain(held.region), held.model
    fed = {key: each for key, each in held.tensors.items() if not held.writes(key)}
    specs = tuple(
        TensorSpec(names[key], each.dtype, each.array.shape, "literal") for key, each in fed.items()
    )
    options = Options(
        shapes="static" if model.static else "symbolic",
        initializer=",".join(names[key] for key in fed if key in held.fixed) or None,
        optimization=held.level,
    )
    opset = model.opsets[""]
    elements = tuple(each.array for each in fed.values())
    case = Case("region", name, opset, {}, specs, options, source=model.path.name, literals=elements)
    constants = [
        f"  {names[key]}: {_constant(each)}" for key, each in held.tensors.items() if held.writes(key)
    ]
    lines = [
        f"graph: {name}",
        f"source: {quoted(f'{model.path.name}: {held.region.text}')}",
        f"opsets: [{opset}]",
        "inputs:" if fed else "inputs: {}",
        *(
            f"  {each.name}: {{type: {each.dtype}, shape: {[1] * len(each.shape) if shape_problem(each.shape) else list(each.shape)}}}"
            for each in specs
        ),
        *(["constants:", *constants] if constants else []),
        *("nodes:", *_nodes(held)),
        f"outputs: [{', '.join(names[each] for each in held.region.outputs)}]",
        *("cases:", *entry_lines(case, "region", store.add)),
    ]
    return "\n".join(lines) + "\n"
