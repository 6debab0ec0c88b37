"""Draws random graphs of several operators: members of the patterns of `specs/graphs`, and compositions of pieces of
such members that fit by type and shape. Each is drawn at every level of optimisation."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any

from harness.compile.prepare import with_inputs
from harness.model.case import DEPLOYMENTS, Case, Options, Shapes, Tensor, Value
from harness.model.dtypes import DTYPES
from harness.operators.elements import ELEMENT_KINDS
from harness.specs.graphs.deployments import deployments_of
from harness.specs.graphs.pattern import INNER, Pattern
from harness.specs.graphs.plain import NO_GRAPH, PlainGraph, forget, plain_graph
from harness.specs.graphs.variations import at_levels, combined, factor_names, made, misfit, with_option
from harness.specs.reading.load import LoadedSpec
from harness.triage.fuzzing.changes import EXTENTS, FLAG, near
from harness.triage.fuzzing.random_calls import Drawn

_TRIES, _CHANGES, _PIECES = 12, 6, 40
_COMPOSED, _LISTED, _JOINED, _DEPLOYED = 0.5, 0.6, 0.85, 0.2
_LEAST, _MOST, _PIECE = 3, 10, 4
"""Nodes of a composition, and of a piece of it."""
_LARGEST = 1 << 12
"""Elements of a tensor."""
_KEPT = 64
"""Compositions that stay known: more than are asked for at once."""
_SHAPES: tuple[Shapes, ...] = ("symbolic", "static", "undeclared")


class GraphDrawing:
    """Draws graphs; the same seed draws the same ones."""

    def __init__(self, specs: Sequence[LoadedSpec], seed: int, alone: LoadedSpec | None = None) -> None:
        """Take the patterns; of one `alone` each graph is a member, or begins with a piece of one."""
        self.random = Random(f"graphs:{seed}")
        self._specs = [spec for spec in specs if spec.graph is not None and spec.graph.spec.sweeps]
        self._alone = alone
        self._known = deque[str](maxlen=_KEPT)

    def __iter__(self) -> Iterator[Drawn]:
        for number in count(1):
            composed = self.random.random() < _COMPOSED
            found = self._composition(f"Fuzzed{number}") if composed else self._member(self._spec())
            if found is not None:
                case, spec = found
                for each in at_levels(self._deployed(case)):
                    yield Drawn(each, (each.id,), spec)

    def _spec(self) -> LoadedSpec:
        return self._alone or self.random.choice(self._specs)

    def _deployed(self, case: Case) -> Case:
        """Return the case now and then with an option of the deployments that its graph can have."""
        if self.random.random() >= _DEPLOYED:
            return case
        levels = deployments_of(case)
        name, level = self.random.choice([(name, each) for name in DEPLOYMENTS for each in levels[name][1:]])
        return with_option(case, name, level)

    # members of patterns

    def _member(self, spec: LoadedSpec, opset: int | None = None) -> tuple[Case, LoadedSpec] | None:
        pattern = spec.graph
        assert pattern is not None
        for _ in range(_TRIES):
            with suppress(*NO_GRAPH):
                case = self._changed(pattern, opset)
                if misfit(case) is None and (opset is not None or _are_small(_known(self._plain(case)))):
                    return case, spec
        return None

    def _changed(self, pattern: Pattern, opset: int | None) -> Case:
        """Return the first member of a sweep with other levels of some factors, listed ones or near ones."""
        sweep = self.random.choice(pattern.spec.sweeps)
        levels = dict(next(combined(pattern, sweep)))
        names = sorted(set(factor_names(pattern)) - set(DEPLOYMENTS))
        for name in self.random.sample(names, min(len(names), self.random.randint(0, _CHANGES))):
            levels[name] = self._level(pattern, name)
        if opset is not None:
            levels["opset"] = opset
        return made(pattern, sweep, levels)

    def _level(self, pattern: Pattern, name: str) -> Any:
        spec, random = pattern.spec, self.random
        head, _, what = name.partition(".")
        inner = [each for node in spec.nodes for each in node.outputs if each and not each.startswith("$")]
        if name == "opset":
            return random.randint(spec.opsets[0], spec.opsets[-1])
        if name in spec.types:
            return random.choice(spec.types[name])
        if name in ("initializer", "overridable"):
            return self._some(list(spec.inputs))
        if name in INNER:
            return self._some(inner)
        if what == "values":
            return random.choice(ELEMENT_KINDS).name
        listed = [level for sweep in spec.sweeps for level in sweep.factors.get(name, ())]
        if what == "shape":
            listed.append(spec.inputs[head].shape)
            shape = random.choice(listed)
            return shape if random.random() < _LISTED else self._resized(shape)
        usual = {"shapes": "symbolic", "constants": "initializer", **pattern.defaults}
        level: Value = random.choice(listed or [usual[name]])
        of_flag = set(map(repr, [level, *listed])) <= FLAG
        return level if of_flag or random.random() < _LISTED else near(level, random)

    def _some(self, names: list[str]) -> str:
        return ",".join(self.random.sample(names, self.random.randint(0, min(3, len(names)))))

    def _resized(self, shape: Sequence[int]) -> tuple[int, ...]:
        old = self.random.choice(shape) if shape else 0
        new = self.random.choice(EXTENTS[:24])
        return tuple(new if extent == old else extent for extent in shape)

    # compositions

    def _composition(self, name: str) -> tuple[Case, LoadedSpec] | None:
        """Return a graph of pieces, each of which takes values of the earlier pieces where they fit."""
        wanted = self.random.randint(_LEAST, _MOST)
        graph: PlainGraph | None = None
        known: dict[str, Tensor] = {}
        for _ in range(_PIECES):
            spec = self._spec() if graph is None else self.random.choice(self._specs)
            member = self._member(spec, graph and graph.opset)
            if member is None:
                continue
            with suppress(*NO_GRAPH):
                grown = self._joined(graph, known, self._plain(member[0]), wanted)
                if grown is not None and _are_small(values := _known(grown)):
                    graph, known = grown, values
            if graph is not None and len(graph.nodes) >= wanted:
                break
        if graph is None or len(graph.nodes) < _LEAST:
            return None
        case, loaded = self._finished(graph).known_as(name)
        if len(self._known) == _KEPT:
            forget(self._known[0])
        self._known.append(name)
        with suppress(*NO_GRAPH):
            return (case, loaded) if misfit(case) is None else None
        return None

    def _plain(self, case: Case) -> PlainGraph:
        return plain_graph(case, with_inputs(case, self.random.getrandbits(32)).inputs)

    def _joined(
        self, graph: PlainGraph | None, known: Mapping[str, Tensor], member: PlainGraph, wanted: int
    ) -> PlainGraph | None:
        """Return the graph with some neighbouring nodes of a member behind it; None where these take nothing that it makes."""
        graph = graph or member._replace(nodes=(), outputs=(), inputs={}, constants={})
        most = min(_PIECE, len(member.nodes), wanted - len(graph.nodes))
        length = self.random.randint(1, most)
        start = self.random.randint(0, len(member.nodes) - length)
        shown = {**member.constants, **_known(member)}
        inputs, constants, nodes = dict(graph.inputs), dict(graph.constants), list(graph.nodes)
        called: dict[str, str] = {"": ""}
        for node in member.nodes[start : start + length]:
            for name in node.taken:
                if name in called:
                    continue
                tensor, fitting = shown[name], self._fitting(known, shown[name])
                new = f"t{len(inputs) + len(constants)}"
                if name in member.constants or not (fitting or _may_be_fed(name, member, tensor)):
                    constants[new] = tensor
                elif fitting and self.random.random() < _JOINED:
                    new = self.random.choice(fitting)
                else:
                    inputs[new] = tensor
                called[name] = new
            for name in filter(None, node.outputs):
                called[name] = f"v{len(nodes)}_{len(called)}"
            nodes.append(node.called(called)._replace(outputs=tuple(called[name] for name in node.outputs)))
        if graph.nodes and not {*graph.made} & {*called.values()}:
            return None
        grown = graph._replace(nodes=tuple(nodes), inputs=inputs, constants=constants)
        taken = {name for node in nodes for name in node.taken}
        return grown._replace(outputs=tuple(name for name in grown.made if name not in taken))

    def _fitting(self, known: Mapping[str, Tensor], wanted: Tensor) -> list[str]:
        """Return values of the type, those of the shape alone where there are some."""
        alike = [name for name, each in known.items() if each.dtype == wanted.dtype]
        same = [name for name in alike if known[name].array.shape == wanted.array.shape]
        return same or [name for name in alike if DTYPES[wanted.dtype].is_float]

    def _finished(self, graph: PlainGraph) -> PlainGraph:
        """Return the graph with options, and some inner values as outputs too."""
        random = self.random
        inner = [name for name in graph.made if name not in graph.outputs and random.random() < 0.1]
        constant = [name for name in graph.inputs if random.random() < 0.3]
        options = Options(shapes=random.choice(_SHAPES), initializer=",".join(constant) or None)
        return graph._replace(
            outputs=(*graph.outputs, *inner), options=options, constants_are_nodes=random.random() < 0.2
        )


def _may_be_fed(name: str, member: PlainGraph, tensor: Tensor) -> bool:
    return name in member.inputs or DTYPES[tensor.dtype].is_float


def _known(graph: PlainGraph) -> dict[str, Tensor]:
    return {**graph.inputs, **graph.values()}


def _are_small(tensors: Mapping[str, Tensor]) -> bool:
    return all(tensor.array.size <= _LARGEST for tensor in tensors.values())
