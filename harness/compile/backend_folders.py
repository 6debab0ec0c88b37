"""Folders in the layout of ONNX's backend tests: TEST/model.onnx, TEST/test_data_set_0/input_0.pb and output_0.pb.

The layout is that of onnx/docs/OnnxBackendTest.md; `data.json` beside the model holds the `rtol` and `atol`
that ONNX's runner (`onnx.backend.test`) takes in place of its own 1e-3 and 1e-7.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto

from harness.compile.protos import tensor_proto
from harness.model.case import Tensor
from harness.model.errors import UsageError, naming
from harness.model.plain_file import read_bytes

MODEL, DATA_SET, SETTINGS = "model.onnx", "test_data_set_", "data.json"
_LARGEST = 256 << 20
"""Bytes of one file that is read."""
_NUMBERED = re.compile(r"(input|output)_([0-9]{1,6})\.pb")


class Damaged(ValueError):
    """A test with an unreadable file; the message names the file and the reason."""


class DataSet(NamedTuple):
    """The tensors of one call; None stands for a value that is not a tensor (a sequence, an optional
    value)."""

    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


class BackendTest(NamedTuple):
    """One backend test: its name, its model and one data set or more."""

    name: str
    model: ModelProto
    data_sets: tuple[DataSet, ...]


def folders_of(folder: Path) -> list[Path]:
    """Return the folders of the tests in a folder, in order: itself, or all below it that hold a model.onnx.

    Raises UsageError where there is none.
    """
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "no such folder"
        raise UsageError(f"{folder}: {what}; name a folder of ONNX backend tests, or `onnx` for ONNX's own")
    with naming(folder, "read"):
        os.listdir(folder)  # os.walk passes over a folder that cannot be read
    found = sorted(
        Path(at) for at, _, files in os.walk(folder) if MODEL in files
    )  # what vanishes meanwhile is left out
    if not found:
        raise UsageError(
            f"{folder}: no ONNX backend test: neither {folder.name or folder}/{MODEL} nor TEST/{MODEL} with TEST/{DATA_SET}0/ below it"
        )
    return found


def read_test(folder: Path) -> BackendTest:
    """Read the test of one folder; raise Damaged."""
    model = ModelProto()
    _parse(model, folder / MODEL)
    if not model.HasField("graph"):
        raise Damaged(f"{MODEL}: no ONNX model")
    sets = sorted(path for path in folder.glob(f"{DATA_SET}*") if path.is_dir())
    if not sets:
        raise Damaged(f"no {DATA_SET}0/ beside {MODEL}")
    data = tuple(
        DataSet(_tensors(each, "input", fed_inputs(model)), _tensors(each, "output", model.graph.output))
        for each in sets
    )
    return BackendTest(folder.name, model, data)


def fed_inputs(model: ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs of a model that have no initializer: those that a data set holds, in its order."""
    initialized = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initialized]


def _tensors(folder: Path, kind: str, declared: Sequence[onnx.ValueInfoProto]) -> tuple[Any, ...]:
    numbers = sorted(
        int(found[2])
        for path in folder.iterdir()
        if (found := _NUMBERED.fullmatch(path.name)) and found[1] == kind
    )
    if numbers != list(range(len(declared))):
        there = f"{len(numbers)} files {kind}_N.pb" if numbers else f"no {kind}_0.pb"
        verb = "takes" if kind == "input" else "gives"
        raise Damaged(f"{folder.name}: {there}, where the model {verb} {len(declared)}")
    return tuple(_tensor(folder / f"{kind}_{number}.pb", value) for number, value in enumerate(declared))


def _tensor(path: Path, value: onnx.ValueInfoProto) -> TensorProto | None:
    if not value.type.HasField("tensor_type"):
        return None
    proto = TensorProto()
    _parse(proto, path)
    return proto


def _parse(proto: Any, path: Path) -> None:
    try:
        proto.ParseFromString(read_bytes(path, _LARGEST))
    except OSError as error:
        raise Damaged(f"{path.name}: cannot be read: {error.strerror}") from error
    except (DecodeError, ValueError, RuntimeError) as error:
        raise Damaged(f"{path.name}: damaged, or no file of ONNX") from error


class ExportedTest(NamedTuple):
    """What one exported test consists of: the bytes of its model, named inputs and outputs, `data.json`."""

    name: str
    model: bytes
    inputs: Sequence[tuple[str, Tensor]]
    outputs: Sequence[tuple[str, Tensor]]
    settings: Mapping[str, Any]

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the name of each file below the folder of the test, and its bytes."""
        yield MODEL, self.model
        for kind, tensors in (("input", self.inputs), ("output", self.outputs)):
            for number, (name, tensor) in enumerate(tensors):
                proto = tensor_proto(name, tensor)
                yield f"{DATA_SET}0/{kind}_{number}.pb", proto.SerializeToString(deterministic=True)
        yield SETTINGS, msgspec.json.format(msgspec.json.encode(dict(self.settings)), indent=2) + b"\n"


def write_test(folder: Path, test: ExportedTest) -> None:
    """Write a test below a folder, in place of one of its name. Errors: OSError."""
    own = folder / test.name
    data = own / f"{DATA_SET}0"
    data.mkdir(parents=True, exist_ok=True)
    for stale in data.iterdir():
        if _NUMBERED.fullmatch(stale.name):
            stale.unlink()
    for name, content in test.files():
        (own / name).write_bytes(content)


def onnx_tests(operators: Collection[str] = ()) -> Iterator[BackendTest]:
    """Yield all cases, or those of one node that is one of these operators, by name.

    Takes some seconds: onnx computes their data.
    """
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    for test in sorted(found, key=lambda each: each.name):
        model = test.model
        if model is None or (
            operators and [node.op_type for node in model.graph.node if node.op_type in operators] == []
        ):
            continue
        if operators and len(model.graph.node) > 1:
            continue
        sets = tuple(DataSet(tuple(inputs), tuple(outputs)) for inputs, outputs in test.data_sets or ())
        yield BackendTest(test.name, model, sets)
