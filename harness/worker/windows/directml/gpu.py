"""A Direct3D 12 device as DirectML needs it: one queue, one command list, one fence, descriptors, and buffers
that grow."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_uint32, c_uint64, c_void_p
from typing import Any

from ..com import Device, Guid, method, release
from ..device import adapter_of, d3d12_device
from .debugging import enable_debug_layer
from .layouts import HeapProperties, ResourceDesc, Transition

QUEUE = "0ec870a6-5d7e-4c22-8cfc-5baae07616ed"
ALLOCATOR = "6102dee4-af59-4b09-b999-b44d73f09b24"
COMMAND_LIST = "5b160d0f-ac1b-4185-8ba8-b3ae42a5a455"
DESCRIPTOR_HEAP = "8efb471d-616c-4f49-90f7-127bb763fa51"
FENCE = "0a753dcf-c4d8-4b91-adf6-be5a60d95a76"
RESOURCE = "696442be-a72e-4059-bc79-5b5c98040fad"

COMPUTE = 2
"""D3D12_COMMAND_LIST_TYPE_COMPUTE."""
DEFAULT, UPLOAD, READBACK = 1, 2, 3
"""D3D12_HEAP_TYPE."""
COMMON, UNORDERED_ACCESS, COPY_DEST, COPY_SOURCE, GENERIC_READ = 0, 0x8, 0x400, 0x800, 0xAC3
"""D3D12_RESOURCE_STATES."""
_STATES = {DEFAULT: COMMON, UPLOAD: GENERIC_READ, READBACK: COPY_DEST}
_ALLOW_UNORDERED_ACCESS = 4
_ROW_MAJOR = 1
_ALL_SUBRESOURCES = 0xFFFFFFFF
_GRANULE = 1 << 16
"""Buffers take whole units of 64 KiB anyway."""


def create_d3d12_device(device_id: int, *, debug: bool) -> int:
    """Return an ID3D12Device on DXGI adapter `device_id`, with the debug layer if asked for; raises
    ComError."""
    if debug:
        enable_debug_layer()
    with adapter_of(device_id) as adapter:
        return d3d12_device(adapter)


class Gpu(Device):
    """An open command list on one queue; `flush` runs what is recorded and opens the list again. Owns all
    that it makes."""

    def __init__(self, device: int) -> None:
        super().__init__(device, 37)
        self._commit = method(
            device, 27, c_void_p, c_uint32, c_void_p, c_uint32, c_void_p, c_void_p, c_void_p
        )
        self._queue = self._make(
            8, QUEUE, "CreateCommandQueue", (c_void_p,), byref((c_uint32 * 4)(COMPUTE, 0, 0, 0))
        )
        self._allocator = self._make(9, ALLOCATOR, "CreateCommandAllocator", (c_uint32,), COMPUTE)
        types = (c_uint32, c_uint32, c_void_p, c_void_p)
        self.list = self._make(
            12, COMMAND_LIST, "CreateCommandList", types, 0, COMPUTE, self._allocator, None
        )
        self._fence = self._make(36, FENCE, "CreateFence", (c_uint64, c_uint32), 0, 0)
        self._signalled = 0
        self._lists = (c_void_p * 1)(self.list)
        self._close = method(self.list, 9)
        self._reset = method(self.list, 10, c_void_p, c_void_p)
        self._copy = method(self.list, 15, c_void_p, c_uint64, c_void_p, c_uint64, c_uint64, restype=None)
        self._barrier = method(self.list, 26, c_uint32, c_void_p, restype=None)
        self._set_heaps = method(self.list, 28, c_uint32, c_void_p, restype=None)
        self._execute = method(self._queue, 10, c_uint32, c_void_p, restype=None)
        self._signal = method(self._queue, 14, c_void_p, c_uint64)
        self._reset_allocator = method(self._allocator, 8)
        self._completed = method(self._fence, 8, restype=c_uint64)
        self._notify = method(self._fence, 9, c_uint64, c_void_p)
        self.increment = method(device, 15, c_uint32, restype=c_uint32)(0)
        """Bytes between two descriptors of the heap."""
        self._heap = self.cpu = self.gpu = self._capacity = 0
        self._transition = Transition(0, 0, None, _ALL_SUBRESOURCES, 0, 0)
        self._transition_at = byref(self._transition)

    def use_descriptors(self, count: int) -> None:
        """Set a heap of at least `count` descriptors on the command list; a larger one replaces that of what
        is already recorded."""
        if count > self._capacity:
            if self._heap:
                self._owned.remove(self._heap)
                release(self._heap)
            self._capacity = self._heap = 0
            capacity = max(256, 1 << (count - 1).bit_length())
            self._heap = self._make(
                14,
                DESCRIPTOR_HEAP,
                "CreateDescriptorHeap",
                (c_void_p,),
                byref((c_uint32 * 4)(0, capacity, 1, 0)),
            )
            self._capacity = capacity
            start = c_uint64()
            method(self._heap, 9, c_void_p, restype=c_void_p)(byref(start))
            self.cpu = start.value
            method(self._heap, 10, c_void_p, restype=c_void_p)(byref(start))
            self.gpu = start.value
        self._set_heaps(1, byref(c_void_p(self._heap)))

    def create_buffer(self, size: int, heap: int) -> int:
        """Return a buffer of `size` bytes in a heap of a kind; the caller releases it."""
        made = c_void_p()
        properties = HeapProperties(heap, 0, 0, 1, 1)
        flags = _ALLOW_UNORDERED_ACCESS if heap == DEFAULT else 0
        desc = ResourceDesc(1, 0, size, 1, 1, 1, 0, 1, 0, _ROW_MAJOR, flags)
        code = self._commit(
            byref(properties), 0, byref(desc), _STATES[heap], None, byref(Guid(RESOURCE)), byref(made)
        )
        self.check(code, "CreateCommittedResource")
        return int(made.value or 0)

    def transition(self, buffer: int, before: int, after: int) -> None:
        """Record a barrier between two uses of a buffer."""
        self._transition.resource, self._transition.before, self._transition.after = buffer, before, after
        self._barrier(1, self._transition_at)

    def order_writes(self) -> None:
        """Record a barrier between dispatches of which one uses what another writes."""
        self._barrier(1, byref(Transition(2, 0, None, 0, 0, 0)))

    def copy(self, destination: int, to: int, source: int, start: int, size: int) -> None:
        """Record a copy of bytes between buffers."""
        self._copy(destination, to, source, start, size)

    def flush(self) -> None:
        """Run what is recorded, wait for it, and open the list again; raises DeviceRemoved with the
        reason."""
        self.check(self._close(), "Close")
        self._execute(1, self._lists)
        self._signalled += 1
        self.check(self._signal(self._fence, self._signalled), "Signal")
        if self._completed() < self._signalled:
            # without an event it returns when the fence is reached, or the device removed
            self.check(self._notify(self._signalled, None), "SetEventOnCompletion")
        self._require_device("Signal")
        self._reopen()

    def discard(self) -> None:
        """Forget what is recorded and open the list again."""
        self._close()
        self._reopen()

    def _reopen(self) -> None:
        self.check(self._reset_allocator(), "ID3D12CommandAllocator::Reset")
        self.check(self._reset(self._allocator, None), "ID3D12GraphicsCommandList::Reset")

    def _require_device(self, _what: str) -> None:
        super()._require_device("D3D12")  # which of its calls notices is chance


class Buffer:
    """A buffer that is replaced by a larger one when more is needed; those of the upload and readback heaps
    stay mapped."""

    def __init__(self, gpu: Gpu, heap: int) -> None:
        self._gpu = gpu
        self._heap = heap
        self.pointer = self.size = self.address = 0

    def reserve(self, size: int) -> int:
        """Return the buffer, of at least `size` bytes. What it held is lost if it grows; the GPU must be
        idle."""
        if size > self.size or not self.pointer:
            self.close()
            grown = (max(size, 1) + _GRANULE - 1) & -_GRANULE
            self.pointer = self._gpu.create_buffer(grown, self._heap)
            self.size = grown
            if self._heap != DEFAULT:
                mapped = c_void_p()
                self._gpu.check(
                    method(self.pointer, 8, c_uint32, c_void_p, c_void_p)(0, None, byref(mapped)), "Map"
                )
                self.address = int(mapped.value or 0)
        return self.pointer

    def write(self, offset: int, data: Any) -> None:
        """Copy bytes into a mapped buffer."""
        ctypes.memmove(self.address + offset, data, len(data))

    def read(self, size: int) -> bytes:
        """Return the first bytes of a mapped buffer."""
        return ctypes.string_at(self.address, size)

    def close(self) -> None:
        release(self.pointer)
        self.pointer = self.size = self.address = 0
