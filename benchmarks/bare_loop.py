"""The raw limit: a bare loop over prepared graphs and feeds, with the session options of the harness, in as many processes.

Started as `python -m benchmarks.bare_loop PART PARTS SPEC…`; prepares its part of the cases, says `ready`, waits for a line, runs, prints
the seconds that creating the sessions and running took.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import onnxruntime

from harness.prepare import units
from harness.selection import Shard, select
from harness.specs.expand import expand
from harness.specs.load import load_specs
from harness.targets import launch, parse_target


def main() -> None:
    """Prepare, wait, run, report."""
    part, parts, *paths = sys.argv[1:]
    shard = Shard(int(part), int(parts))
    selection = select(expand(load_specs([Path(path) for path in paths])), (), shard)
    prepared = []
    for graph, cases in units(selection.cases(valid=True), 0):
        names = [name for name, _ in graph.inputs]
        feeds = [dict(zip(names, [inputs[n].array for n in graph.fed], strict=True)) for _, inputs in cases]
        prepared.append((graph.model, [graph.output[0]], feeds))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    for key, value in launch(parse_target("cpu")).config.items():
        options.add_session_config_entry(key, value)
    print("ready", flush=True)
    sys.stdin.readline()
    started = time.perf_counter()
    for model, outputs, feeds in prepared:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        run = session.run
        for feed in feeds:
            run(outputs, feed)
    print(time.perf_counter() - started, flush=True)


if __name__ == "__main__":
    main()
