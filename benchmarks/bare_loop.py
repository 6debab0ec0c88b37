"""The raw limit: a bare loop over prepared graphs and feeds, with the session options of the harness, in as
many processes.

Started as `python -m benchmarks.bare_loop TARGET PART PARTS SPEC…`; prepares its part of the cases, hands
them to `bare_worker.py` in the target's runtime, says `ready`, waits for a line, has it run, prints the
seconds of processor time that creating the sessions and running took.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path

from harness.compile.prepare import by_graph
from harness.model.header import Shard
from harness.model.target_info import DML
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.specs.selection import Selection
from harness.targets.launches import launch
from harness.targets.registry import parse_target
from harness.targets.windows import runtime

_WORKER = Path(__file__).with_name("bare_worker.py")


def main() -> None:
    """Prepare, wait, run, report."""
    name, part, parts, *paths = sys.argv[1:]
    shard = Shard(int(part), int(parts))
    selection = Selection(expand(load_specs([Path(path) for path in paths])), (), shard)
    prepared = []
    for graph, cases in by_graph(selection.cases(valid=True), 0):
        names = [name for name, _ in graph.inputs]
        fed = [zip(names, [inputs[n].array for n in graph.fed], strict=True) for _, _, inputs, *_ in cases]
        feeds = [
            [(key, array.dtype.str, array.shape, array.tobytes()) for key, array in case] for case in fed
        ]
        prepared.append((graph.model, [name for name, _ in graph.outputs], feeds))
    start = launch(parse_target(name))
    argv, env = [sys.executable, str(_WORKER)], start.env
    if start.provider == DML:
        argv, env = runtime.launch(_WORKER)
    data = pickle.dumps(
        (start.provider, dict(start.provider_options), dict(start.config), prepared), protocol=4
    )
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **(env or {})}
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(struct.pack("<I", len(data)) + data)
        process.stdin.flush()
        print(process.stdout.readline().decode().strip(), flush=True)
        sys.stdin.readline()
        process.stdin.write(b"\n")
        process.stdin.flush()
        print(process.stdout.readline().decode().strip(), flush=True)


if __name__ == "__main__":
    main()
