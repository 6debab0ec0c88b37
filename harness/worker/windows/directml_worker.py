"""The worker for DirectML's own API: python.exe boot.py directml_worker.py worker.py [dll=PATH] [device_id=N]
[debug=1]

Serves the frames of `worker.py` with the backend of `directml`; onnxruntime is not imported. If DirectML or
the device is unavailable, one line on stderr says why and the process ends with code 87, before it greets.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Any

REFUSED = 87
REMEDIES = {
    "IDXGIFactory1::EnumAdapters1 DXGI_ERROR_NOT_FOUND": "; no adapter has this device_id, the first one is 0",
    "D3D12GetDebugInterface DXGI_ERROR_SDK_COMPONENT_MISSING": "; debug=1 needs Windows' feature Graphics Tools, Wine has none",
    "DMLCreateDevice1 DXGI_ERROR_SDK_COMPONENT_MISSING": "; the DirectML.Debug.dll beside the DLL cannot be loaded",
}


def main() -> None:
    """Load the frames from the worker's file, the backend from the package that `boot` registered, and
    serve."""
    path, *pairs = sys.argv[1:]
    options = dict(pair.split("=", 1) for pair in pairs)
    sys.path.insert(0, os.path.dirname(path))
    worker: Any = importlib.import_module("worker")

    def make_backend() -> Any:
        gc.freeze()  # modules stay: the collector need not walk through them again and again
        sys.modules["harness_boot"].before_sessions()
        backend = importlib.import_module("harness_boot_modules.directml.backend")
        try:
            return backend.DirectML(
                options.get("dll"), int(options.get("device_id", "0")), debug=options.get("debug") == "1"
            )
        except OSError as exc:
            remedy = REMEDIES.get(str(getattr(exc, "label", "")), "")
            print(f"harness: DirectML cannot be had: {exc}{remedy}", file=sys.stderr, flush=True)
            os._exit(REFUSED)

    worker.serve(worker.Channel(), make_backend)


if __name__ == "__main__":
    main()
