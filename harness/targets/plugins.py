"""Targets whose execution provider is a plugin: `plugin=PATH`, and the packages that contain one
(`runtimes/projects.py`).

This module reports problems of a library before ONNX Runtime loads it; the worker reports later ones
(`plugin_worker.py`).
"""

from __future__ import annotations

import json
import os
import platform
import re
import struct
import sys
from pathlib import Path
from typing import NamedTuple

from harness.model.errors import TargetUnavailable
from harness.model.plain_file import PlainFile
from harness.targets.runtimes import environments
from harness.targets.runtimes.projects import PLUGINS, WITH_PLUGINS, Project

PREFIX = "plugin="
UNKNOWN = "plugin"
"""The provider of a library that has not been loaded: only its worker learns the name."""
OPTIONS = ("device", "provider")
OPTION = "option."
WORKER = Path(__file__).resolve().parent.parent / "worker" / "plugin_worker.py"
_HEAD = 4096
_ELF_MACHINES = {
    "x86_64": 0x3E,
    "amd64": 0x3E,
    "aarch64": 0xB7,
    "arm64": 0xB7,
    "i686": 3,
    "riscv64": 0xF3,
    "ppc64le": 0x15,
    "s390x": 0x16,
}
_COFF_MACHINES = {"amd64": 0x8664, "arm64": 0xAA64, "x86": 0x14C}
_MACH = frozenset({b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"})
_NAMES = {
    0x3E: "x86-64",
    0xB7: "ARM64",
    3: "x86",
    0xF3: "RISC-V",
    0x15: "PowerPC",
    0x16: "s390x",
    0x8664: "x86-64",
    0xAA64: "ARM64",
}
_REMEDY = "name the shared library of an execution provider, built for this machine: plugin=PATH"


class Plugin(NamedTuple):
    """A library, or the package and release that have one (None for the newest); `options` are the provider's
    own."""

    library: Path | None
    project: Project | None
    release: str | None
    provider: str | None
    device: str | None
    options: dict[str, str]


class Refusals:
    """The reasons why the workers of a plugin never greeted (`pool.Link`)."""

    def __init__(self, target: str) -> None:
        self._target = target

    def refusal(self, how: str, printed: str) -> str:
        """Say in one line why no worker greeted, and what to do."""
        said = _said(printed)
        if said is not None:
            return f"target {self._target!r}: {said}"
        last = f": {printed.splitlines()[-1].strip()}" if printed else ""
        return (
            f"target {self._target!r}: registering its library ended the worker ({how}){last}; "
            "take a library built for this release of onnxruntime"
        )

    def final(self, how: str, printed: str) -> bool:
        """Say whether the worker would end so again: it said why."""
        return _said(printed) is not None

    def broken(self, how: str, printed: str) -> bool:
        """Say that there is no connection to lose."""
        return False


def _said(printed: str) -> str | None:
    """Return what the worker itself said, among what libraries print."""
    own = [line.removeprefix("harness: ") for line in printed.splitlines() if line.startswith("harness: ")]
    return own[-1] if own else None


def prepared(plugin: Plugin, target: str) -> tuple[list[str], dict[str, str], str | None]:
    """Return the command before its arguments, variables, and where it runs (None for this interpreter); make
    the environment of a package.

    Errors: TargetUnavailable with the remedy, UsageError for a release that the package index does not have.
    """
    if plugin.project is None:
        assert plugin.library is not None
        check_library(plugin.library, target)
        return _command(sys.executable, plugin, plugin.library), {}, None
    interpreter, version = environments.prepare(plugin.release, project=plugin.project)
    library = environments.library(version, plugin.project)
    quiet = {name: os.environ.get(name, value) for name, value in plugin.project.quiet}
    return (
        _command(str(interpreter), plugin, library),
        quiet,
        f"environment with {plugin.project.name} {version}",
    )


def _command(interpreter: str, plugin: Plugin, library: Path) -> list[str]:
    asked = {
        "library": str(library.absolute()),
        "name": plugin.provider or re.sub(r"^lib|\..*$", "", library.name) or UNKNOWN,
        "provider": plugin.provider,
        "device": plugin.device,
        "options": plugin.options,
    }
    isolated = ["-I"] if plugin.project is not None else []
    return [interpreter, *isolated, str(WORKER), str(WORKER.with_name("worker.py")), json.dumps(asked)]


def check_library(path: Path, target: str) -> None:
    """Check that a file is a shared library for this machine before it is loaded. Errors: TargetUnavailable,
    which names the kind of file."""
    try:
        with PlainFile(path) as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise TargetUnavailable(f"target {target!r}: {path}: {error.strerror}; {_REMEDY}") from error
    wrong = _wrong(head)
    if wrong is not None:
        raise TargetUnavailable(f"target {target!r}: {path} {wrong}; {_REMEDY}")


def _wrong(head: bytes) -> str | None:
    """Say from the first bytes of a file why it is no shared library for this machine.

    The formats: ELF (https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html), PE/COFF and Mach-O.
    """
    here = platform.machine().lower()
    kinds = {
        "an ELF file": head[:4] == b"\x7fELF",
        "a Windows DLL": head[:2] == b"MZ",
        "a Mach-O library": head[:4] in _MACH,
    }
    own = {"win32": "a Windows DLL", "darwin": "a Mach-O library"}.get(sys.platform, "an ELF file")
    found = next((kind for kind, is_so in kinds.items() if is_so), None)
    if found is None:
        return "is no shared library" if head else "is empty"
    if found != own:
        return f"is {found}, which this system does not load"
    if found == "an ELF file":
        if len(head) < 20:
            return "is a cut off ELF file"
        kind, machine = struct.unpack_from("<HH" if head[5] == 1 else ">HH", head, 16)
        if kind != 3:  # ET_DYN
            return "is an ELF file and no shared library"
        wanted = _ELF_MACHINES.get(here, machine)
    elif found == "a Windows DLL":
        at = struct.unpack_from("<I", head, 60)[0] if len(head) >= 64 else _HEAD
        if head[at : at + 4] != b"PE\0\0" or len(head) < at + 6:
            return "is no 64-bit Windows DLL"
        (machine,) = struct.unpack_from("<H", head, at + 4)
        wanted = _COFF_MACHINES.get(here, machine)
    else:
        return None
    if machine != wanted:
        return f"is for {_NAMES.get(machine, f'machine {machine:#x}')}, and this machine is {_NAMES.get(wanted, here)}"
    return None


def package(target: str) -> Project | None:
    """Return the package of a target that names one."""
    return PLUGINS.get(target)


def remedies() -> list[tuple[str, str]]:
    """Return the name and description of the target of each package with a plugin, for `harness targets`."""
    return [
        (name, f"{project.provider} of {project.name}, installed when first used")
        for name, project in PLUGINS.items()
    ] + [
        (
            "plugin=PATH",
            f"the execution provider of a shared library, with onnxruntime {WITH_PLUGINS} or later: docs/plugins.md",
        )
    ]
