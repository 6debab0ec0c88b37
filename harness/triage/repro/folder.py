"""Writes a repro: model, tensors in the layout of ONNX's backend tests, the script, and the text of an
issue."""

from __future__ import annotations

from pathlib import Path

from onnx import TensorProto

from harness.model.dtypes import DTYPES
from harness.model.errors import UsageError
from harness.model.expected import nearest
from harness.model.records import Tensor
from harness.targets.frames import tensor_bytes
from harness.triage.repro.failure import Failure
from harness.triage.repro.issue import issue
from harness.triage.repro.script import script

_DATA = "test_data_set_0"


def write_repro(failure: Failure, folder: Path, bisection: str | None) -> list[Path]:
    """Write the files and return them; an invalid case has no output files. Raises UsageError where the
    folder cannot be written."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file; -o names a folder")
    graph = failure.graph
    files: dict[str, bytes] = {"model.onnx": graph.model}
    for number, (position, (name, _)) in enumerate(zip(graph.fed, graph.inputs, strict=True)):
        files[f"{_DATA}/input_{number}.pb"] = tensor_proto(name, failure.prepared.inputs[position])
    for number, ((name, _), expected) in enumerate(zip(graph.outputs, failure.expected or (), strict=False)):
        files[f"{_DATA}/output_{number}.pb"] = tensor_proto(name, nearest(expected))
    code = script(failure)
    files["repro.py"] = code.encode()
    files["issue.md"] = issue(failure, code, bisection).encode()
    try:
        (folder / _DATA).mkdir(parents=True, exist_ok=True)
        for stale in [path for kind in ("input", "output") for path in (folder / _DATA).glob(f"{kind}_*.pb")]:
            stale.unlink(missing_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be written: {error.strerror}; choose another folder with -o"
        ) from error
    return [folder / name for name in files]


def tensor_proto(name: str, tensor: Tensor) -> bytes:
    """Return a tensor as the bytes of a TensorProto."""
    proto = TensorProto(name=name, data_type=DTYPES[tensor.dtype].onnx, dims=tensor.array.shape)
    if tensor.dtype == "string":
        proto.string_data.extend(str(text).encode() for text in tensor.array.reshape(-1))
    else:
        proto.raw_data = tensor_bytes(tensor)
    return bytes(proto.SerializeToString(deterministic=True))
