"""Writes a repro: model, tensors in the layout of ONNX's backend tests, the script, and the text of an issue; of a call
of DirectML's own API its description and tensors in place of the model."""

from __future__ import annotations

from pathlib import Path

from harness.compile.protos import tensor_proto
from harness.model.case import Tensor
from harness.model.errors import UsageError
from harness.model.expected import nearest
from harness.triage.repro.directml_issue import directml_files
from harness.triage.repro.failure import CASE_FILE, Failure
from harness.triage.repro.issue import issue
from harness.triage.repro.script import script

_DATA = "test_data_set_0"
_NUMBERED = (f"{_DATA}/input_*.pb", f"{_DATA}/output_*.pb", "input_*.npy", "expected_*.npy", "actual_*.npy")
"""Files of an earlier repro that this one need not have."""


def write_repro(failure: Failure, folder: Path, bisection: str | None) -> list[Path]:
    """Write the files and return them; an invalid case has no output files. Raises UsageError where the
    folder cannot be written."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file; -o names a folder")
    files = directml_files(failure, bisection) if failure.description else _onnx_files(failure, bisection)
    try:
        for stale in [path for pattern in _NUMBERED for path in folder.glob(pattern)]:
            stale.unlink(missing_ok=True)
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be written: {error.strerror}; choose another folder with -o"
        ) from error
    return [folder / name for name in files]


def _onnx_files(failure: Failure, bisection: str | None) -> dict[str, bytes]:
    graph = failure.graph
    files: dict[str, bytes] = {"model.onnx": graph.model}
    for number, (position, (name, _)) in enumerate(zip(graph.fed, graph.inputs, strict=True)):
        files[f"{_DATA}/input_{number}.pb"] = _bytes(name, failure.prepared.inputs[position])
    for number, ((name, _), expected) in enumerate(zip(graph.outputs, failure.expected or (), strict=False)):
        files[f"{_DATA}/output_{number}.pb"] = _bytes(name, nearest(expected))
    code = script(failure)
    files["repro.py"] = code.encode()
    if failure.spec_file is not None:
        files[CASE_FILE] = failure.spec_file.encode()
    files["issue.md"] = issue(failure, code, bisection).encode()
    return files


def _bytes(name: str, tensor: Tensor) -> bytes:
    return bytes(tensor_proto(name, tensor).SerializeToString(deterministic=True))
