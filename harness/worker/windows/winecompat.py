"""Patches what Wine lacks for DirectML into the memory of this process; does nothing on Windows.

| Patch | Replaces | Because |
|---|---|---|
| `fill_complex_functions` | ucrtbase `crealf`, `cimagf`, `creal`, `cimag`: stubs that raise | NumPy 2.1 and later calls them |
| `stub_wmi` | `platform._wmi_query` of Python 3.12 and later | WMI would load wined3d before it is prepared |
| `ask_parent_simply` | `os.getppid` | from 3.12 it calls `PssCaptureSnapshot`, which Wine has not |
| `choose_vulkan` | registry value `HKCU\\Software\\Wine\\Direct3D renderer` | otherwise DXGI draws with OpenGL on the CPU |
| `drop_window_surface` | the Vulkan extension names in wined3d and d3d12 | without them no X server is needed |
| `answer_meta_commands` | `ID3D12Device5::EnumerateMetaCommands`, a stub that fails | DirectML refuses such a device |
| `keep_one_device` | `D3D12CreateDevice` | on Windows an adapter has one; Wine leaks one a session |
| `keep_one_factory` | `CreateDXGIFactory`, `…1`, `…2` | each new factory of Wine starts a Vulkan instance |

Every patch of code first compares the bytes that it replaces with those of the Wine builds in `WINE_BUILDS`.
Another build, or other bytes, raise Incompatible before anything is changed: a refusal with a reason, never a
crash. Runs inside the Windows Python: standard library only, Python 3.8 and later.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char_p, c_int32, c_size_t, c_uint32, c_void_p
from typing import Any

from .com import Guid, address_of, check, created, function, library, query
from .device import d3d12_device

WINE_BUILDS = ("wine-10.0 (Debian 10.0~repack-6)",)

# entry bytes of what is replaced; ?? is any byte (addresses differ with the place a DLL is loaded at)
STUB = "4883ec28 488d0d???????? 488d15???????? e8"
COMPLEX_FUNCTIONS = {
    "crealf": "660f6ec1c3",  # movd xmm0,ecx; ret               (a float pair by value in rcx)
    "cimagf": "48c1e920660f6ec1c3",  # shr rcx,32; movd xmm0,ecx; ret
    "creal": "f20f1001c3",  # movsd xmm0,[rcx]; ret            (a double pair by reference)
    "cimag": "f20f104108c3",  # movsd xmm0,[rcx+8]; ret
}
CREATE_DEVICE = "4157 4156 4155 4154 5557 5653 4881ec78080000"
CREATE_FACTORY = {
    "CreateDXGIFactory": "5653 4883ec68 4889cb 4889d6 f605",
    "CreateDXGIFactory1": "5653 4883ec68 4889cb 4889d6 f605",
    "CreateDXGIFactory2": "575653 4883ec60 89cf 4889d3 4c89c6 f605",
}
# logs "stub!" and returns E_NOTIMPL
ENUMERATE_META_COMMANDS = "4883ec38 4c89442428 4989c9 4c8d05???????? b903000000 4889542420 488d15???????? e8???????? b801400080 4883c438 c3"
META_COMMANDS_SLOT = 59
# test rdx,rdx; jz +6; mov dword [rdx],0; xor eax,eax; ret     (this rcx, UINT *count rdx, descriptions r8): none, S_OK
NO_META_COMMANDS = "4885d27406c7020000000031c0c3"
SURFACE_NAMES = {
    b"VK_KHR_win32_surface\0": b"VK_KHR_surface\0",
    b"vkCreateWin32SurfaceKHR\0": b"vkDestroySurfaceKHR\0",
}
SURFACE_USERS = {"wined3d.dll": 2, "d3d12core.dll": 0, "d3d12.dll": 1}

ID3D12_DEVICE5 = "8b4f173b-2fea-4b80-8f58-4307191ab95d"
IDXGI_FACTORY4 = "1bc6ea02-ef36-464f-bf0c-21ca39e5168a"

_EXECUTE_READ_WRITE, _READ_WRITE, _COMMIT_RESERVE = 0x40, 0x04, 0x3000
_kept: list[int] = []
_prepared: list[bool] = []


class Incompatible(RuntimeError):
    """This Wine is not one that the patches were made for."""


def wine_build() -> str | None:
    """Return the build of Wine, such as `wine-10.0 (Debian 10.0~repack-6)`, or None on Windows."""
    try:
        ntdll = library("ntdll")
    except OSError:
        return None
    if not hasattr(ntdll, "wine_get_version"):
        return None
    if not hasattr(ntdll, "wine_get_build_id"):
        return "unknown"
    return str(function(ntdll, "wine_get_build_id", c_char_p)().decode("ascii", "replace"))


def require_known_build(build: str) -> None:
    """Raise Incompatible for a build that the patches were not made for."""
    if build not in WINE_BUILDS:
        raise Incompatible(
            f"the compatibility layer knows {', '.join(WINE_BUILDS)}, not {build}: run `harness windows install`"
        )


def matches(code: bytes, pattern: str) -> bool:
    """Say whether code starts with a pattern of hexadecimal digits, in which ?? is any byte and blanks do not
    count."""
    pattern = pattern.replace(" ", "")
    pairs = [pattern[i : i + 2] for i in range(0, len(pattern), 2)]
    return len(code) >= len(pairs) and all(
        pair == "??" or int(pair, 16) == code[at] for at, pair in enumerate(pairs)
    )


def require_bytes(what: str, code: bytes, pattern: str) -> None:
    """Raise Incompatible when code is not what a patch expects to replace."""
    if not matches(code, pattern):
        raise Incompatible(
            f"{what} starts with {code[:20].hex()}, not with {pattern}; no patch is made for this Wine"
        )


def jump_to(address: int) -> bytes:
    """Return code that jumps to an address: mov rax,address; jmp rax."""
    return b"\x48\xb8" + address.to_bytes(8, "little") + b"\xff\xe0"


def device_code(device: int) -> bytes:
    """Return a D3D12CreateDevice(adapter rcx, level edx, riid r8, out r9) that hands out one device.

    test r9,r9; jz L; mov rcx,device; mov rdx,r8; mov r8,r9; mov rax,[rcx]; jmp [rax] (QueryInterface); L: mov
    eax,1 (S_FALSE); ret
    """
    hand_out = b"\x48\xb9" + device.to_bytes(8, "little") + bytes.fromhex("4c89c2 4d89c8 488b01 ff20")
    return bytes.fromhex("4d85c9 74") + bytes([len(hand_out)]) + hand_out + bytes.fromhex("b801000000 c3")


def factory_code(factory: int, with_flags: bool) -> bytes:
    """Return a CreateDXGIFactory2(flags ecx, riid rdx, out r8), or without flags (riid rcx, out rdx), that
    hands out one factory.

    [mov r8,rdx; mov rdx,rcx;] mov rcx,factory; mov rax,[rcx]; jmp [rax] (QueryInterface)
    """
    shift = b"" if with_flags else bytes.fromhex("4989d0 4889ca")
    return shift + b"\x48\xb9" + factory.to_bytes(8, "little") + bytes.fromhex("488b01 ff20")


def read_only_sections(image_header: bytes) -> Iterator[tuple[int, int]]:
    """Yield (offset, size) of the .rdata sections of a loaded PE image from its first page."""
    header = int.from_bytes(image_header[60:64], "little")
    count = int.from_bytes(image_header[header + 6 : header + 8], "little")
    table = header + 24 + int.from_bytes(image_header[header + 20 : header + 22], "little")
    for start in range(table, table + 40 * count, 40):
        entry = image_header[start : start + 40]
        if entry[:8].rstrip(b"\0") == b".rdata":
            yield int.from_bytes(entry[12:16], "little"), int.from_bytes(entry[8:12], "little")


def occurrences(data: bytes, wanted: bytes) -> list[int]:
    """Return every offset at which a byte string occurs."""
    found, at = [], data.find(wanted)
    while at >= 0:
        found.append(at)
        at = data.find(wanted, at + 1)
    return found


def _write(address: int, data: bytes, protection: int = _EXECUTE_READ_WRITE) -> None:
    """Write over protected memory."""
    protect = function(
        library("kernel32"), "VirtualProtect", c_int32, c_void_p, c_size_t, c_uint32, POINTER(c_uint32)
    )
    before = c_uint32()
    if not protect(address, len(data), protection, byref(before)):
        raise Incompatible(f"memory at {address:#x} cannot be written")
    ctypes.memmove(address, data, len(data))
    protect(address, len(data), before.value, byref(before))


def _new_code(code: bytes) -> int:
    """Place code in memory of its own and return its address."""
    allocate = function(library("kernel32"), "VirtualAlloc", c_void_p, c_void_p, c_size_t, c_uint32, c_uint32)
    address = allocate(None, 4096, _COMMIT_RESERVE, _EXECUTE_READ_WRITE)
    if not address:
        raise Incompatible("no memory for a patch")
    ctypes.memmove(address, code, len(code))
    return int(address)


def _checked_entry(dll: Any, name: str, pattern: str) -> int:
    """Return the address of an exported function that starts as expected."""
    address = address_of(dll, name)
    if not address:
        raise Incompatible(f"{name} is not exported")
    require_bytes(name, ctypes.string_at(address, 64), pattern)
    return address


def fill_complex_functions() -> None:
    """Fill in the complex functions that this ucrtbase has only as stubs; before `import numpy`."""
    ucrt = library("ucrtbase")
    for name, code in COMPLEX_FUNCTIONS.items():
        address = address_of(ucrt, name)
        if not address:
            raise Incompatible(f"ucrtbase exports no {name}")
        entry = ctypes.string_at(address, 32)
        if not matches(entry, code):  # implemented: nothing to do
            require_bytes(name, entry, STUB)
            _write(address, bytes.fromhex(code))


def stub_wmi() -> None:
    """Let `platform` do without WMI; it then asks the version functions."""
    if hasattr(platform, "_wmi_query"):

        def no_wmi(*_: object) -> None:
            raise OSError("no WMI under Wine")

        vars(platform)["_wmi_query"] = no_wmi


def ask_parent_simply() -> None:
    """Let `os.getppid` ask NtQueryInformationProcess; the sixth field of PROCESS_BASIC_INFORMATION is the
    parent."""

    def getppid() -> int:
        facts = (c_size_t * 6)()
        ask = function(
            library("ntdll"),
            "NtQueryInformationProcess",
            c_int32,
            c_void_p,
            c_uint32,
            c_void_p,
            c_uint32,
            c_void_p,
        )
        check(ask(c_void_p(-1), 0, byref(facts), ctypes.sizeof(facts), None), "NtQueryInformationProcess")
        return int(facts[5])

    os.getppid = getppid


def choose_vulkan() -> None:
    """Let wined3d, and with it DXGI, use Vulkan; read once, when it is loaded."""
    if sys.platform == "win32":
        import winreg

        with winreg.CreateKey(winreg.HKEY_CURRENT_USER, r"Software\Wine\Direct3D") as key:
            winreg.SetValueEx(key, "renderer", 0, winreg.REG_SZ, "vulkan")


def drop_window_surface() -> None:
    """Ask Vulkan for no window surface, so that it starts without a display; before anything uses D3D or
    DXGI."""
    for name, expected in SURFACE_USERS.items():
        base = library(name)._handle
        found = []
        for offset, size in read_only_sections(ctypes.string_at(base, 4096)):
            data = ctypes.string_at(base + offset, size)
            found += [
                (base + offset + at, new)
                for old, new in SURFACE_NAMES.items()
                for at in occurrences(data, old)
            ]
        if len(found) != expected:
            raise Incompatible(f"{name} names the window surface {len(found)} times, not {expected} times")
        for address, new in found:
            _write(address, new, _READ_WRITE)


def answer_meta_commands(device: int) -> None:
    """Let EnumerateMetaCommands of all devices answer that there are none."""
    device5 = query(device, ID3D12_DEVICE5)
    _kept.append(device5)
    table = ctypes.cast(device5, POINTER(c_void_p))[0] or 0
    entry = table + META_COMMANDS_SLOT * 8
    current = ctypes.cast(entry, POINTER(c_void_p))[0] or 0
    require_bytes("EnumerateMetaCommands", ctypes.string_at(current, 64), ENUMERATE_META_COMMANDS)
    _write(entry, _new_code(bytes.fromhex(NO_META_COMMANDS)).to_bytes(8, "little"), _READ_WRITE)


def keep_one_device(device: int) -> None:
    """Let D3D12CreateDevice return this device from now on."""
    entry = _checked_entry(library("d3d12"), "D3D12CreateDevice", CREATE_DEVICE)
    _write(entry, jump_to(_new_code(device_code(device))))
    _kept.append(device)


def keep_one_factory() -> None:
    """Let the three functions that create a DXGI factory return one."""
    dxgi = library("dxgi")
    entries = {name: _checked_entry(dxgi, name, pattern) for name, pattern in CREATE_FACTORY.items()}
    types = (c_uint32, c_void_p)
    factory = created("dxgi", "CreateDXGIFactory2", types, 0, byref(Guid(IDXGI_FACTORY4)))
    for name, entry in entries.items():
        _write(entry, jump_to(_new_code(factory_code(factory, with_flags=name.endswith("2")))))
    _kept.append(factory)


def before_imports() -> None:
    """Prepare Wine for `import numpy, onnxruntime`; raises Incompatible for an unknown Wine."""
    build = wine_build()
    if build is None:
        return
    require_known_build(build)
    stub_wmi()
    ask_parent_simply()
    fill_complex_functions()
    choose_vulkan()
    drop_window_surface()


def before_sessions() -> None:
    """Prepare D3D12 and DXGI for the first session, after `import onnxruntime`; a second call does
    nothing."""
    if _prepared or wine_build() is None:
        return
    device = d3d12_device(None)
    answer_meta_commands(device)
    keep_one_device(device)
    keep_one_factory()
    _prepared.append(True)
