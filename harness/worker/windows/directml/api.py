"""A DirectML device: creates, compiles, initializes, binds and records one operator; reuses the descriptors,
buffers and list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import addressof, byref, c_uint32, c_void_p
from typing import Any, Tuple

from ..com import Device, Guid, created, method, release
from ..device import IDML_DEVICE
from .gpu import DEFAULT, Buffer, Gpu
from .layouts import BindingProperties, BindingTableDesc, BufferBinding, TypedDesc
from .operators import BUFFER, NativeDescription

OPERATOR = "26caae7a-3081-4633-9581-226fbe57695d"
COMPILED_OPERATOR = "6b15e56a-bf5c-4902-92d8-da3a650afea4"
INITIALIZER = "427c1113-435c-469c-8676-4d5dd072f813"
BINDING_TABLE = "29c687dc-de74-4e3b-ab00-1168f2fc3cfc"
RECORDER = "e6857a76-2e3e-4fdd-bff4-5d2ba10fb453"
NO_BINDING = 0
"""DML_BINDING_TYPE_NONE."""
DEBUG_FLAG = 1
"""DML_CREATE_DEVICE_FLAG_DEBUG."""

Range = Tuple[int, int, int]
"""A buffer, and the offset and number of bytes of what is bound of it."""


class Bindings:
    """Room for ranges of buffers, in the form that a binding table takes; it copies them, so that the room
    can be used again.

    `bound` says for each whether there is a range: an optional tensor that is left out is bound to nothing.
    """

    def __init__(self, bound: Sequence[bool]) -> None:
        self._buffers = (BufferBinding * len(bound))()
        nothing = TypedDesc(NO_BINDING, None)
        descs = (
            TypedDesc(BUFFER, addressof(buffer)) if there else nothing
            for buffer, there in zip(self._buffers, bound)
        )
        self._descs = (TypedDesc * len(bound))(*descs)
        self._at = byref(self._descs)

    def of(self, parts: Sequence[Range | None]) -> Any:
        """Return the address of the bindings of these ranges, valid until the next call."""
        for buffer, part in zip(self._buffers, parts):
            if part is not None:
                buffer.buffer, buffer.offset, buffer.size = part
        return self._at


class Api(Device):
    """A DirectML device on a Direct3D 12 device, with a recorder, an initializer and a binding table that all
    operators share. It reports errors of bindings and recording, whose methods return nothing, by its removal."""

    def __init__(self, gpu: Gpu, path: str, minimum_level: int, *, debug: bool = False) -> None:
        """Create the device from the DirectML.dll at `path`; raises ComError, for instance for a level that
        the DLL lacks."""
        types, flags = (c_void_p, c_uint32, c_uint32, c_void_p), DEBUG_FLAG if debug else 0
        interface = byref(Guid(IDML_DEVICE))
        device = created(path, "DMLCreateDevice1", types, gpu.device, flags, minimum_level, interface)
        super().__init__(device, 15)
        self.gpu = gpu
        self._owned.append(device)
        self._create = method(self.device, 8, c_void_p, c_void_p, c_void_p)
        self._compile = method(self.device, 9, c_void_p, c_uint32, c_void_p, c_void_p)
        self._operator_id, self._compiled_id = Guid(OPERATOR), Guid(COMPILED_OPERATOR)
        self._recorder = self._make(11, RECORDER, "CreateCommandRecorder", ())
        self._record = method(self._recorder, 8, c_void_p, c_void_p, c_void_p, restype=None)
        self._initializer = self._make(
            10, INITIALIZER, "CreateOperatorInitializer", (c_uint32, c_void_p), 0, None
        )
        self._reset_initializer = method(self._initializer, 9, c_uint32, c_void_p)
        self._initializer_properties = method(self._initializer, 8, c_void_p, restype=c_void_p)
        self._one = Bindings((True,))
        self._rooms: dict[tuple[bool, ...], Bindings] = {}
        self._table = 0
        self._bind_inputs: Callable[..., Any]
        self._bind_outputs: Callable[..., Any]
        self._bind_temporary: Callable[..., Any]
        self._bind_persistent: Callable[..., Any]
        self._reset_table: Callable[..., Any]
        self._temporary, self._persistent = Buffer(gpu, DEFAULT), Buffer(gpu, DEFAULT)

    def compile(self, description: NativeDescription) -> int:
        """Return a compiled operator, which the caller releases; raises ComError of `CreateOperator` or
        `CompileOperator`."""
        operator, compiled = c_void_p(), c_void_p()
        self.check(
            self._create(byref(description.desc), byref(self._operator_id), byref(operator)), "CreateOperator"
        )
        try:
            code = self._compile(operator, description.flags, byref(self._compiled_id), byref(compiled))
            self.check(code, "CompileOperator")
        finally:
            release(operator.value)
        return int(compiled.value or 0)

    def initialize(self, compiled: int) -> BindingProperties:
        """Record the initialization of an operator and return what its dispatch needs; raises ComError.

        Its dispatches have to be recorded before another operator is initialized: both use the same
        descriptors and buffers.
        """
        self.check(self._reset_initializer(1, byref(c_void_p(compiled))), "IDMLOperatorInitializer::Reset")
        needs, first = BindingProperties(), BindingProperties()
        method(compiled, 8, c_void_p, restype=c_void_p)(byref(needs))
        self._initializer_properties(byref(first))
        self._behind = first.descriptors
        self.gpu.use_descriptors(self._behind + max(1, needs.descriptors))
        temporary = self._temporary.reserve(max(first.temporary_bytes, needs.temporary_bytes))
        self._point_table(self._initializer, 0, first.descriptors)
        if first.temporary_bytes:
            self._bind_temporary(self._one.of([(temporary, 0, first.temporary_bytes)]))
        if needs.persistent_bytes:
            self._bind_outputs(
                1,
                self._one.of([(self._persistent.reserve(needs.persistent_bytes), 0, needs.persistent_bytes)]),
            )
        self._record(self.gpu.list, self._initializer, self._table)
        self.gpu.order_writes()
        self._require_device("initialize")
        return needs

    def dispatch(
        self,
        compiled: int,
        needs: BindingProperties,
        inputs: Sequence[Range | None],
        outputs: Sequence[Range | None],
    ) -> None:
        """Record the dispatch of an initialized operator; raises DeviceRemoved where DirectML refuses the
        bindings.

        A range for each input and output of its structure, None for one that is left out.
        """
        self.gpu.use_descriptors(self._behind + max(1, needs.descriptors))
        self._point_table(compiled, self._behind, needs.descriptors)
        if needs.temporary_bytes:
            self._bind_temporary(self._one.of([(self._temporary.pointer, 0, needs.temporary_bytes)]))
        if needs.persistent_bytes:
            self._bind_persistent(self._one.of([(self._persistent.pointer, 0, needs.persistent_bytes)]))
        self._bind_inputs(len(inputs), self._bindings(inputs))
        self._bind_outputs(len(outputs), self._bindings(outputs))
        self._record(self.gpu.list, compiled, self._table)
        self._require_device("dispatch")

    def _bindings(self, parts: Sequence[Range | None]) -> Any:
        bound = tuple(part is not None for part in parts)
        room = self._rooms.get(bound)
        if room is None:
            room = self._rooms[bound] = Bindings(bound)
        return room.of(parts)

    def _point_table(self, dispatchable: int, first: int, count: int) -> None:
        """Let the table hold the bindings of a dispatchable object, in descriptors from number `first` on."""
        step = self.gpu.increment * first
        desc = BindingTableDesc(dispatchable, self.gpu.cpu + step, self.gpu.gpu + step, max(1, count))
        if self._table:
            self.check(self._reset_table(byref(desc)), "IDMLBindingTable::Reset")
            return
        self._table = self._make(12, BINDING_TABLE, "CreateBindingTable", (c_void_p,), byref(desc))
        self._bind_inputs = method(self._table, 8, c_uint32, c_void_p, restype=None)
        self._bind_outputs = method(self._table, 9, c_uint32, c_void_p, restype=None)
        self._bind_temporary = method(self._table, 10, c_void_p, restype=None)
        self._bind_persistent = method(self._table, 11, c_void_p, restype=None)
        self._reset_table = method(self._table, 12, c_void_p)

    def close(self) -> None:
        """Release everything but the Direct3D 12 device."""
        self._temporary.close()
        self._persistent.close()
        release(*reversed(self._owned))
        self._owned.clear()
