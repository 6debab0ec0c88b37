"""Writes the few lines that show a failure: the model as text, one session, one run."""

from __future__ import annotations

import json

import onnx
from onnx import parser, printer

from harness.triage.repro.failure import Failure
from harness.triage.repro.script import LEVELS, written_array

LONGEST = 15
"""Lines of a snippet; a model or an input that needs more is read from the repro's files."""
_WIDE = 400
_FILE = "test_data_set_0/input_{}.pb"


def snippet(failure: Failure) -> str:
    """Return Python that needs onnx, onnxruntime and numpy: it prints the output, or raises the provider's error.

    The model is written as text where that gives the same bytes back, else read from `model.onnx`; so are inputs
    that do not fit a line.
    """
    graph = failure.graph
    if failure.prepared.before is not None:
        return "# the session runs another call first: see repro.py"
    if graph.optionals:
        return "# inputs or outputs of the graph are optionals: see repro.py"
    if graph.deployed:
        return "# the application runs the graph in another way: see repro.py"
    found: dict[str, str] = {}
    for number, (position, (name, _)) in enumerate(zip(graph.fed, graph.inputs, strict=True)):
        written = written_array(failure.prepared.inputs[position])
        if len(written) > _WIDE or "\n" in written:
            written = f"onnx.numpy_helper.to_array(onnx.load_tensor({json.dumps(_FILE.format(number))}))"
        elif '"' not in written:
            written = written.replace("'", '"')
        found[name] = written
    for name in graph.maps:
        if f"{name}_keys" in found:
            keys, values = found.pop(f"{name}_keys"), found.pop(f"{name}_values")
            found[name] = f"dict(zip({keys}.tolist(), {values}.tolist()))"
    inputs = [f"    {json.dumps(name)}: {written}," for name, written in found.items()]
    head = ["import numpy as np", "import onnx", "import onnxruntime as ort", ""]
    options = [
        "options = ort.SessionOptions()",
        f"options.graph_optimization_level = ort.GraphOptimizationLevel.{LEVELS[graph.optimization]}",
        f"session = ort.InferenceSession(model, options, providers=[{json.dumps(failure.session.provider)}])",
        "inputs = {",
        *inputs,
        "}",
        "print(session.run(None, inputs))",
    ]
    if any("b64decode" in line for line in inputs):
        head.insert(0, "import base64")
    model = _model_code(graph.model)
    if model is None or len(head) + len(model) + len(options) > LONGEST:
        model = ['model = "model.onnx"']
    return "\n".join([*head, *model, *options])


def _model_code(model: bytes) -> list[str] | None:
    """Return the lines that make a model from ONNX's own syntax, without the names of its nodes; None where that is not
    the same model."""
    proto = onnx.ModelProto.FromString(model)
    proto.ClearField("producer_name")
    for node in proto.graph.node:
        node.ClearField("name")
    try:
        text = str(printer.to_text(proto))
        back = parser.parse_model(text)
    except Exception:  # noqa: BLE001 - what its syntax cannot say, it says with errors of many kinds
        return None
    for node in back.graph.node:
        if not node.domain:
            node.ClearField("domain")  # stated, if only as empty
    if back.SerializeToString(deterministic=True) != proto.SerializeToString(deterministic=True):
        return None
    if '"""' in text or "\\" in text:
        return None
    head, _, rest = text.partition(">\n")
    *lines, last, brace = (line.strip() for line in rest.rstrip().splitlines())
    first = f'model = onnx.parser.parse_model("""{" ".join(head.split())}>'
    return [first, *lines, f'{last} {brace}""").SerializeToString()']
