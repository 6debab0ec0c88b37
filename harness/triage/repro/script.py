"""Writes `repro.py`: the template with one case, including inputs and model, so that the one file suffices."""

from __future__ import annotations

import base64
import inspect
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from harness.model.case import Tensor, Validity
from harness.model.dtypes import BY_ONNX_NUMBER, DTYPES
from harness.model.errors import UsageError
from harness.model.expected import Approx, Expected, OfLaw, OneOf
from harness.model.float_formats import FORMATS
from harness.model.onnx_schemas import IR_VERSIONS, opset_imports
from harness.triage.repro.failure import Failure
from harness.worker.worker import (
    PACKED,
    array_of,
    elements_of,
    kind_of,
    packed,
    run_with_maps,
    run_with_optionals,
    unpacked,
)

TEMPLATE = Path(__file__).with_name("template.py")
LEVELS = {
    "off": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_WRITTEN_OUT = 64
_WIDTH = 100


def script(failure: Failure) -> str:
    """Return the text of `repro.py` for a failure."""
    text = TEMPLATE.read_text(encoding="utf-8")
    for mark in ("# <library>\n", "# </library>\n\n\n"):
        text = text.replace(mark, "")
    return filled(text, _docstring(failure), _constants(failure) + _of_worker(failure))


def filled(template: str, docstring: str, constants: str) -> str:
    """Return a template with its docstring and the constants of a case."""
    head, _, rest = template.partition("# <case>\n")
    return head.replace("{{docstring}}", docstring) + constants + rest.partition("# </case>\n")[2]


def _of_worker(failure: Failure) -> str:
    """Return the functions that the script shares with the harness's worker, as they stand there."""
    functions: list[Callable[..., Any]] = [kind_of, packed, unpacked, elements_of, array_of]
    functions += [run_with_maps] * bool(failure.graph.maps)
    functions += [run_with_optionals] * bool(failure.graph.optionals)
    storage = {number: f"<{entry.storage}" for number, entry in BY_ONNX_NUMBER.items()}
    head = (
        "\nimport ctypes\nimport math\nfrom typing import Any, Dict, List, Sequence, Tuple\n\n"
        f"PACKED = {PACKED}  # bits of the types of which a byte holds several\n"
        f"_STORAGE = {storage}  # NumPy's types by ONNX's\n"
    )
    return "\n\n".join([head, *map(inspect.getsource, functions)])


def quotable_title(failure: Failure) -> str:
    """Return the title as a docstring can hold it."""
    return failure.title.replace("\\", "\\\\").replace('"""', "'''")


def _docstring(failure: Failure) -> str:
    return f"""{quotable_title(failure)}

Needs onnxruntime (for DirectML onnxruntime-directml, on Windows) and numpy, nothing else:  python repro.py

Exit code: 1 while the bug is there, 0 once it is fixed, 3 if it cannot tell (no such provider here, a release that does not know the
opset). The session runs in a process of its own, since some bugs end it; `--in-process` runs it in this one;
`--library PATH` loads a library of custom operators.
"""


def _constants(failure: Failure) -> str:
    case, graph = failure.case, failure.graph
    inputs = [
        f"    ({name!r}, {number}, {written_array(failure.prepared.inputs[position])}),"
        for position, (name, number) in zip(graph.fed, graph.inputs, strict=True)
    ]
    lines = [
        'LIBRARY = "onnxruntime"',
        f"CASE = {case.id!r}",
        f"PROVIDER = {failure.session.provider!r}",
        f"PROVIDER_OPTIONS = {dict(failure.session.provider_options)!r}",
        f"SESSION_CONFIG = {dict(failure.session.config)!r}",
        f"THREADS = {failure.session.threads}",
        f"OPTIMIZATION = {LEVELS[graph.optimization]!r}",
        f"IN_PLACE = {graph.in_place!r}",
        f"DEPLOYED = {dict(graph.deployed)!r}",
        "TIMEOUT_SECONDS = 60",
        f"TESTED = {list(graph.tested)!r}",
        "INPUTS = [  # (name, ONNX element type, array); types that NumPy lacks as integers of the same bits, one an element",
        *inputs,
        "]",
        *_before(failure),
        f"OPTIONALS = {list(graph.optionals)!r}",
        f"MAPS = {list(graph.maps)!r}",
        *output_lines(failure),
        f"EXPECTED_ERROR = {case.rule or ''!r}",
        f"REPORTED = {f'{failure.signature}; onnxruntime {failure.info.onnxruntime}'!r}",
        f"MODEL = {_text(graph.model)}  # model.onnx",
        f"OPSET_PROBE = {_text(_probe(opset_imports(case.operator, case.opset)['']))}  # an Identity at the same opset",
    ]
    return "\n".join(lines) + "\n"


def _before(failure: Failure) -> list[str]:
    before = failure.prepared.before
    if before is None:
        return ["BEFORE = []"]
    arrays = (f"    {written_array(before[position])}," for position in failure.graph.fed)
    return ["BEFORE = [  # a call that the session runs first", *arrays, "]"]


def output_lines(failure: Failure) -> list[str]:
    """Write the outputs and what is expected of them, as the template reads them."""
    written = [
        f"    ({name!r}, {number}, {str(np.dtype(BY_ONNX_NUMBER[number].storage))!r}),"
        for name, number in failure.graph.outputs
    ]
    head = "OUTPUTS = [  # (name, ONNX element type, NumPy's)"
    return [head, *written, "]", *expected_lines(failure.expected, failure.case.validity)]


def expected_lines(expected: Sequence[Expected] | None, validity: Validity) -> list[str]:
    """Write the expected outputs, one entry each, as the template reads them."""
    if validity is Validity.UNSPECIFIED:
        return ["EXPECTED = []  # ONNX leaves the result open; no call may end the process"]
    if expected is None:
        return ["EXPECTED = None  # an error is expected"]
    found = [
        "EXPECTED = [  # arrays, one of which holds each element, or a value and how far from it each element may be; one entry an output"
    ]
    for each in expected:
        if isinstance(each, Approx):
            value, bound = (written_array(Tensor("float64", array)) for array in (each.value, each.bound))
            overflow = f"float('{FORMATS[each.dtype].overflow}')"
            found.append(f"    {{'value': {value}, 'bound': {bound}, 'overflow': {overflow}}},")
        elif isinstance(each, OfLaw):
            raise UsageError(
                f"no script judges what is drawn ({each.says}): run the case itself, with `harness run -k`"
            )
        else:
            candidates = each.candidates if isinstance(each, OneOf) else (each.tensor,)
            found.append(f"    {{'any': [{', '.join(map(written_array, candidates))}]}},")
    return [*found, "]"]


def written_array(tensor: Tensor) -> str:
    """Write an array as an expression of the same bits: element by element if that is exact and short, otherwise as
    its bytes."""
    storage, array = DTYPES[tensor.dtype].storage, tensor.array
    if tensor.dtype == "string":
        return f"np.array({array.reshape(-1).tolist()!r}, object).reshape({array.shape!r})"
    name = str(np.dtype(storage))
    if not array.size:
        return f"np.zeros({array.shape!r}, {name!r})"
    written = _literal(tensor)
    if written is not None:
        return f"np.array({written!r}, {name!r})"
    return f"np.frombuffer(base64.b64decode({_text(array.tobytes())}), {name!r}).reshape({array.shape!r})"


def _literal(tensor: Tensor) -> Any:
    """Return nested lists that give the same bits back, None where there are none: many elements, NaN or
    infinity."""
    array = tensor.array
    if not 0 < array.size <= _WRITTEN_OUT or array.dtype.kind not in "iubf" or not np.isfinite(array).all():
        return None
    choices = [array.tolist()]
    if array.dtype.kind == "f":
        choices.insert(
            0, np.array([float(str(element)) for element in array.reshape(-1)]).reshape(array.shape).tolist()
        )
    for values in choices:
        if np.array(values, array.dtype).tobytes() == array.tobytes():
            return values
    return None


def _text(data: bytes) -> str:
    """Write bytes as base64 in a Python string, broken into lines."""
    encoded = base64.b64encode(data).decode()
    if len(encoded) <= _WIDTH:
        return repr(encoded)
    return "(\n" + "".join(f"    {part!r}\n" for part in textwrap.wrap(encoded, _WIDTH)) + ")"


def _probe(opset: int) -> bytes:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "XY"]
    graph = helper.make_graph([helper.make_node("Identity", ["X"], ["Y"])], "probe", values[:1], values[1:])
    model = helper.make_model(
        graph, ir_version=IR_VERSIONS[opset], opset_imports=[helper.make_opsetid("", opset)]
    )
    return bytes(model.SerializeToString(deterministic=True))
