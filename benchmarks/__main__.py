"""`python -m benchmarks [--target cpu|dml|directml] [--cases N] [--rounds N]`: the raw limit beside the whole
of `harness run`, and memory; with `--stages [SPEC…]` where the processor time of `harness run` goes, with `--classes` the
default specs by class of operators.

What is compared is processor time, user and system of all processes, which other work on the machine changes
least. The bare loop's counts from its first session to its last output, the harness' from the start of its
process to the end of it, reports written; both run in the target's own runtime. They alternate, and medians are
printed.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import classes, directml, stages
from benchmarks.workloads import write_spec
from harness.model.cache_folder import CACHE_ENV, cache_folder
from harness.run.folders import processors

_CASES = {"cpu": 200_000, "dml": 40_000, "directml": 10_000}
_MEMORY: dict[str, list[int]] = {"cpu": [10_000, 100_000, 1_000_000], "dml": [], "directml": []}
_WITHOUT = {"cpu": (), "dml": ("float64", "bool")}
"""Element types that the target has no kernel for: their cases would measure refusals."""


def main() -> None:
    """Run the benchmarks and print a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--target", choices=["cpu", "dml", "directml"], default="cpu")
    parser.add_argument(
        "--cases", type=int, help="cases of the shared-graph workload (a tenth with a session each)"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--stages",
        type=Path,
        nargs="*",
        metavar="SPEC",
        help="processor time by stage of a run of these specs (default: all) on the CPU provider; needs py-spy",
    )
    parser.add_argument(
        "--classes", action="store_true", help="the default specs on the CPU provider, by class"
    )
    parser.add_argument("--memory", type=int, nargs="*", metavar="CASES")
    arguments = parser.parse_args()
    target = arguments.target
    if arguments.stages is not None or arguments.classes:
        for line in classes.table() if arguments.classes else stages.table(arguments.stages):
            print(line, flush=True)
        return
    cases = arguments.cases or _CASES[target]
    memory = arguments.memory if arguments.memory is not None else _MEMORY[target]
    if target == "directml":
        print(
            f"{processors()} processors, Python {sys.version.split()[0]}; medians of {arguments.rounds} rounds\n"
        )
        for line in directml.table(cases, arguments.rounds):
            print(line, flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        print(
            f"{processors()} processors, Python {sys.version.split()[0]}; medians of {arguments.rounds} rounds\n"
        )
        print(
            "| workload | cases | bare loop, µs a case | first run, µs a case | second run | second run / bare loop |"
        )
        print("|---|--:|--:|--:|--:|--:|")
        for name, wanted, static in (
            ("shared graphs", cases, False),
            ("one session per case", cases // 10, True),
        ):
            spec, count = write_spec(Path(folder), wanted, static=static, without=_WITHOUT[target])
            measured = [
                (bare(target, spec), *(each[0] for each in whole(target, spec, Path(folder))))
                for _ in range(arguments.rounds)
            ]
            limit, first, second = (
                statistics.median(each) / count * 1e6 for each in zip(*measured, strict=True)
            )
            ratio = statistics.median(again / limit for limit, _, again in measured)
            print(
                f"| {name} | {count:,} | {limit:,.1f} | {first:,.1f} | {second:,.1f} | {ratio:.1f} |",
                flush=True,
            )
        if memory:
            print("\n| cases | peak memory of the parent, MiB |\n|--:|--:|")
        for wanted in memory:
            spec, count = write_spec(Path(folder), wanted, static=False, without=_WITHOUT[target])
            print(f"| {count:,} | {whole(target, spec, Path(folder))[0][1]:,.0f} |", flush=True)


def bare(target: str, spec: Path) -> float:
    """Return the processor time in seconds of the bare loops, one a processor, which start together."""
    count = processors()
    command = [sys.executable, "-m", "benchmarks.bare_loop", target]
    loops = [
        subprocess.Popen(
            [*command, str(n + 1), str(count), str(spec)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(count)
    ]
    for loop in loops:
        assert loop.stdout is not None
        loop.stdout.readline()
    for loop in loops:
        assert loop.stdin is not None
        loop.stdin.write("\n")
        loop.stdin.flush()
    return sum(float(loop.communicate()[0]) for loop in loops)


def whole(target: str, spec: Path, folder: Path) -> list[tuple[float, float]]:
    """Return processor time in seconds and peak memory in MiB of a whole `harness run`: of the first one, and of one
    that finds what the first one kept."""
    command = [
        sys.executable,
        "-m",
        "harness",
        "run",
        str(spec),
        "-t",
        target,
        "-o",
        str(folder / "run"),
        "--force",
    ]
    with tempfile.TemporaryDirectory() as cache:
        Path(cache, "windows").symlink_to(cache_folder("windows"))
        environment = {CACHE_ENV: cache}
        usages = [stages.usage_of(command, environment) for _ in range(2)]
    return [(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024) for usage in usages]


if __name__ == "__main__":
    main()
