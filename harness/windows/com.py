"""COM and DLL calls with ctypes alone. Runs inside the Windows Python: standard library only, Python 3.8 and later."""

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


class ComError(OSError):
    """A call failed; `hresult` is its unsigned code."""

    def __init__(self, what: str, code: int) -> None:
        self.hresult = code & 0xFFFFFFFF
        super().__init__(f"{what} failed: 0x{self.hresult:08x}")


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
    return int(function(library("kernel32"), "GetProcAddress", c_void_p, c_void_p, c_char_p)(dll._handle, name.encode()) or 0)


def method(pointer: int, slot: int, *argtypes: Any, restype: Any = c_int32) -> Callable[..., Any]:
    """Return the method in a slot of a COM object's table, bound to the object; the default result is an HRESULT."""
    if sys.platform == "win32":
        table = ctypes.cast(pointer, POINTER(POINTER(c_void_p)))[0]
        call = ctypes.WINFUNCTYPE(restype, c_void_p, *argtypes)(table[slot])
        return lambda *arguments: call(pointer, *arguments)
    raise OSError("COM needs Windows")


def check(code: int, what: str) -> None:
    """Raise ComError for a failing HRESULT."""
    if code < 0:
        raise ComError(what, code)


def query(pointer: int, interface: str) -> int:
    """Return another interface of an object; the caller releases it."""
    found = c_void_p()
    check(method(pointer, 0, c_void_p, c_void_p)(byref(Guid(interface)), byref(found)), f"QueryInterface {interface}")
    return int(found.value or 0)


def release(*pointers: int | None) -> None:
    """Release objects; None and 0 are passed over."""
    for pointer in pointers:
        if pointer:
            method(pointer, 2, restype=c_uint32)()
