"""Writes the `repro.py` of a call of DirectML's own API: one file that needs Windows, NumPy and a DirectML.dll.

It carries the modules of the harness's worker that call DirectML with ctypes, as they are, so that what runs for a
reader is what ran for the harness.
"""

from __future__ import annotations

import json
import pprint
from pathlib import Path

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import BY_ONNX_NUMBER
from harness.model.errors import HarnessFault
from harness.targets.windows.runtime import BOOT
from harness.triage.repro.failure import Failure
from harness.triage.repro.script import TEMPLATE, expected_lines, written_array

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
    head, _, rest = (before + section.rstrip() + "\n\n\n" + after.lstrip()).partition("# <case>\n")
    code = rest.partition("# </case>\n")[2]
    return head.replace("{{docstring}}", _docstring(failure)) + _constants(failure) + code


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
    title = failure.title.replace("\\", "\\\\").replace('"""', "'''")
    return f"""{title}

Calls DirectML itself, with ctypes: needs Windows, numpy and a DirectML.dll, that of an installed onnxruntime-directml or
--dll PATH. `--device N` takes another adapter.  python repro.py

Exit code: 1 while the bug is there, 0 once it is fixed, 3 if it cannot tell (no Windows, no DirectML). The call runs in a process of
its own, since some bugs end it; `--in-process` runs it in this one.
"""


def _constants(failure: Failure) -> str:
    assert failure.description is not None
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
        "OUTPUTS = [  # (name, ONNX element type, NumPy's)",
        *(
            f"    ({name!r}, {number}, {str(np.dtype(BY_ONNX_NUMBER[number].storage))!r}),"
            for name, number in failure.graph.outputs
        ),
        "]",
        *expected_lines(failure.expected, failure.case.validity),
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
