"""The debug layer of Direct3D 12: enabled before a device is created, and its messages read back after a
failure."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int32, c_size_t, c_uint64, c_void_p

from ..com import Guid, check, created, method, query, release

DEBUG = "344488b7-6846-474b-b989-f027448245e0"
INFO_QUEUE = "0742a90b-c387-483f-b946-30a7e4e61458"
_SHOWN = 8
"""How many messages an error shows, the first ones."""


class Message(ctypes.Structure):
    """D3D12_MESSAGE."""

    _fields_ = [
        ("category", c_int32),
        ("severity", c_int32),
        ("id", c_int32),
        ("text", c_char_p),
        ("length", c_size_t),
    ]


def enable_debug_layer() -> None:
    """Switch the debug layer on for devices that are made from now on; raises ComError where this machine has
    none."""
    layer = created("d3d12", "D3D12GetDebugInterface", (c_void_p,), byref(Guid(DEBUG)))
    method(layer, 3, restype=None)()
    release(layer)


class InfoQueue:
    """What the debug layer has to say of a device; DirectML's layer writes to the same queue."""

    def __init__(self, device: int) -> None:
        """Take the queue of a device; raises ComError for one that was made without the debug layer."""
        self.pointer = query(device, INFO_QUEUE)
        self._clear = method(self.pointer, 4, restype=None)
        self._get = method(self.pointer, 5, c_uint64, c_void_p, c_void_p)
        self._count = method(self.pointer, 8, restype=c_uint64)

    def take(self) -> str:
        """Return the stored messages in one line, and clear them; empty where there are none."""
        count = self._count()
        texts = [self._text(number) for number in range(min(count, _SHOWN))]
        if count > _SHOWN:
            texts.append(f"{count - _SHOWN} more")
        self._clear()
        return " | ".join(texts)

    def _text(self, number: int) -> str:
        length = c_size_t()
        check(self._get(number, None, byref(length)), "ID3D12InfoQueue::GetMessage")
        block = ctypes.create_string_buffer(max(length.value, ctypes.sizeof(Message)))
        check(self._get(number, block, byref(length)), "ID3D12InfoQueue::GetMessage")
        return (Message.from_buffer(block).text or b"").decode("utf-8", "replace").strip()
