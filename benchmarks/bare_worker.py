"""The bare loop where a target's worker would run, with its session options: cases on stdin as a pickle,
seconds of processor time on stdout.

Reads u32 length and the pickle, says `ready`, waits for a line, creates the sessions and runs every case,
says how much processor time that took. Standard library, numpy and onnxruntime.
"""

from __future__ import annotations

import pickle
import struct
import sys
import time

boot = sys.modules.get("harness_boot")
import numpy as np  # noqa: E402
import onnxruntime as ort  # noqa: E402

if boot is not None:
    boot.before_sessions()
stream = sys.stdin.buffer
(size,) = struct.unpack("<I", stream.read(4))
provider, provider_options, config, units = pickle.loads(stream.read(size))
prepared = [
    (
        model,
        outputs,
        [
            {name: np.frombuffer(data, dtype).reshape(shape) for name, dtype, shape, data in case}
            for case in cases
        ],
    )
    for model, outputs, cases in units
]
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
options.intra_op_num_threads = options.inter_op_num_threads = 1
options.enable_mem_pattern = provider == "CPUExecutionProvider"
options.log_severity_level = 4
for key, value in config.items():
    options.add_session_config_entry(key, value)
print("ready", flush=True)
stream.readline()
started = time.process_time()
for model, outputs, feeds in prepared:
    session = ort.InferenceSession(
        model, options, providers=[(provider, provider_options)], enable_fallback=0
    )
    run = session.run
    for feed in feeds:
        run(outputs, feed)
print(time.process_time() - started, flush=True)
