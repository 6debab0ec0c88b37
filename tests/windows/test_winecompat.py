"""The compatibility layer: what it refuses, the code it writes, and that it needs nothing but the standard
library of Python 3.8."""

from __future__ import annotations

import ast
import platform
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from harness.worker.windows import boot, com, device, winecompat
from harness.worker.windows.winecompat import Incompatible, matches, require_bytes, require_known_build

INSIDE = [Path(module.__file__) for module in (boot, com, device, winecompat)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "pattern", "expected"),
    [
        ("4883ec28488d0d55d80800488d15afe40800e819d50100", winecompat.STUB, True),
        ("f20f1001c3909090909090909090909090", winecompat.STUB, False),
        ("4883ec28488d0d55d80800488d15afe40800", winecompat.STUB, False),  # too short to tell
        ("4157415641554154555756534881ec780800000f11b424600800004989cc", winecompat.CREATE_DEVICE, True),
        ("48b8000000000000000000ffe0", winecompat.CREATE_DEVICE, False),  # already patched
        ("56534883ec684889cb4889d6f6054d47010008751b", winecompat.CREATE_FACTORY["CreateDXGIFactory1"], True),
        (
            "5756534883ec6089cf4889d34c89c6f6056a46010008",
            winecompat.CREATE_FACTORY["CreateDXGIFactory2"],
            True,
        ),
        (
            "4883ec384c894424284989c94c8d05c5731f00b9030000004889542420488d153ce91f00e8d7dd0e00b8014000804883c438c3",
            winecompat.ENUMERATE_META_COMMANDS,
            True,
        ),
        ("00ff", "??ff", True),
        ("00fe", "?? ff", False),
    ],
)
def test_patterns_tell_what_may_be_replaced(code: str, pattern: str, expected: bool) -> None:
    assert matches(bytes.fromhex(code), pattern) is expected


def test_other_bytes_are_refused_with_both_in_the_message() -> None:
    with pytest.raises(Incompatible, match="D3D12CreateDevice starts with 9090, not with 4157"):
        require_bytes("D3D12CreateDevice", b"\x90\x90", winecompat.CREATE_DEVICE)


@pytest.mark.parametrize("build", ["wine-9.0", "unknown", "wine-10.0", "wine-10.0 (Debian 10.0~repack-7)"])
def test_another_wine_is_refused(build: str) -> None:
    with pytest.raises(Incompatible, match=r"knows wine-10\.0"):
        require_known_build(build)


def test_the_wine_of_the_lock_is_known() -> None:
    from harness.targets.windows.lock import load

    require_known_build(f"wine-10.0 (Debian {load().debian.wine})")


@pytest.mark.skipif(sys.platform == "win32", reason="says what happens elsewhere")
def test_nothing_happens_without_wine() -> None:
    before = getattr(platform, "_wmi_query", None)
    assert winecompat.wine_build() is None
    winecompat.before_imports()
    winecompat.before_sessions()
    assert getattr(platform, "_wmi_query", None) is before


def test_a_jump_goes_to_its_address() -> None:
    assert winecompat.jump_to(0x1122334455667788).hex() == "48b88877665544332211ffe0"


def test_device_code_jumps_over_exactly_what_hands_out_the_device() -> None:
    code = winecompat.device_code(0x6FFFFC2413A0)
    assert code[:4].hex() == "4d85c974"
    assert code[5 + code[4] :].hex() == "b801000000c3"
    assert code[7:15] == struct.pack("<Q", 0x6FFFFC2413A0)


def test_factory_code_without_flags_moves_its_arguments_first() -> None:
    with_flags, without = winecompat.factory_code(1, True), winecompat.factory_code(1, False)
    assert without == bytes.fromhex("4989d04889ca") + with_flags
    assert with_flags.hex() == "48b90100000000000000488b01ff20"


def test_read_only_sections_are_found_in_an_image() -> None:
    image = bytearray(1024)
    struct.pack_into("<I", image, 60, 0x80)
    struct.pack_into("<HH", image, 0x80 + 4, 0x8664, 2)
    struct.pack_into("<H", image, 0x80 + 20, 240)
    for index, (name, size, place) in enumerate([(b".text", 16, 0x1000), (b".rdata", 32, 0x2000)]):
        struct.pack_into("<8sII", image, 0x80 + 24 + 240 + 40 * index, name, size, place)
    assert list(winecompat.read_only_sections(bytes(image))) == [(0x2000, 32)]


def test_occurrences_are_all_found() -> None:
    assert winecompat.occurrences(b"ab\0ab\0abc", b"ab\0") == [0, 3]


@pytest.mark.parametrize("old", winecompat.SURFACE_NAMES)
def test_a_replaced_name_fits_into_its_place(old: bytes) -> None:
    assert len(winecompat.SURFACE_NAMES[old]) <= len(old)


@pytest.mark.parametrize("path", INSIDE, ids=lambda path: path.name)
def test_inside_modules_are_python_3_8_and_import_only_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    names = {
        alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    names |= {
        (node.module or "").split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and not node.level
    }
    assert names <= set(sys.stdlib_module_names)


@pytest.mark.skipif(sys.platform == "win32", reason="says what happens elsewhere")
def test_boot_runs_the_worker_as_main_and_leaves_no_module_path(tmp_path: Path) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import os, sys\n"
        "boot = sys.modules['harness_boot']\n"
        "boot.before_sessions(); boot.after_failure()\n"
        "paths = [entry for entry in sys.path if os.path.isfile(os.path.join(entry, 'winecompat.py'))]\n"
        "print(__name__, sys.argv[1:], boot.wine_build(), callable(boot.describe_device), paths)\n"
    )
    done = subprocess.run(
        [sys.executable, boot.__file__, str(worker), "a b"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "__main__ ['a b'] None True []\n"


@pytest.mark.parametrize(("value", "text"), [(0x1000, "1_0"), (0x5200, "5_2"), (0x6400, "6_4")])
def test_levels_have_names(value: int, text: str) -> None:
    assert device.level_text(value) == text


@pytest.mark.parametrize(
    ("high", "low", "text"), [(0x1000F, 0x40000, "1.15.4"), (0x10008, 0x30007, "1.8.3.7")]
)
def test_versions_have_three_or_four_parts(high: int, low: int, text: str) -> None:
    assert device.version_text(high, low) == text


def test_vendors_keep_their_number() -> None:
    assert [device.vendor_text(vendor) for vendor in (0x10DE, 0x10005, 0x1234)] == [
        "NVIDIA (0x10de)",
        "Mesa (0x10005)",
        "0x1234",
    ]


def test_a_guid_is_laid_out_as_windows_wants_it() -> None:
    assert bytes(com.Guid("6dbd6437-96fd-423f-a98c-ae5e7c2a573f")).hex() == "3764bd6dfd963f42a98cae5e7c2a573f"


@pytest.mark.skipif(sys.platform == "win32", reason="says what happens elsewhere")
def test_calls_elsewhere_are_errors_not_crashes() -> None:
    with pytest.raises(OSError, match="needs Windows"):
        com.library("ntdll")
    with pytest.raises(OSError, match="needs Windows"):
        com.method(0, 0)
