"""Time and memory of `harness compare` on two synthetic runs: `python -m benchmarks.compare_runs [RESULTS]`
results each, on two targets.

HEAD differs from BASE in some hundredth of its results. Prints the rows of the table in docs/performance.md,
each format in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from harness.model.header import End
from harness.model.verdict import NOT_EXECUTED
from harness.results.runfile import RunWriter
from tests import synthetic


def write(path: Path, results: int, seed: int) -> None:
    """Write a run without holding it."""
    writer = RunWriter(path, synthetic.header())
    outcomes, verdicts = Counter[str](), Counter[str]()
    number = ran = 0
    for result in synthetic.results(results // 2, seed=seed):
        writer.add(result)
        outcomes[result.outcome.value] += 1
        verdicts[result.verdict.value] += 1
        number += 1
        ran += result.outcome not in NOT_EXECUTED
    writer.close(End(number, ran, {}, outcomes, verdicts))


def main() -> None:
    """Write both runs, compare them in every format, print a table."""
    results = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "base.jsonl", results, 1)
        write(folder / "head.jsonl", results, 2)
        print(f"2 × {results:,} results, {(folder / 'base.jsonl').stat().st_size >> 20} MiB each\n")
        print("| format | time | processor time | peak memory | size |\n|---|--:|--:|--:|--:|")
        for format in ("terminal", "markdown", "json", "html"):
            out = folder / format
            runs = [str(folder / "base.jsonl"), str(folder / "head.jsonl")]
            started = time.perf_counter()
            process = subprocess.Popen(
                [sys.executable, "-m", "harness", "compare", *runs, "--format", format, "-o", str(out)]
            )
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
            if os.waitstatus_to_exitcode(status) != 1:
                raise SystemExit(f"harness compare ended with {os.waitstatus_to_exitcode(status)}")
            cells = (
                f"{seconds:.1f} s",
                f"{usage.ru_utime + usage.ru_stime:.1f} s",
                f"{usage.ru_maxrss >> 10} MiB",
            )
            print(
                f"| {format} | {' | '.join(cells)} | {out.stat().st_size / (1 << 20):.1f} MiB |", flush=True
            )


if __name__ == "__main__":
    main()
