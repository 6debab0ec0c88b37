"""Start a worker in the Windows Python: python.exe boot.py worker.py [argument …]

Prepares the process (under Wine; on Windows there is nothing to prepare), registers itself as `harness_boot`
and runs the worker as `__main__`. The worker calls `before_sessions()` right after `import onnxruntime` and
`describe_device()` to learn its device. A Wine that the compatibility layer does not know ends the process
with code 86 and one line on stderr, before the worker starts. After a session on DirectML has failed, the
worker calls `after_failure()`, which says whether the device is lost. Standard library only, Python 3.8 and
later.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import runpy
import sys
import types
from typing import Any

NAME = "harness_boot"
REFUSED = 86


def _siblings() -> types.ModuleType:
    """Return a package of the modules beside this file without importing the harness around it."""
    package = types.ModuleType("harness_boot_modules")
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[package.__name__] = package
    return package


def register(package: str) -> None:
    """Prepare the process and register `harness_boot`; the modules beside this file are those of
    `package`."""
    winecompat = importlib.import_module(package + ".winecompat")
    device = importlib.import_module(package + ".device")

    def describe_device(device_id: int = 0) -> Any:
        winecompat.before_sessions()
        return device.describe_device(device_id)

    def after_failure(device_id: int = 0) -> bool:
        with contextlib.suppress(OSError):  # no such adapter: it has no context either
            return bool(device.forget_execution_context(device_id))
        return False

    boot = types.ModuleType(NAME)
    boot.__dict__.update(
        before_sessions=winecompat.before_sessions,
        after_failure=after_failure,
        describe_device=describe_device,
        wine_build=winecompat.wine_build,
    )
    sys.modules[NAME] = boot
    try:
        winecompat.before_imports()
    except winecompat.Incompatible as exc:
        print("harness: " + str(exc), file=sys.stderr, flush=True)
        os._exit(REFUSED)


def main() -> None:
    """Prepare the process and run the worker."""
    register(_siblings().__name__)
    worker = sys.argv[1]
    sys.argv[:] = sys.argv[1:]
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    runpy.run_path(worker, run_name="__main__")


if __name__ == "__main__":
    main()
