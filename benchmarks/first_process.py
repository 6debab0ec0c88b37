"""What the first process of a cluster's run spends on a case: `python -m benchmarks.first_process RUN [--cases N]`.

It simulates nodes that take no time: blocks of a spec of N cases are found and told by their digests, and lines of RUN,
a real run, arrive pickled in blocks, are counted and written. Both are processor time; its inverse is the most that one
first process can feed, however many nodes there are.
"""

from __future__ import annotations

import argparse
import gc
import pickle
import tempfile
import time
from pathlib import Path

from benchmarks.workloads import write_spec
from harness.results.counts import Counts
from harness.results.runfile import RunWriter, run_file
from harness.run.cluster.messages import BlockResults
from harness.run.processes.process import ProcessReport
from harness.specs.expand import expand
from harness.specs.expectations.target_expectations import Findings
from harness.specs.reading.load import load_specs
from harness.specs.selection import Selection

_BLOCK = 512


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_process", description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--cases", type=int, default=200_000)
    arguments = parser.parse_args()
    print("| the first process | cases | µs a case | cases/s |\n|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        spec, count = write_spec(Path(folder), arguments.cases, static=False)
        started = time.process_time()
        plan = expand(load_specs([spec]))
        selection = Selection(plan)
        selection.counted()
        row("plans", count, time.process_time() - started)
        walk("a spec of one's own", selection, count)
        plan = expand(load_specs())
        walk("the default specs", Selection(plan), plan.counted()[0])
        lines = run_file(arguments.run).read_bytes().splitlines(keepends=True)[1:-1]
        arriving = [
            pickle.dumps(BlockResults(b"".join(part), ProcessReport(Counts(), Findings((), {})), ()))
            for part in (lines[start : start + _BLOCK] for start in range(0, len(lines), _BLOCK))
        ]
        started = time.process_time()
        counts = Counts()
        with RunWriter(Path(folder) / "run.jsonl") as writer:
            for data in arriving:
                results = pickle.loads(data)
                counts.merge(results.report.counts)
                writer.append(results.lines)
        row("takes and writes results", len(lines), time.process_time() - started)


def walk(which: str, selection: Selection, cases: int) -> None:
    """Measure what every node does with every block, and what the first process does."""
    gc.freeze()  # as a run does, here and on nodes
    started = time.process_time()
    for _ in selection.blocks(_BLOCK):
        pass
    row(f"passes over the blocks of {which}, as each node does", cases, time.process_time() - started)
    started = time.process_time()
    for block in selection.blocks(_BLOCK):
        block.digest()
    row(f"finds the blocks of {which} with their digests", cases, time.process_time() - started)


def row(what: str, cases: int, seconds: float) -> None:
    """Print a row."""
    each = seconds / cases
    print(f"| {what} | {cases:,} | {each * 1e6:,.2f} | {1 / each:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
