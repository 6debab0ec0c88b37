"""Describes the device of a DirectML session, as reported by the same DirectML.dll that the provider loaded.

Works on Windows and under Wine with ctypes alone. Runs inside the Windows Python: standard library only,
Python 3.8 and later.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import sys
from collections.abc import Iterator
from ctypes import POINTER, byref, c_int32, c_int64, c_size_t, c_uint32, c_void_p, c_wchar, c_wchar_p
from typing import Any

from .com import ComError, Guid, check, created, function, library, made_by, method, release

IDXGI_FACTORY1 = "770aae78-f26f-4dba-a829-253c83d1b387"
IDXGI_DEVICE = "54ec77fa-1377-44e6-8c32-88fd5f44c84c"
ID3D12_DEVICE = "189819f1-1db6-4b57-be54-1821339b85f7"
IDML_DEVICE = "6dbd6437-96fd-423f-a98c-ae5e7c2a573f"
FEATURE_LEVEL_11_0 = 0xB000
# where onnxruntime's Python binding keeps the queue and the half-recorded work that all sessions of a device
# share (dml_execution_context_guid in onnxruntime's dml_provider_factory_creator.h)
EXECUTION_CONTEXT = "e270a9ef-41ab-430f-b6d4-af501eb67eb7"
TENSOR_DATA_TYPES = {
    "float32": 1, "float16": 2, "uint32": 3, "uint16": 4, "uint8": 5, "int32": 6, "int16": 7, "int8": 8,
    "float64": 9, "uint64": 10, "int64": 11, "uint4": 12, "int4": 13,
}  # fmt: skip
LOST = (0x887A0005, 0x887A0006, 0x887A0007, 0x887A0020)
"""DXGI_ERROR_DEVICE_REMOVED, DEVICE_HUNG, DEVICE_RESET and DRIVER_INTERNAL_ERROR."""
FEATURE_LEVELS = [
    *(0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x4000, 0x4100),
    *(0x5000, 0x5100, 0x5200, 0x6000, 0x6100, 0x6200, 0x6300, 0x6400),
]
VENDORS = {
    0x1002: "AMD",
    0x10DE: "NVIDIA",
    0x8086: "Intel",
    0x1414: "Microsoft",
    0x5143: "Qualcomm",
    0x10005: "Mesa",
}


class AdapterDescription(ctypes.Structure):
    """DXGI_ADAPTER_DESC1."""

    _fields_ = [
        ("description", c_wchar * 128),
        *((name, c_uint32) for name in ("vendor", "device", "subsystem", "revision")),
        *((name, c_size_t) for name in ("dedicated_video", "dedicated_system", "shared_system")),
        ("luid_low", c_uint32),
        ("luid_high", c_int32),
        ("flags", c_uint32),
    ]


class FixedFileInfo(ctypes.Structure):
    """The first fields of VS_FIXEDFILEINFO."""

    _fields_ = [("signature", c_uint32), ("structure", c_uint32), ("high", c_uint32), ("low", c_uint32)]


class LevelQuery(ctypes.Structure):
    """DML_FEATURE_QUERY_FEATURE_LEVELS."""

    _fields_ = [("count", c_uint32), ("levels", c_void_p)]


def describe_device(device_id: int = 0, path: str | None = None) -> dict[str, Any]:
    """Return the facts about DXGI adapter `device_id` and DirectML (the DLL at `path`, otherwise the loaded
    one), ready for JSON.

    Keys: directml (version), directml_path, directml_sha256, adapter, vendor, luid, driver (None where it
    cannot be told), software, max_feature_level such as `6_4`, device_dtypes. Raises OSError where there is
    no such adapter or no DirectML.dll.
    """
    path = path or directml_path()
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    facts: dict[str, Any] = {"directml": file_version(path), "directml_path": path, "directml_sha256": digest}
    with adapter_of(device_id) as adapter:
        facts.update(_describe_adapter(adapter))
        facts.update(_describe_directml(path, adapter))
    return facts


@contextlib.contextmanager
def adapter_of(device_id: int) -> Iterator[int]:
    """Yield a DXGI adapter by its number; raises ComError where there is none."""
    factory = adapter = 0
    try:
        factory = created("dxgi", "CreateDXGIFactory1", (c_void_p,), byref(Guid(IDXGI_FACTORY1)))
        adapter = made_by(factory, 12, "IDXGIFactory1::EnumAdapters1", (c_uint32,), device_id)
        yield adapter
    finally:
        release(adapter, factory)


def d3d12_device(adapter: int | None) -> int:
    """Return an ID3D12Device on an adapter, None for the default one; raises ComError."""
    types, interface = (c_void_p, c_uint32, c_void_p), byref(Guid(ID3D12_DEVICE))
    return created("d3d12", "D3D12CreateDevice", types, adapter, FEATURE_LEVEL_11_0, interface)


def forget_execution_context(device_id: int = 0) -> bool:
    """Let the next session on an adapter start with a queue and command list of its own; say whether the
    device is lost for this process.

    onnxruntime's Python binding shares one execution context between all sessions of a device. A session that
    fails leaves the work that it had recorded in there, and frees the memory that this work uses: the next
    session would run it, and crash or compute with foreign values.
    """
    device = 0
    try:
        with adapter_of(device_id) as adapter:
            device = d3d12_device(adapter)
        if (
            method(device, 37)() < 0
        ):  # GetDeviceRemovedReason: a process has one device an adapter, and gets a removed one again
            return True
        check(
            method(device, 4, c_void_p, c_uint32, c_void_p)(byref(Guid(EXECUTION_CONTEXT)), 0, None),
            "ID3D12Object::SetPrivateData",
        )
        return False
    except ComError as error:
        if error.hresult in LOST:
            return True
        raise
    finally:
        release(device)


def directml_path() -> str:
    """Return the full path of the DirectML.dll in this process, or of the one that onnxruntime brings and
    would load."""
    handle = function(library("kernel32"), "GetModuleHandleW", c_void_p, c_wchar_p)("DirectML.dll")
    if handle:
        buffer = ctypes.create_unicode_buffer(32768)
        function(library("kernel32"), "GetModuleFileNameW", c_uint32, c_void_p, c_wchar_p, c_uint32)(
            handle, buffer, len(buffer)
        )
        return buffer.value
    package = getattr(sys.modules.get("onnxruntime"), "__file__", None)
    beside = os.path.join(os.path.dirname(package), "capi", "DirectML.dll") if package else ""
    if not os.path.isfile(beside):
        raise OSError("no DirectML.dll: import onnxruntime first, from a package with DirectML")
    return beside


def file_version(path: str) -> str | None:
    """Return the version resource of a file, such as `1.15.4`, or None where it has none."""
    dll = library("version")
    size = function(dll, "GetFileVersionInfoSizeW", c_uint32, c_wchar_p, c_void_p)(path, None)
    block = ctypes.create_string_buffer(size or 1)
    get = function(dll, "GetFileVersionInfoW", c_int32, c_wchar_p, c_uint32, c_uint32, c_void_p)
    value, length = c_void_p(), c_uint32()
    find = function(dll, "VerQueryValueW", c_int32, c_void_p, c_wchar_p, c_void_p, c_void_p)
    if not size or not get(path, 0, size, block) or not find(block, "\\", byref(value), byref(length)):
        return None
    info = ctypes.cast(value, POINTER(FixedFileInfo))[0]
    return version_text(info.high, info.low)


def version_text(high: int, low: int) -> str:
    """Return a version of four 16-bit parts as text, without a last part of 0."""
    parts = [high >> 16, high & 0xFFFF, low >> 16, low & 0xFFFF]
    return ".".join(map(str, parts if parts[3] else parts[:3]))


def level_text(value: int) -> str:
    """Return a DML_FEATURE_LEVEL value as text: 0x5200 is `5_2`."""
    return f"{value >> 12}_{value >> 8 & 15}"


def vendor_text(vendor: int) -> str:
    """Return a vendor's name with its number, or the number alone."""
    return f"{VENDORS[vendor]} ({vendor:#06x})" if vendor in VENDORS else f"{vendor:#06x}"


def _describe_adapter(adapter: int) -> dict[str, Any]:
    facts = AdapterDescription()
    check(method(adapter, 10, c_void_p)(byref(facts)), "IDXGIAdapter1::GetDesc1")
    driver = c_int64()
    known = (
        method(adapter, 9, c_void_p, c_void_p)(byref(Guid(IDXGI_DEVICE)), byref(driver)) >= 0 and driver.value
    )
    return {
        "adapter": facts.description,
        "vendor": vendor_text(facts.vendor),
        "luid": f"{facts.luid_high & 0xFFFFFFFF:08x}:{facts.luid_low:08x}",
        "driver": ".".join(str(driver.value >> shift & 0xFFFF) for shift in (48, 32, 16, 0))
        if known
        else None,
        "software": bool(facts.flags & 2) or "llvmpipe" in facts.description,
    }


def _describe_directml(path: str, adapter: int) -> dict[str, Any]:
    device = directml = 0
    try:
        device = d3d12_device(adapter)
        types = (c_void_p, c_uint32, c_void_p)
        directml = created(path, "DMLCreateDevice", types, device, 0, byref(Guid(IDML_DEVICE)))
        dtypes = [name for name, value in TENSOR_DATA_TYPES.items() if _supports(directml, value)]
        return {"max_feature_level": level_text(_maximum_level(directml)), "device_dtypes": dtypes}
    finally:
        release(directml, device)


def _feature(directml: int, feature: int, query: Any, answer: Any) -> None:
    """IDMLDevice::CheckFeatureSupport."""
    ask = method(directml, 7, c_uint32, c_uint32, c_void_p, c_uint32, c_void_p)
    check(
        ask(feature, ctypes.sizeof(query), byref(query), ctypes.sizeof(answer), byref(answer)),
        "IDMLDevice::CheckFeatureSupport",
    )


def _supports(directml: int, dtype: int) -> bool:
    """Ask feature 0; a DLL that does not know the type answers with an error."""
    answer = c_uint32()
    try:
        _feature(directml, 0, c_uint32(dtype), answer)
    except ComError:
        return False
    return bool(answer.value)


def _maximum_level(directml: int) -> int:
    """Ask feature 1 with all levels, because it answers only with one that it was asked about."""
    levels = (c_uint32 * len(FEATURE_LEVELS))(*FEATURE_LEVELS)
    answer = c_uint32()
    _feature(directml, 1, LevelQuery(len(levels), ctypes.addressof(levels)), answer)
    return answer.value
