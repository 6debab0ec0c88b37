"""Writes the files of a repro that describe a call of DirectML's own API: the issue, with every member of its
structures, the description as JSON, the tensors and the case as a spec.

`repro.py` is one file that needs Windows, NumPy and a DirectML.dll. It carries the modules of the harness's worker
that call DirectML with ctypes, as they are, so that what runs for a reader is what ran for the harness.
"""

from __future__ import annotations

import io
import json
import pprint
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from harness.model.case import Tensor, Validity
from harness.model.dtypes import DTYPES, Array
from harness.model.errors import HarnessFault
from harness.model.expected import nearest
from harness.operators.directml.description import BufferTensor, Description
from harness.render.documents import document
from harness.render.text import without_paths
from harness.targets.launches import THIS_INTERPRETER
from harness.targets.windows.runtime import BOOT
from harness.triage.repro.failure import CASE_FILE, Failure, other_facts
from harness.triage.repro.issue import expected_said, fenced, given_said, table, tensor_text, wine_said
from harness.triage.repro.script import TEMPLATE, filled, output_lines, quotable_title, written_array

SECTION = Path(__file__).with_name("directml_template.py")
MODULES_END = "}  # end of the modules"
_OPEN, _CLOSE = "# <library>\n", "# </library>\n"
_MODULES = (
    "com", "device", "directml", "directml.layouts", "directml.operators", "directml.debugging", "directml.gpu", "directml.api",
    "directml.session", "directml.backend",
)  # fmt: skip
"""The worker's modules, each behind those that it imports."""


def directml_script(failure: Failure) -> str:
    """Return the text of `repro.py` for a failure of the target `directml`."""
    text = TEMPLATE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_OPEN)
    _, _, after = rest.partition(_CLOSE)
    section = SECTION.read_text(encoding="utf-8").partition(_OPEN)[2].partition(_CLOSE)[0]
    whole = before + section.rstrip() + "\n\n\n" + after.lstrip()
    return filled(whole, _docstring(failure), _constants(failure))


def passed(failure: Failure) -> list[tuple[str, Tensor]]:
    """Return the array that is bound to each input of the description, by its name there: a flat buffer where it has
    strides."""
    assert failure.description is not None
    held = failure.prepared.buffers or failure.prepared.inputs
    return [
        (name, held[position])
        for name, position in zip(failure.description.inputs, failure.graph.fed, strict=True)
    ]


def _docstring(failure: Failure) -> str:
    return f"""{quotable_title(failure)}

Calls DirectML itself, with ctypes: needs Windows, numpy and a DirectML.dll, that of an installed onnxruntime-directml or
--dll PATH. `--device N` takes another adapter.  python repro.py

Exit code: 1 while the bug is there, 0 once it is fixed, 3 if it cannot tell (no Windows, no DirectML). The call runs in a process of
its own, since some bugs end it; `--in-process` runs it in this one.
"""


def _constants(failure: Failure) -> str:
    options = failure.target.options
    description = pprint.pformat(json.loads(failure.graph.model), width=100, sort_dicts=False)
    lines = [
        'LIBRARY = "DirectML"',
        f"CASE = {failure.case.id!r}",
        f"DEVICE_ID = {int(options.get('device_id', 0))}",
        f"DEBUG = {options.get('debug') == '1'}  # the debug layers",
        "TIMEOUT_SECONDS = 60",
        f"DESCRIPTION = {description}  # the operator: sizes and strides in elements",
        "INPUTS = [  # (tensor of the description, what its buffer holds)",
        *(f"    ({name!r}, {written_array(tensor)})," for name, tensor in passed(failure)),
        "]",
        *output_lines(failure),
        f"EXPECTED_ERROR = {failure.case.rule or ''!r}",
        f"REPORTED = {f'{failure.signature}; DirectML {failure.info.directml}'!r}",
        *_modules(),
    ]
    return "\n".join(lines) + "\n"


def _modules() -> list[str]:
    """Write the worker's modules as they are."""
    lines = [
        "MODULES = {  # Direct3D 12 and DirectML through ctypes, by the names of a package's modules",
        "    '': '',",
    ]
    for name in _MODULES:
        path = BOOT.parent.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        text = path.read_text(encoding="utf-8")
        if "'''" in text or text.endswith("\\"):
            raise HarnessFault(f"{path.name}: cannot stand in a raw string of ''' signs")
        lines.append(f"    {name!r}: r'''{text}''',")
    return [*lines, MODULES_END]


def directml_files(failure: Failure, bisection: str | None) -> dict[str, bytes]:
    """Return the files of the repro of a call of DirectML's own API, by their names.

    Tensors are NumPy's `.npy`: `input_N` what the buffer of the description's N-th input holds, `expected_N` and
    `actual_N` the N-th output.
    """
    files = {
        "repro.py": directml_script(failure).encode(),
        "operator.json": (json.dumps(json.loads(failure.graph.model), indent=1) + "\n").encode(),
    }
    files |= {f"{name}.npy": _npy(array) for name, array in _arrays(failure)}
    if failure.spec_file is not None:
        files[CASE_FILE] = failure.spec_file.encode()
    files["issue.md"] = _issue(failure, bisection).encode()
    return files


def _arrays(failure: Failure) -> Iterator[tuple[str, Array]]:
    for number, (_, tensor) in enumerate(passed(failure)):
        yield f"input_{number}", tensor.array
    for number, expected in enumerate(failure.expected or ()):
        yield f"expected_{number}", nearest(expected).array
    for number, tensor in enumerate(failure.actual or ()):
        yield f"actual_{number}", tensor.array


def _npy(array: Array) -> bytes:
    held = io.BytesIO()
    np.save(held, array, allow_pickle=False)
    return held.getvalue()


def _issue(failure: Failure, bisection: str | None) -> str:
    """Return the report as Markdown; no path of this machine is in it."""
    description = failure.description
    assert description is not None
    parts = [
        f"# {failure.title}",
        *_what_happens(failure),
        "## What the documents say",
        _specification(failure, description),
    ]
    parts += ["## The call", _call(description), "## Tensors", _tensors(failure, description)]
    if failure.origin is not None:
        parts.append(f"It was reduced from `{failure.origin}`.")
    if bisection is not None:
        parts += ["## Since when", bisection.strip()]
    parts += ["## To reproduce", *_reproduce(failure), "## Where it was seen", _seen(failure)]
    return "\n\n".join(parts) + "\n"


def _what_happens(failure: Failure) -> Iterator[str]:
    yield f"DirectML {failure.what} (`{failure.signature.outcome.value}`); ONNX Runtime takes no part in the call."
    yield from wine_said(failure)
    yield from given_said(failure)
    yield from expected_said(failure)


def _specification(failure: Failure, description: Description) -> str:
    case = failure.case
    source = case.source or ""
    page = document(source, {case.operator})
    named = f" Source: {source}{f' (<{page}>)' if page and page not in source else ''}." if source else ""
    whose = (
        "Microsoft's documents"
        if case.directml is not None
        else f"ONNX's {case.operator} at opset {case.opset}"
    )
    if case.validity is Validity.INVALID:
        return f"An error is expected, since the call breaks a rule of {whose}:\n\n> {case.rule}\n\n{named.strip()}".rstrip()
    own = document(_structure(description), ())
    return f"The call is valid and its result is defined by {whose}.{named} Microsoft's page of the operator: <{own}>."


def _structure(description: Description) -> str:
    """Return the name of the operator's structure in DirectML.h."""
    return f"DML_{description.operator.removeprefix('DML_OPERATOR_')}_OPERATOR_DESC"


def _call(description: Description) -> str:
    """Write every member of the structures, as DirectML.h names them."""
    lines = [f"{_structure(description)}  (DML_OPERATOR_TYPE {description.number}, {description.operator})"]
    views = dict(description.views())
    for member in description.members:
        name = member.partition(":")[0]
        if name not in description.tensors:
            lines.append(f"  {name} = {json.dumps(description.attributes[name])}")
            continue
        held = [each for each in views if each.partition(".")[0] == name]
        lines += [line for each in held for line in _tensor(each, views[each])] or [f"  {name} = NULL"]
    lines.append(f"DML_EXECUTION_FLAGS = {description.flags}")
    lines.append(f"minimum feature level of DMLCreateDevice1 = {description.minimum_feature_level}")
    if description.in_place is not None:
        lines.append(f"The first output is bound to the buffer of {description.in_place}.")
    return fenced("\n".join(lines))


def _tensor(name: str, view: BufferTensor) -> list[str]:
    strides = "NULL" if view.strides is None else list(view.strides)
    return [
        f"  {name} = DML_BUFFER_TENSOR_DESC",
        f"    DataType = DML_TENSOR_DATA_TYPE_{DTYPES[view.dtype].directml}, Flags = {view.flags}",
        f"    DimensionCount = {len(view.sizes)}, Sizes = {list(view.sizes)}, Strides = {strides}",
        f"    TotalTensorSizeInBytes = {view.bytes}, GuaranteedBaseOffsetAlignment = {view.alignment}",
    ]


def _tensors(failure: Failure, description: Description) -> str:
    rows = [
        f"| {name} | {tensor_text(tensor)} | `input_{number}.npy` |"
        for number, (name, tensor) in enumerate(passed(failure))
    ]
    for number, name in enumerate(description.outputs):
        files = [
            f"`{kind}_{number}.npy`"
            for kind, given in (("expected", failure.expected), ("actual", failure.actual))
            if given
        ]
        rows.append(f"| {name} | | {', '.join(files) or '–'} |")
    return "\n".join(["| tensor | buffer | file |", "| --- | --- | --- |", *rows])


def _reproduce(failure: Failure) -> Iterator[str]:
    info = failure.info
    release = failure.target.release
    wheel = f"onnxruntime-directml{f'=={release}' if release else ''}"
    own = "; `--dll PATH` takes the DLL that was tested" if "dll" in failure.target.options else ""
    yield f"`repro.py` calls DirectML {info.directml or ''} with ctypes; it needs Windows, numpy and a DirectML.dll alone{own}:"
    yield fenced(
        f"python -m pip install {wheel} numpy\npython repro.py   # exit code 1 while the bug is there", "sh"
    )
    ort = f"--ort {release} " if release else ""
    yield f"On Linux, in the harness's Windows runtime: `harness windows python {ort}repro.py`."
    yield "With the conformance harness:"
    yield fenced("\n".join(failure.harness_commands), "sh")


def _seen(failure: Failure) -> str:
    info = failure.info
    rows = [("DirectML.dll", info.directml or ""), ("SHA-256", info.directml_sha256 or "")]
    rows += [(name, value) for name, value in other_facts(failure) if name != "execution provider"]
    if info.runtime == THIS_INTERPRETER and info.platform:
        rows.append(("platform", without_paths(info.platform)))
    return table(rows)
