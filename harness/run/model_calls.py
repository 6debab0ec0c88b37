"""The distinct calls of models: what nodes do, with types, shapes, attributes and constants, as cases of specs whose
tensors are those that a run of the model had."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import msgspec

from harness.compile.backend_folders import DataSet
from harness.compile.decompile import NO_OUTPUT, case_of
from harness.compile.models import Model, node_bodies, schema_of, single_model
from harness.compile.node_graphs import NodeGraph
from harness.compile.protos import LeftOut
from harness.model.case import Case, Shapes
from harness.model.caseid import MODEL_CALL
from harness.model.dtypes import DTYPES
from harness.model.errors import SpecError, naming
from harness.operators.in_models import CONSTANT, draws, needs_lengths
from harness.run.importing import Import, ImportedEntry, loadable
from harness.run.oracle import OracleError, oracle
from harness.run.recording import RecordedNode, written
from harness.specs.expand import expand
from harness.specs.graphs.pattern import Unfit
from harness.specs.reading.load import GRAPHS, load_specs
from harness.specs.reading.stored import TensorStore
from harness.specs.reading.write import entry_lines, spec_text
from harness.specs.sweeps.calls import call_of
from harness.targets.execution import Prepared

TENSORS = "tensors.bin"
_GRAPH = "Node"
"""How the name of a graph that is a call begins."""
_FEW, _FEW_FLOATS = 64, 4
"""Elements of a constant that belong to what a call is: of integers, and of floats."""
_MOST_ELEMENTS = 1 << 21
"""Elements of what a node with graphs takes: the oracle may run them a hundred times."""
_DECIDED = ("", "biu", "biuf")
"""Kinds of tensors that are tried as constants of a graph, one after the other: how often a body runs, or what extents an output
has, may follow from them."""
_MOST_INPUTS = 1000
"""Tensors of a call: each is a term of an id."""


@dataclass
class ModelCall:
    """A distinct call: the first node that makes it with its tensors, its case, or `why` it has none, and how many nodes
    make it. The case of one of several operators is that of a graph."""

    name: str
    number: int
    model: Model
    recorded: RecordedNode
    case: Case | None = None
    why: str = ""
    uses: int = 0

    @property
    def operator(self) -> str:
        """The operator, with its domain unless that is ONNX's default."""
        node = self.recorded.node
        return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"

    @property
    def text(self) -> str:
        """The operator with its input types."""
        return f"{self.operator}({', '.join(map(written, self.recorded.inputs.values()))})"

    @property
    def constants(self) -> frozenset[str]:
        """The inputs that a deployed model has as constants; none where all are, since nothing would be left to run."""
        recorded = self.recorded
        return frozenset() if recorded.constant == recorded.inputs.keys() else recorded.constant

    @property
    def complete(self) -> bool:
        """Say whether every input is a tensor that was recorded, not a sequence or an optional."""
        known = all(name in self.recorded.inputs for name in self.recorded.node.input if name)
        return known and not self.recorded.before

    @property
    def several(self) -> bool:
        """Say whether the call is one of several operators: of a node with graphs, or of what comes by a sequence."""
        return bool(self.recorded.before) or any(node_bodies(self.recorded.node))

    def validity(self) -> str:
        """Say whether ONNX defines the call, of which no outputs are known."""
        if self.several:
            return "a call with graphs, whose nodes can be at fault"
        why = _single_case(self, "static")[1]
        return "a call that ONNX defines" if why == NO_OUTPUT else why

    @property
    def dtypes(self) -> dict[str, str]:
        """The element types of the outputs."""
        return {name: each.dtype for name, each in self.recorded.outputs.items()}


class ModelCalls:
    """Collects the calls of models, each once."""

    def __init__(self) -> None:
        self._by_key: dict[object, ModelCall] = {}

    @property
    def all(self) -> list[ModelCall]:
        """The calls in the order of their first nodes."""
        return list(self._by_key.values())

    def add(self, model: Model, recorded: RecordedNode) -> int | None:
        """Take a node of a model and return the number of its call; constants make none."""
        if recorded.node.op_type == CONSTANT:
            return None
        key = _key(model, recorded)
        call = self._by_key.get(key)
        if call is None:
            digest = blake2b(repr(key).encode(), digest_size=4).hexdigest()
            call = self._by_key[key] = ModelCall(f"{MODEL_CALL}{digest}", len(self._by_key), model, recorded)
            call.case, call.why = _case(call)
        call.uses += 1
        return call.number

    def write(self, folder: Path, comment: str) -> list[Path]:
        """Write a spec for each operator with its calls as cases; their large tensors go into one file. Errors:
        UsageError."""
        by_operator: dict[str, list[ModelCall]] = defaultdict(list)
        for call in self.all:
            if call.case is not None:
                by_operator[call.case.operator].append(call)
        with naming(folder, "written"):
            folder.mkdir(parents=True, exist_ok=True)
            entries = {}
            with TensorStore(folder / TENSORS) as store:
                for operator, calls in by_operator.items():
                    entries[operator] = [
                        ImportedEntry(call.name, case, entry_lines(case, call.name, store.add))
                        for call in calls
                        if call.case is not None
                        for case in (msgspec.structs.replace(call.case, uses=call.uses),)
                    ]
            done = Import()
            kept = {
                entry.test
                for operator, each in entries.items()
                for entry in loadable(folder, operator, each, comment, done)
            }
            for call in self.all:
                if call.case is not None and call.name not in kept:
                    call.case, call.why = None, "a spec cannot write it"
            _write_graphs([call for call in self.all if call.several and not call.why], folder / GRAPHS)
        return sorted(folder.glob("*.yaml"))


def _write_graphs(calls: Sequence[ModelCall], folder: Path) -> None:
    """Give calls the cases of graphs, each in a spec of its own below a folder."""
    if not calls:
        return
    folder.mkdir(exist_ok=True)
    with TensorStore(folder / TENSORS) as store:
        for call in calls:
            for decided in _DECIDED:
                call.case, call.why = _graph_case(call, folder, store, decided=decided)
                if call.case is not None:
                    break


def _graph_case(
    call: ModelCall, folder: Path, store: TensorStore, *, decided: str
) -> tuple[Case | None, str]:
    """Return the case of a graph that a call is, or why it is none; of the `decided` kinds small tensors stand in the graph."""
    recorded, model = call.recorded, call.model
    if sum(each.array.size for each in recorded.inputs.values()) > _MOST_ELEMENTS:
        return None, f"takes more than {_MOST_ELEMENTS:,} elements"
    name = f"{_GRAPH}{recorded.node.op_type}{call.name.removeprefix(MODEL_CALL).upper()}"
    path = folder / f"{name}.yaml"
    try:
        made = NodeGraph(model.opsets.get("", 0), recorded.inputs, call.constants).of(
            [*recorded.before, recorded.node],
            list(recorded.outputs),
            f"{model.path.name}, node {recorded.name}",
            "static" if model.static else "symbolic",
            decided=decided,
        )
        case, spec = made.known_as(name)
        written = msgspec.structs.replace(case, uses=call.uses)
        path.write_text(spec_text(spec, written, call.name, store=store.add), encoding="utf-8", newline="\n")
        store.flush()
        (case,) = expand(load_specs([path]))
        found = oracle(Prepared(case, call_of(case), tuple(made.inputs.values())), "")
        assert found is not None
        shapes = [each.array.shape for each in recorded.outputs.values()]
        if [each.shape for each in found] != shapes:
            raise LeftOut("its graph gives other shapes than the run of the model")
    except (LeftOut, OracleError, SpecError, Unfit) as error:
        path.unlink(missing_ok=True)
        return None, str(error.problems[0].rpartition(": ")[2] if isinstance(error, SpecError) else error)
    return case, ""


def _key(model: Model, recorded: RecordedNode) -> object:
    node = recorded.node
    version = model.opsets.get(node.domain, 1)
    if (schema := schema_of(node, version)) is not None:
        version = schema.since_version
    return (
        *(node.domain, node.op_type, version),
        tuple(sorted(each.SerializeToString(deterministic=True) for each in node.attribute)),
        tuple(
            _operand(recorded, name)
            for name in (*node.input, *sorted(recorded.inputs.keys() - {*node.input}))
        ),
        *(each.SerializeToString(deterministic=True) for each in recorded.before),
        tuple(
            (each.dtype, each.array.shape) if (each := recorded.outputs.get(name)) else bool(name)
            for name in node.output
        ),
    )


def _operand(recorded: RecordedNode, name: str) -> object:
    tensor = recorded.inputs.get(name)
    if tensor is None:
        return bool(name)
    constant = name in recorded.constant
    few = _FEW_FLOATS if DTYPES[tensor.dtype].is_float else _FEW
    elements = str(tensor.array.tolist()) if constant and tensor.array.size <= few else ""
    return tensor.dtype, tensor.array.shape, constant, elements


def _case(call: ModelCall) -> tuple[Case | None, str]:
    """Return the case of a call, or why it has none."""
    recorded, model = call.recorded, call.model
    if draws(recorded.node.op_type, len(recorded.node.input)) and not recorded.outputs:
        return None, "gives other elements in each run"
    if not recorded.outputs:
        lost = "an input is a sequence, an optional, or made of one, and was not recorded, or its body does not run by itself"
        return None, "gives no tensor" if call.complete else lost
    if len(recorded.inputs) > _MOST_INPUTS:
        return None, f"takes more than {_MOST_INPUTS:,} tensors"
    if call.several:
        return None, ""  # until its graph is written
    shapes: Shapes = "static" if model.static or needs_lengths(recorded.node.op_type) else "symbolic"
    return _single_case(call, shapes)


def _single_case(call: ModelCall, shapes: Shapes) -> tuple[Case | None, str]:
    """Return the case of a call of one operator, or why it has none."""
    recorded, model = call.recorded, call.model
    names = list(recorded.outputs)
    single = single_model(
        *([recorded.node], recorded.inputs, names, model),
        constants=call.constants, shapes=shapes, dtypes=call.dtypes,
    )  # fmt: skip
    fed = tuple(each.array for name, each in recorded.inputs.items() if name not in call.constants)
    data = DataSet(fed, tuple(each.array for each in recorded.outputs.values()))
    try:
        case = case_of(call.name, f"{model.path.name}, node {recorded.name}", single, data)
    except LeftOut as error:
        return None, str(error)
    return msgspec.structs.replace(case, documented=None), ""
