"""The fake target: a worker that computes with the oracle and produces scripted outcomes, to test reports, CI
and triage without a provider.

`-t fake` passes everything; `-t fake,script=FILE` follows a script (`fake_script`).

`evaluate` computes the outputs of a compiled case with the operator's formula, in place of a provider.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from harness.model.case import Tensor, TensorValue, Validity, Value
from harness.model.caseid import parse
from harness.model.dtypes import BY_ONNX_NUMBER, DTYPES, Array
from harness.model.errors import UsageError
from harness.model.expected import nearest
from harness.model.onnx_schemas import operator_schema, plain
from harness.operators import OPERATORS
from harness.operators.base import TensorType
from harness.specs.graphs.composition import composed
from harness.specs.graphs.pattern import FilledGraph, GraphNode
from harness.specs.sweeps.calls import make_call
from harness.targets.batches import FAKE
from harness.targets.fake_script import ALTERATIONS, SCRIPT, Script
from harness.worker import worker
from harness.worker.worker import unpacked


def evaluate(model: ModelProto, case_id: str, fed: Mapping[str, Tensor]) -> list[Tensor]:
    """Return the outputs of a case's graph for the tensors that are fed, by name; a result with a bound as
    the value nearest to it."""
    graph = model.graph
    key = parse(case_id)
    operator = OPERATORS.get(key.operator)
    if operator is None:
        return [nearest(each) for each in composed(_filled(graph), key.opset, fed, "ieee")]
    node = next((node for node in graph.node if node.name == "tested"), None)
    given = {**fed, **{proto.name: tensor_of(proto) for proto in graph.initializer}}
    names = (
        [value.name for value in graph.input]  # of a variant, several nodes that stand for the operator
        if node is None
        else _names(node, key.operator, key.opset, given)
    )
    inputs = {name: given[name] for name in names}
    attributes = {} if node is None else {entry.name: _value(entry) for entry in node.attribute}
    types = {name: TensorType(tensor.dtype, tensor.array.shape) for name, tensor in inputs.items()}
    constants = {name: tensor.array for name, tensor in inputs.items() if name in operator.constants}
    omitted = key.terms.get("omit")
    count = len(graph.output) + (omitted.count(",") + 1 if omitted else 0)
    variant = key.terms.get("variant")
    call = make_call(operator, key.opset, types, attributes, constants, variant, count, omitted)
    expected = operator.oracle(call, inputs, "ieee")
    return [nearest(expected[position]) for position in call.given or range(len(expected))]


def _filled(graph: GraphProto) -> FilledGraph:
    """Return a graph, or one in a node, that `compile/composed.py` wrote."""
    nodes = tuple(
        GraphNode(
            f"{node.domain}.{node.op_type}" if node.domain else node.op_type,
            tuple(node.input),
            tuple(node.output),
            {each.name: _value(each) for each in node.attribute if each.type != AttributeProto.GRAPH},
            {each.name: _filled(each.g) for each in node.attribute if each.type == AttributeProto.GRAPH},
        )
        for node in graph.node
    )
    constants = {each.name: tensor_of(each) for each in graph.initializer}
    takes, gives = (tuple(value.name for value in side) for side in (graph.input, graph.output))
    return FilledGraph(nodes, gives, constants, False, takes)


def _names(node: NodeProto, operator: str, opset: int, given: Mapping[str, Tensor]) -> list[str]:
    """Return the formal names of a node's inputs that are present: its first one may come from a neighbour, a
    sequence is made of its tensors, a map of keys and values."""
    parameters = operator_schema(operator, opset).inputs
    sequences = {parameter.name for parameter in parameters if parameter.sequence}
    found: list[str] = []
    for name in filter(None, node.input):
        if parts := [parameter.name for parameter in parameters if parameter.map == name]:
            found += parts
        elif name in sequences:
            held = (key for key in given if key.partition(".")[0] == name)
            found += sorted(held, key=lambda key: int(key.partition(".")[2]))
        else:
            found.append(name if name in given else name.removesuffix("_before"))
    return found


def _value(entry: AttributeProto) -> Value:
    value = helper.get_attribute_value(entry)
    if entry.type == AttributeProto.TENSOR:
        dtype, array = tensor_of(value)
        return TensorValue(dtype, array.shape, tuple(array.reshape(-1).tolist()))
    found: Value = plain(value)
    return found


def tensor_of(proto: TensorProto) -> Tensor:
    """Return an initializer that `compile/graphs.py` wrote."""
    dtype = BY_ONNX_NUMBER[proto.data_type]
    shape = tuple(proto.dims)
    if dtype.name != "string":
        held = np.frombuffer(proto.raw_data, dtype.storage)
        return Tensor(dtype.name, unpacked(held, proto.data_type, shape))
    array = np.empty(len(proto.string_data), object)
    array[:] = [text.decode() for text in proto.string_data]
    return Tensor("string", array.reshape(shape))


NoKernel = type(
    "NotImplemented", (Exception,), {"__doc__": "Named as onnxruntime's error for a missing kernel."}
)


class Fail(Exception):
    """The fake refuses a case."""


class FakeRuntime:
    """Answers like a provider whose outcomes are known in advance."""

    lost = False

    def __init__(self, script: Script, channel: Any) -> None:
        self._script = script
        self._channel = channel
        self._times: Counter[str] = Counter()

    def hello(self) -> dict[str, Any]:
        return {"onnxruntime": "0.0.0", "providers": [FAKE], "device": {}}

    def after_failure(self, unit: dict[str, Any], error: Exception) -> bool:
        return False

    def session(self, unit: dict[str, Any], model: bytes) -> dict[str, Any]:
        """Return the graph, and the provider that the first case is to be placed on."""
        first = unit["fake"][0][0]
        action = self._script.action(first, self._times[first])
        if action == "unsupported":
            raise NoKernel("scripted: no kernel")
        if action == "crash_at_load":
            ctypes.string_at(0)
        where = "OtherExecutionProvider" if action == "misplace" else FAKE
        return {
            "model": ModelProto.FromString(model),
            "nodes": [[where, operator] for operator in unit["tested"]],
        }

    def assignment(self, session: dict[str, Any]) -> list[list[str]]:
        nodes: list[list[str]] = session["nodes"]
        return nodes

    def unknown_version(self, model: bytes) -> None:
        """The fake knows every opset."""

    def elsewhere(self, unit: dict[str, Any], model: bytes) -> None:
        """No other provider would take what the fake refuses."""

    def run(
        self, session: dict[str, Any], unit: dict[str, Any], arrays: Sequence[Array], position: int
    ) -> list[tuple[Array, int]]:
        """Compute with the oracle, then do what the script says."""
        case_id, validity = unit["fake"][position]
        action = self._script.action(case_id, self._times[case_id])
        self._times[case_id] += 1
        if action == "fail":
            action = "accept" if validity == Validity.INVALID.value else "shape"
        self._disrupt(action)
        if action == "reject" or (validity == Validity.INVALID.value and action != "accept"):
            raise Fail("scripted: refused")
        if validity == Validity.INVALID.value:
            return [(np.zeros((1,), DTYPES["float32"].storage), DTYPES["float32"].onnx)]
        fed = {
            key: Tensor(BY_ONNX_NUMBER[number].name, array)
            for (key, number), array in zip(unit["inputs"], arrays, strict=True)
        }
        outputs = evaluate(session["model"], case_id, fed)
        if action in ALTERATIONS:
            outputs[0] = alter(outputs[0], action)
        return [(output.array, DTYPES[output.dtype].onnx) for output in outputs]

    def _disrupt(self, action: str) -> None:
        if action == "crash":
            ctypes.string_at(0)
        elif action == "exit":
            os._exit(3)
        elif action == "hang":
            time.sleep(1e6)
        elif action == "raise":
            raise RuntimeError("scripted: an error")
        elif action == "garbage":
            os.write(self._channel.out, b"\x00 not a frame \xff" * 8)


def alter(output: Tensor, how: str) -> Tensor:
    """Alter one element of an output (or its dtype or shape) as a wrong provider might; unchanged where that
    is impossible."""
    dtype = DTYPES[output.dtype]
    if how == "dtype":
        other = "int32" if output.dtype != "int32" else "float32"
        return Tensor(other, np.zeros(output.array.shape, DTYPES[other].storage))
    if how == "shape":
        return Tensor(output.dtype, output.array.reshape((1, *output.array.shape)))
    flat = output.array.reshape(-1).copy()
    if how == "order":
        _swap(flat)
    elif dtype.storage == "O":
        flat[:1] = [text + "?" for text in flat[:1]]
    elif flat.size:
        bits = flat.view(np.uint8) if how == "bit" or not dtype.is_float else flat.view(f"u{dtype.itemsize}")
        _alter_bits(bits, how if dtype.is_float else "bit", dtype.itemsize * 8, dtype.mantissa or 0)
    return Tensor(output.dtype, flat.reshape(output.array.shape))


def _alter_bits(bits: Array, how: str, width: int, mantissa: int) -> None:
    sign = 1 << (width - 1)
    infinity = ((1 << (width - 1 - mantissa)) - 1) << mantissa
    if how == "bit":
        bits[0] ^= 1
        return
    magnitude = bits & np.array(sign - 1, bits.dtype)
    finite = np.flatnonzero(magnitude < infinity)
    zeros = np.flatnonzero(magnitude == 0)
    if how == "ulp" and finite.size:
        bits[finite[0]] += np.array(1 if magnitude[finite[0]] < infinity - 1 else -1, bits.dtype)
    elif how == "zero_sign" and zeros.size:
        bits[zeros[0]] ^= np.array(sign, bits.dtype)
    elif how == "nan" and finite.size:
        bits[finite[0]] = infinity | 1 << (mantissa - 1)


def _swap(flat: Array) -> None:
    for other in range(1, flat.size):
        if flat[other : other + 1].tobytes() != flat[:1].tobytes() or (
            flat.dtype == object and flat[other] != flat[0]
        ):
            flat[0], flat[other] = flat[other], flat[0]
            return


def load() -> None:
    """Load nothing more: importing this module has loaded the oracle."""


def main() -> None:
    """Serve as a worker; the environment names the script."""
    channel = worker.Channel()
    try:
        script = Script(Path(os.environ[SCRIPT]) if SCRIPT in os.environ else None)
    except UsageError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    if script.startup == "exit":
        sys.exit(3)
    if script.startup == "garbage":
        os.write(channel.out, b"not a frame at all")
    if script.startup == "hang":
        time.sleep(1e6)
    worker.serve(channel, lambda: FakeRuntime(script, channel))


if __name__ == "__main__":
    main()
