"""Starts the harness's worker in the Windows runtime: builds the command and environment of one process."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.model.errors import TargetUnavailable, UsageError
from harness.targets.windows.releases import release
from harness.targets.windows.sandbox import WINE, Bind, command, launcher

BOOT = Path(__file__).resolve().parents[2] / "worker" / "windows" / "boot.py"
PROVIDER_OPTIONS = {"device_id": "0"}
"""What the DirectML provider needs here: without an id newer releases ask DXCore, which Wine lacks."""
START_SECONDS = 60.0
"""How long a worker may take until it says that it is ready; 1 to 3 s are usual."""

_DLL, _DEBUG_DLL = "DirectML.dll", "DirectML.Debug.dll"


def launch(
    worker: Path,
    *,
    ort: str | None = None,
    args: Sequence[str] = (),
    through: str | None = None,
    dll: Path | None = None,
) -> tuple[list[str], dict[str, str]]:
    """Return argv and environment that start `worker` on the onnxruntime-directml release `ort` (None: the
    newest).

    `through` names a program beside `boot.py` that is run in the worker's place, with the worker's path
    before its other arguments; `dll` is a DirectML.dll of the user's own, given as `dll=PATH`.

    stdin, stdout and stderr of the process are the worker's. Killing the process leaves nothing behind, and
    it ends by itself when the thread that started it ends. A release that is not there yet is fetched when
    the Windows runtime itself is installed. On Windows the worker runs in this interpreter. Raises
    TargetUnavailable with the remedy where the runtime is missing, damaged or cannot start.
    """
    if sys.platform == "win32":
        if ort is not None:
            raise UsageError(
                "on Windows the installed onnxruntime-directml is used: no other release can be chosen"
            )
        program = [str(BOOT), *([str(BOOT.with_name(through))] if through else []), str(worker)]
        return [sys.executable, *program, *args, *([f"dll={dll}"] if dll else [])], dict(os.environ)
    from harness.targets.windows import install  # its downloads: no other target needs them

    if ort is not None and install.installed() is not None and install.installed(ort) is None:
        install.install(ort)
    found = install.verify(None if ort is None else release(ort).onnxruntime)
    binds = [
        Bind(found.python, "/windows/python"),
        Bind(found.numpy, "/windows/numpy"),
        Bind(found.onnxruntime, "/windows/onnxruntime"),
        Bind(BOOT.parent, "/windows/boot"),
        Bind(worker.absolute(), "/windows/worker.py"),
        Bind(found.shaders, "/shaders", writable=True),
    ]
    program = [
        r"Z:\windows\boot\boot.py",
        *([rf"Z:\windows\boot\{through}"] if through else []),
        r"Z:\windows\worker.py",
    ]
    if dll is not None:
        binds += [Bind(dll.absolute(), f"/tmp/{_DLL}"), *_beside(dll)]
        args = [*args, rf"dll=Z:\tmp\{_DLL}"]
    inside = [WINE, "/windows/python/python.exe", *program, *args]
    return command(found.root, inside, binds, template=found.prefix), {
        "PATH": os.environ.get("PATH", os.defpath)
    }


def _beside(dll: Path) -> list[Bind]:
    """Return DirectML's debug layer where it stands beside the DLL."""
    debug = dll.absolute().with_name(_DEBUG_DLL)
    return [Bind(debug, f"/tmp/{_DEBUG_DLL}")] if debug.is_file() else []


def unavailable() -> str | None:
    """Return None if a worker can be launched now, otherwise the reason and the remedy."""
    from harness.targets.windows import install

    try:
        install.require_linux()
        launcher()
        install.verify()
    except TargetUnavailable as exc:
        return str(exc)
    return None
