"""The worker's backend for DirectML itself: a unit is one operator, described in JSON, and a case one
dispatch of it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterator, Sequence
from ctypes import c_int32, c_uint32, c_void_p
from typing import Any

from ..com import ComError, address_of, function, library, release
from ..device import describe_device
from . import gpu as d3d12
from .api import Api
from .debugging import InfoQueue
from .operators import OWNED_BY_DML, DescriptionError, NativeDescription
from .session import CompiledOperator

PROVIDER = "DirectML"
_ACCESS_VIOLATION = 0xC0000005
_UNWRITTEN = 0xCB
"""What the output is filled with before each dispatch: an element that is never written shows."""
_ONNX = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "float16": 10, "float64": 11, "uint32": 12,
    "uint64": 13,
}  # fmt: skip
_ALSO = {"uint8": 9, "uint32": 6, "uint64": 7}
"""What else the elements of an output may be: a bool; indices, which are never negative and have the same
bits."""


class DirectML:
    """Creates, compiles and runs operators on one device; a DirectML device per minimum feature level that
    units ask for."""

    def __init__(self, path: str | None, device_id: int, *, debug: bool) -> None:
        """Open the device; `path` is the DirectML.dll to use, None for the one in the installed wheel. Raises
        OSError."""
        self._path = path or wheel_path()
        if not address_of(library(self._path), "DMLCreateDevice1"):
            raise OSError(
                f"{self._path} exports no DMLCreateDevice1: it is not a DirectML.dll, or one older than 1.1"
            )
        self._device_id = device_id
        self._debug = debug
        self._gpu = d3d12.Gpu(d3d12.create_d3d12_device(device_id, debug=debug))
        self._messages = InfoQueue(self._gpu.device) if debug else None
        self._apis: dict[int, Api] = {}
        self._session: CompiledOperator | None = None
        self._arena, self._upload, self._readback = (
            d3d12.Buffer(self._gpu, heap) for heap in (d3d12.DEFAULT, d3d12.UPLOAD, d3d12.READBACK)
        )
        self._recorded = False

    def hello(self) -> dict[str, Any]:
        """Say which DirectML this is, on which device."""
        return {
            "onnxruntime": None,
            "providers": [PROVIDER],
            "device": describe_device(self._device_id, self._path),
        }

    def session(self, unit: Any, model: bytes) -> CompiledOperator:
        """Create, compile and initialize the operator that `model` describes; raises ComError with the call
        that failed."""
        with self._calls():
            return self._new_session(model)

    def _new_session(self, model: bytes) -> CompiledOperator:
        self._drop_session()
        description = NativeDescription(json.loads(model))
        if any(view.flags & OWNED_BY_DML for view in description.tensors.values()):
            raise DescriptionError(
                "tensors that DirectML owns are given at initialization, where a case has no data yet"
            )
        api = self._api(description.level)
        compiled = api.compile(description)
        try:
            self._recorded = True
            needs = api.initialize(compiled)
            if needs.persistent_bytes:
                self._flush()
            self._session = CompiledOperator(description, compiled, needs)
        except BaseException:
            self._discard()
            release(compiled)
            raise
        return self._session

    def assignment(self, session: CompiledOperator) -> list[list[str]]:
        """Return what runs the unit: there is nothing else here that could."""
        return [[PROVIDER, session.description.name]]

    def unknown_version(self, model: bytes) -> None:
        """A description has no opset: DirectML's own levels say what it takes."""

    def elsewhere(self, unit: Any, model: bytes) -> None:
        """Nothing else would take what DirectML refuses."""

    @property
    def lost(self) -> bool:
        """Say whether the Direct3D 12 device is gone, and with it what this process can do."""
        return self._gpu.removed()

    def after_failure(self, unit: Any, error: Exception) -> bool:
        """Clear what a failure left behind; say whether the session is lost, which it is with its DirectML
        device."""
        if self.lost:
            return True
        self._discard()
        removed = [level for level, api in self._apis.items() if api.removed()]
        if removed:
            self._drop_session()
        for level in removed:
            self._apis.pop(level).close()
        return bool(removed)

    def run(
        self, session: CompiledOperator, unit: Any, arrays: Sequence[Any], position: int
    ) -> list[tuple[Any, int]]:
        """Run one case; return each output as (elements in its shape, ONNX number of its element type).

        What DirectML holds as UINT8 may be a bool, as UINT32 and UINT64 an int32 and an int64, in the outputs
        that the unit asks for.
        """
        with self._calls():
            found = self._dispatch(session, arrays, unit.get("patterns") or (_UNWRITTEN, 0))
        numbers = [number for _, number in unit["outputs"]] + [None] * len(found)
        return [
            (
                elements,
                number
                if number is not None and number == _ALSO.get(output.view.dtype)
                else _ONNX[output.view.dtype],
            )
            for elements, output, number in zip(found, session.outputs, numbers)
        ]

    def _dispatch(
        self, session: CompiledOperator, arrays: Sequence[Any], patterns: tuple[int, int]
    ) -> list[Any]:
        self._fill(session, arrays, patterns)
        gpu, arena, placement = self._gpu, self._arena.pointer, session.placement
        self._recorded = True
        gpu.transition(arena, d3d12.COMMON, d3d12.COPY_DEST)
        gpu.copy(arena, 0, self._upload.pointer, 0, placement.bytes)
        gpu.transition(arena, d3d12.COPY_DEST, d3d12.UNORDERED_ACCESS)
        self._api(session.description.level).dispatch(
            session.compiled, session.needs, session.bound, session.bound_outputs
        )
        gpu.transition(arena, d3d12.UNORDERED_ACCESS, d3d12.COPY_SOURCE)
        total = 0
        for at, size in placement.outputs:
            gpu.copy(self._readback.pointer, total, arena, at, size)
            total += size
        self._flush()
        data, found, total = self._readback.read(total), [], 0
        for output, (_, size) in zip(session.outputs, placement.outputs):
            found.append(output.elements(data[total : total + size]))
            total += size
        return found

    def _fill(self, session: CompiledOperator, arrays: Sequence[Any], patterns: tuple[int, int]) -> None:
        """Write the inputs where they are uploaded from, and there a pattern that the outputs are to replace;
        another pattern lies behind the inputs and between all of them."""
        unwritten, around = patterns
        data = [array.tobytes() for array in arrays]
        sizes = [len(piece) for piece in data]
        if session.placed_for != (sizes, self._arena.pointer):
            session.placement = placement = session.place(sizes)
            arena = self._arena.reserve(placement.bytes)
            self._upload.reserve(placement.bytes)
            self._readback.reserve(sum(size for _, size in placement.outputs))
            session.bind(arena)
            session.placed_for = (sizes, arena)
        placement = session.placement
        if around:
            self._upload.write(0, bytes((around,)) * placement.bytes)
        for at, room in placement.outputs[0 if session.aliased is None else 1 :]:
            self._upload.write(at, bytes((unwritten,)) * room)
        for (at, room), piece in zip(placement.inputs, data):
            self._upload.write(at, piece + bytes((around,)) * (room - len(piece)))

    @contextlib.contextmanager
    def _calls(self) -> Iterator[None]:
        """Add what the debug layer says to errors; let an access violation be the crash that it is in any
        other program.

        ctypes would make an OSError of it and go on in a damaged process.
        """
        try:
            yield
        except ComError as error:
            said = self._messages.take() if self._messages is not None else ""
            if said:
                error.args = (f"{error}: {said}",)
            raise
        except OSError as error:
            print(f"harness: {error}", file=sys.stderr, flush=True)
            function(library("kernel32"), "TerminateProcess", c_int32, c_void_p, c_uint32)(
                c_void_p(-1), _ACCESS_VIOLATION
            )

    def _api(self, level: int) -> Api:
        api = self._apis.get(level)
        if api is None:
            api = self._apis[level] = Api(
                self._gpu, self._path, level, debug=self._debug and self._has_debug_layer()
            )
        return api

    def _has_debug_layer(self) -> bool:
        """Say whether DirectML's own debug layer stands beside the DLL; the wheels do not bring it."""
        return os.path.isfile(os.path.join(os.path.dirname(self._path), "DirectML.Debug.dll"))

    def _flush(self) -> None:
        self._gpu.flush()
        self._recorded = False

    def _discard(self) -> None:
        if self._recorded:
            self._recorded = False
            self._gpu.discard()

    def _drop_session(self) -> None:
        self._discard()
        if self._session is not None:
            release(self._session.compiled)
            self._session = None


def wheel_path() -> str:
    """Return the path of the DirectML.dll in the installed onnxruntime-directml, without importing it; raises
    OSError."""
    spec = importlib.util.find_spec("onnxruntime")
    path = (
        os.path.join(os.path.dirname(spec.origin), "capi", "DirectML.dll")
        if spec is not None and spec.origin
        else ""
    )
    if not os.path.isfile(path):
        raise OSError("no DirectML.dll: install onnxruntime-directml, or name one with directml,dll=PATH")
    return path
