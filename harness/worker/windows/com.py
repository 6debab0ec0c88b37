"""COM and DLL calls with ctypes alone. Runs inside the Windows Python: standard library only, Python 3.8 and
later."""

from __future__ import annotations

import ctypes
import sys
import uuid
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_int32, c_uint8, c_uint16, c_uint32, c_void_p
from typing import Any


class Guid(ctypes.Structure):
    """A GUID in memory order, made from its usual text."""

    _fields_ = [("a", c_uint32), ("b", c_uint16), ("c", c_uint16), ("d", c_uint8 * 8)]

    def __init__(self, text: str) -> None:
        super().__init__()
        ctypes.memmove(byref(self), uuid.UUID(text).bytes_le, 16)


HRESULTS = {
    0x80004001: "E_NOTIMPL",
    0x80004002: "E_NOINTERFACE",
    0x80004003: "E_POINTER",
    0x80004004: "E_ABORT",
    0x80004005: "E_FAIL",
    0x8000FFFF: "E_UNEXPECTED",
    0x80070005: "E_ACCESSDENIED",
    0x8007000E: "E_OUTOFMEMORY",
    0x8007001F: "ERROR_GEN_FAILURE",
    0x80070032: "ERROR_NOT_SUPPORTED",
    0x80070057: "E_INVALIDARG",
    0x8007007E: "ERROR_MOD_NOT_FOUND",
    0x8007007F: "ERROR_PROC_NOT_FOUND",
    0x80070216: "ERROR_ARITHMETIC_OVERFLOW",
    0x887A0001: "DXGI_ERROR_INVALID_CALL",
    0x887A0002: "DXGI_ERROR_NOT_FOUND",
    0x887A0003: "DXGI_ERROR_MORE_DATA",
    0x887A0004: "DXGI_ERROR_UNSUPPORTED",
    0x887A0005: "DXGI_ERROR_DEVICE_REMOVED",
    0x887A0006: "DXGI_ERROR_DEVICE_HUNG",
    0x887A0007: "DXGI_ERROR_DEVICE_RESET",
    0x887A0020: "DXGI_ERROR_DRIVER_INTERNAL_ERROR",
    0x887A002D: "DXGI_ERROR_SDK_COMPONENT_MISSING",
    0x887E0001: "D3D12_ERROR_ADAPTER_NOT_FOUND",
    0x887E0002: "D3D12_ERROR_DRIVER_VERSION_MISMATCH",
    0x887E0003: "D3D12_ERROR_INVALID_REDIST",
}
"""The results that Direct3D 12, DXGI and DirectML document, by their names in winerror.h and d3d12.h."""


def hresult_text(code: int) -> str:
    """Return the name of an HRESULT, or its eight hexadecimal digits where it has none here."""
    return HRESULTS.get(code & 0xFFFFFFFF, f"{code & 0xFFFFFFFF:#010x}")


class ComError(OSError):
    """A call failed; `hresult` is its unsigned code, `label` the call and the code's name."""

    def __init__(self, what: str, code: int) -> None:
        self.hresult = code & 0xFFFFFFFF
        self.label = f"{what} {hresult_text(code)}"
        super().__init__(f"{what} failed: {hresult_text(code)} (0x{self.hresult:08x})")


def library(name: str) -> Any:
    """Load a DLL by name or full path."""
    if sys.platform == "win32":
        return ctypes.WinDLL(name)
    raise OSError(f"{name} needs Windows")


def function(dll: Any, name: str, restype: Any, *argtypes: Any) -> Any:
    """Return a function of a DLL with its types; raises AttributeError where the DLL lacks it."""
    found = getattr(dll, name)
    found.restype, found.argtypes = restype, argtypes
    return found


def address_of(dll: Any, name: str) -> int:
    """Return the address of an exported function, 0 where the DLL lacks it."""
    return int(
        function(library("kernel32"), "GetProcAddress", c_void_p, c_void_p, c_char_p)(
            dll._handle, name.encode()
        )
        or 0
    )


def method(pointer: int, slot: int, *argtypes: Any, restype: Any = c_int32) -> Callable[..., Any]:
    """Return the method in a slot of a COM object's table, bound to the object; the default result is an
    HRESULT."""
    if sys.platform == "win32":
        table = ctypes.cast(pointer, POINTER(POINTER(c_void_p)))[0]
        call = ctypes.WINFUNCTYPE(restype, c_void_p, *argtypes)(table[slot])
        return lambda *arguments: call(pointer, *arguments)
    raise OSError("COM needs Windows")


def check(code: int, what: str) -> None:
    """Raise ComError for a failing HRESULT."""
    if code < 0:
        raise ComError(what, code)


def created(dll: str, name: str, types: tuple[Any, ...], *arguments: Any) -> int:
    """Return the object that a function of a DLL makes and its last argument receives; raises ComError."""
    made = c_void_p()
    check(function(library(dll), name, c_int32, *types, c_void_p)(*arguments, byref(made)), name)
    return int(made.value or 0)


def made_by(pointer: int, slot: int, what: str, types: tuple[Any, ...], *arguments: Any) -> int:
    """Return the object that a method makes and its last argument receives; raises ComError."""
    made = c_void_p()
    check(method(pointer, slot, *types, c_void_p)(*arguments, byref(made)), what)
    return int(made.value or 0)


def query(pointer: int, interface: str) -> int:
    """Return another interface of an object; the caller releases it."""
    return made_by(pointer, 0, f"QueryInterface {interface}", (c_void_p,), byref(Guid(interface)))


def release(*pointers: int | None) -> None:
    """Release objects; None and 0 are passed over."""
    for pointer in pointers:
        if pointer:
            method(pointer, 2, restype=c_uint32)()


class DeviceRemoved(ComError):
    """The device works no longer."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(what, code)
        self.label = f"DeviceRemoved {self.label}"


class Device:
    """A COM device that releases the objects that it makes; `removed_slot` is that of its GetDeviceRemovedReason."""

    def __init__(self, device: int, removed_slot: int) -> None:
        self.device = device
        self._owned: list[int] = []
        self._removed = method(device, removed_slot)

    def check(self, code: int, what: str) -> None:
        """Raise for a failing HRESULT: DeviceRemoved where the device is gone, else ComError."""
        if code < 0:
            self._require_device(what)
            raise ComError(what, code)

    def removed(self) -> bool:
        """Say whether the device works no longer; a process cannot have another one of Direct3D."""
        return bool(self._removed() < 0)

    def _require_device(self, what: str) -> None:
        reason = self._removed()
        if reason < 0:
            raise DeviceRemoved(what, reason)

    def _make(self, slot: int, interface: str, what: str, types: Any, *arguments: Any) -> int:
        made = made_by(self.device, slot, what, (*types, c_void_p), *arguments, byref(Guid(interface)))
        self._owned.append(made)
        return made
