"""What a task of a cluster costs: `python -m benchmarks.cluster_tasks [--cases N] [--nodes N]` runs one spec with shared
graphs on `local:N` with blocks of several sizes, and without a cluster.

Processor time is of all processes, nodes and their workers among them, from start to end. The cost of a task follows from
the difference between blocks of the smallest and the largest size.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.stages import usage_of
from benchmarks.workloads import write_spec

_SIZES = (16, 64, 256, 512, 2048)
_CODE = """
import sys
from harness.run.cluster import coordinator
coordinator._BLOCK = coordinator._SMALLEST = {size}
from harness.commands.start import main
if __name__ == "__main__":
    main()
"""


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster_tasks", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec, count = write_spec(folder, arguments.cases, static=False)
        options = ["run", str(spec), "-t", "cpu", "--no-cache", "-o", str(folder / "run"), "--force"]
        print(f"{count:,} cases, {arguments.nodes} nodes\n")
        print("| blocks of | tasks | processor time | µs a case | wall time |\n|---|--:|--:|--:|--:|")
        row("no cluster", 0, count, [sys.executable, "-m", "harness", *options, "-j", str(arguments.nodes)])
        found: dict[int, float] = {}
        for size in _SIZES:
            script = folder / f"blocks_{size}.py"
            script.write_text(_CODE.format(size=size), encoding="utf-8")
            command = [sys.executable, str(script), *options, "--cluster", f"local:{arguments.nodes}"]
            found[size] = row(f"{size} cases", -(-count // size), count, command)
        few, many = max(_SIZES), min(_SIZES)
        cost = (found[many] - found[few]) / (count / many - count / few)
        print(f"\na task costs {1000 * cost:.1f} ms of processor time")


def row(what: str, tasks: int, count: int, command: list[str]) -> float:
    """Run, print a row and return the processor time in seconds."""
    started = time.perf_counter()
    usage = usage_of(command)
    wall, used = time.perf_counter() - started, usage.ru_utime + usage.ru_stime
    print(
        f"| {what} | {tasks or ''} | {used:,.1f} s | {used / count * 1e6:,.0f} | {wall:,.1f} s |", flush=True
    )
    return used


if __name__ == "__main__":
    main()
