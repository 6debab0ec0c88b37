"""Prepares an interpreter at the other end of ssh and runs the worker there, without a file: all source comes
over stdin.

`remote.py` sends it with the sources of the worker and of the modules that Windows needs, and runs it with
these as `sources`. Standard library only, Python 3.8 and later.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import queue
import shutil
import sys
import tempfile
import threading
import types
from typing import Any, Dict, Optional

REFUSED = 87
PACKAGE = "harness_boot_modules"


def refuse(reason: str) -> None:
    """End with one line for the harness."""
    print("harness: " + reason, file=sys.stderr, flush=True)
    os._exit(REFUSED)


def watch_connection() -> None:
    """Pass stdin on through a pipe of this process, and end the process as soon as the connection is gone,
    whatever the worker is at.

    On Windows this also keeps a pending read away from the standard handle, at which libraries that are being
    loaded would wait.
    """
    outer = os.dup(0)
    inner, feed = os.pipe()
    os.dup2(inner, 0)
    os.close(inner)
    waiting: Any = queue.SimpleQueue()

    def receive() -> None:
        while True:
            try:
                data = os.read(outer, 1 << 20)
            except OSError:
                data = b""
            if not data:
                shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)  # this process's own
                os._exit(0)
            waiting.put(data)

    def pass_on() -> (
        None
    ):  # apart from the above: a worker that hangs does not read, and the end must be noticed all the same
        while True:
            view = memoryview(waiting.get())
            while view:
                view = view[os.write(feed, view) :]

    for work in (receive, pass_on):
        threading.Thread(target=work, daemon=True).start()


class InMemory(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the modules of one package from their sources."""

    def __init__(self, modules: Dict[str, str]) -> None:
        self._modules = modules

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        package, _, name = fullname.rpartition(".")
        if fullname == PACKAGE:
            return importlib.util.spec_from_loader(fullname, self, is_package=True)
        if package == PACKAGE and name in self._modules:
            return importlib.util.spec_from_loader(fullname, self)
        return None

    def create_module(self, spec: Any) -> Optional[types.ModuleType]:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__.rpartition(".")[2]
        if name in self._modules:
            exec(
                compile(
                    self._modules[name], "harness/worker/windows/" + name + ".py", "exec", dont_inherit=True
                ),
                module.__dict__,
            )


def prepare_windows(modules: Dict[str, str]) -> None:
    """Register `harness_boot`, and let a crash end the process rather than ask somebody."""
    import ctypes

    if sys.platform == "win32":
        ctypes.WinDLL("kernel32").SetErrorMode(0x8003)  # no box for critical errors, faults and missing files
    sys.meta_path.insert(0, InMemory(modules))
    importlib.import_module(PACKAGE + ".boot").register(PACKAGE)


def main(given: Dict[str, str]) -> None:
    """Prepare the process and run the worker as `__main__`."""
    if sys.version_info < (3, 8):
        refuse("Python " + sys.version.split()[0] + " is too old: the worker needs 3.8 or later")
    sys.dont_write_bytecode = True
    sys.path[:] = [entry for entry in sys.path if entry]
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    if sys.platform == "win32":
        prepare_windows(given)
    tempfile.tempdir = tempfile.mkdtemp(prefix="harness-worker-")
    watch_connection()
    sys.argv[:] = ["worker.py"]
    try:
        exec(
            compile(given["worker"], "harness/worker/worker.py", "exec", dont_inherit=True),
            {"__name__": "__main__"},
        )
    except ImportError as error:
        refuse(
            "Python " + sys.version.split()[0] + " there cannot import what the worker needs: " + str(error)
        )


if __name__ == "__main__":
    main(globals()["sources"])
