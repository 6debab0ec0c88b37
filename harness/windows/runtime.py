"""Start the harness's worker in the Windows runtime: the command and environment for one process."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.errors import TargetUnavailable, UsageError
from harness.windows import install
from harness.windows.releases import release
from harness.windows.sandbox import WINE, Bind, command, launcher

BOOT = Path(__file__).with_name("boot.py")
PROVIDER_OPTIONS = {"device_id": "0"}
"""What the DirectML provider needs here: without an id newer releases ask DXCore, which Wine lacks."""
START_SECONDS = 60.0
"""How long a worker may take until it says that it is ready; 1 to 3 s are usual."""


def launch(worker: Path, *, ort: str | None = None, args: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
    """Return argv and environment that start `worker` on the onnxruntime-directml release `ort` (None: the newest).

    stdin, stdout and stderr of the process are the worker's. Killing the process leaves nothing behind, and it ends by itself when the
    thread that started it ends. A release that is not there yet is fetched when the Windows runtime itself is installed. On Windows the
    worker runs in this interpreter. Raises TargetUnavailable with the remedy where the runtime is missing, damaged or cannot start.
    """
    if sys.platform == "win32":
        if ort is not None:
            raise UsageError("on Windows the installed onnxruntime-directml is used: no other release can be chosen")
        return [sys.executable, str(BOOT), str(worker), *args], dict(os.environ)
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
    inside = [WINE, "/windows/python/python.exe", r"Z:\windows\boot\boot.py", r"Z:\windows\worker.py", *args]
    return command(found.root, inside, binds, template=found.prefix), {"PATH": os.environ.get("PATH", os.defpath)}


def unavailable() -> str | None:
    """Return None where a worker can be launched now, else the reason with the remedy."""
    try:
        install.require_linux()
        install.verify()
        launcher()
    except TargetUnavailable as exc:
        return str(exc)
    return None
