"""A worker for the runtime's own tests: one JSON request a line on stdin, one JSON answer a line on stdout.
Python 3.8."""

from __future__ import annotations

import base64
import json
import sys
import time

boot = sys.modules.get("harness_boot")
import numpy as np  # noqa: E402
import onnxruntime as ort  # noqa: E402

boot and boot.before_sessions()


def session(model: str, config: dict) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.enable_mem_pattern = False
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    for key, value in config.items():
        options.add_session_config_entry(key, value)
    if hasattr(ort.InferenceSession, "get_provider_graph_assignment_info"):
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return ort.InferenceSession(
        base64.b64decode(model),
        options,
        providers=[("DmlExecutionProvider", {"device_id": "0"})],
        enable_fallback=0,
    )


def answer(ask: dict) -> dict:
    if ask["do"] == "versions":
        return {
            "onnxruntime": ort.__version__,
            "numpy": np.__version__,
            "python": sys.version.split()[0],
            "arguments": sys.argv[1:],
        }
    if ask["do"] == "device":
        return boot.describe_device()
    if ask["do"] == "crash":
        import ctypes

        # a thread that starts at an address without code: ctypes would turn a fault in its own calls into an
        # OSError
        pointer = ctypes.c_void_p
        ctypes.windll.kernel32.CreateThread(
            pointer(0), pointer(0), pointer(16), pointer(0), pointer(0), pointer(0)
        )
        time.sleep(60)
    if ask["do"] == "eval":
        return {"value": eval(ask["code"], {"boot": boot, "modules": sys.modules, "np": np, "ort": ort})}
    if ask["do"] == "hang":
        time.sleep(600)
    if ask["do"] == "write":
        try:
            with open(ask["path"], "w") as file:
                file.write("x")
        except OSError as exc:
            return {"refused": str(exc)}
        return {"refused": None}
    if ask["do"] == "sessions":
        times = []
        for _ in range(ask["count"]):
            started = time.perf_counter()
            session(ask["model"], ask.get("config", {}))
            times.append(time.perf_counter() - started)
        return {"seconds": times}
    feeds = {
        name: np.frombuffer(base64.b64decode(data), dtype=dtype).reshape(shape)
        for name, dtype, shape, data in ask["feeds"]
    }
    made = session(ask["model"], ask.get("config", {}))
    (out,) = made.run(None, feeds)
    placed = None
    if hasattr(made, "get_provider_graph_assignment_info"):
        placed = [
            [group.ep_name, [node.op_type for node in group.get_nodes()]]
            for group in made.get_provider_graph_assignment_info()
        ]
    return {
        "dtype": str(out.dtype),
        "shape": list(out.shape),
        "data": base64.b64encode(out.tobytes()).decode(),
        "placed": placed,
    }


print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    try:
        result = answer(json.loads(line))
    except Exception as exc:  # noqa: BLE001
        result = {"error": repr(exc)}
        result["lost"] = bool(boot and boot.after_failure())
    print(json.dumps(result), flush=True)
