"""Size, time and memory of large run files: `python -m benchmarks.scale BASE HEAD [--results N] [--folder DIR]`.

BASE and HEAD are real runs of the same cases. Each is repeated until it has N results: the name of the sweep or entry
in a case's id is numbered, so ids differ and everything else is what was measured. Then every command runs in a process
of its own, on lines, and with `columns` on the same results as columns.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.model.header import End
from harness.results.runfile import run_file

_PARTS = ("report", "compare", "gzip", "columns", "history")
_COUNTS = "SELECT operator, target, outcome, verdict, count(*) FROM results GROUP BY ALL"
_DIFFERING = """SELECT a.target, a.outcome, b.outcome, count(*) FROM results a JOIN results b USING ("case", target)
WHERE a.run < b.run AND a.outcome <> b.outcome GROUP BY ALL"""


def main() -> None:
    """Write both runs and print a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("base", type=Path)
    parser.add_argument("head", type=Path)
    parser.add_argument("--results", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where the files go; they are deleted afterwards")
    parser.add_argument(
        "--only", choices=_PARTS, nargs="+", default=_PARTS[:-1], help="parts of the table; all but history"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        runs = [folder / "base" / "run.jsonl", folder / "head" / "run.jsonl"]
        for run, source in zip(runs, (arguments.base, arguments.head), strict=True):
            run.parent.mkdir()
            # in a process of its own: what this one held when it starts a command would count as the command's
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                number = pool.apply(repeat, (run_file(source), run, arguments.results))
        print(f"{number:,} results in a run, from {arguments.base.name} and {arguments.head.name}\n")
        print("| what | wall time | processor time | peak memory | size |\n|---|--:|--:|--:|--:|", flush=True)
        row("run.jsonl", 0, 0, 0, runs[0])
        if "compare" in arguments.only:
            command("compare", runs, "json", folder / "compare.json")
        for format in ("markdown", "html", "csv") if "report" in arguments.only else ():
            command("report", runs[:1], format, folder / f"report.{format}")
        if "history" in arguments.only:
            command("history", runs, "json", folder / "history.json")
        if "gzip" in arguments.only:
            alone("gzip -1", _gzip, runs[0], folder / "run.jsonl.gz")
        if "columns" in arguments.only:
            columns = [folder / "base.parquet", folder / "head.parquet"]
            for run, to in zip(runs, columns, strict=True):
                command("report", [run], "parquet", to)
            for format in ("markdown", "html", "csv"):
                command("report", columns[:1], format, folder / f"report.{format}")
            command("compare", columns, "json", folder / "compare.json")
            command("history", columns, "json", folder / "history.json")
            command("query", [_COUNTS, columns[0]], "csv", folder / "counts.csv")
            command("query", [_DIFFERING, *columns], "csv", folder / "differing.csv")


def repeat(source: Path, to: Path, results: int) -> int:
    """Write a run with at least as many results as asked for, and return how many it has."""
    with open(source, "rb") as file:
        head, *lines = file.read().splitlines(keepends=True)
    end = msgspec.json.decode(lines.pop(), type=End)
    times = -(-results // len(lines))
    parts = [_parts(line) for line in lines]
    with open(to, "wb", buffering=1 << 20) as file:
        file.write(head)
        for number in range(times):
            mark = b"__%d" % number  # names of sweeps end in _N themselves
            file.writelines(before + mark + after for before, after in parts)
        total = {
            name: {key: times * value for key, value in getattr(end, name).items()}
            for name in ("outcomes", "verdicts", "left_out")
        }
        file.write(
            msgspec.json.encode(
                msgspec.structs.replace(end, selected=times * end.selected, run=times * end.run, **total)
            )
            + b"\n"
        )
    return times * len(lines)


def _parts(line: bytes) -> tuple[bytes, bytes]:
    """Divide a line behind the name of the sweep or entry: `…:sweep=types` and `;X=float32[3]…`."""
    start = line.index(b'"case":"') + len(b'"case":"')
    ends = [place for mark in (b";", b'"') if (place := line.find(mark, start)) >= 0]
    return line[: min(ends)], line[min(ends) :]


def command(verb: str, runs: Sequence[Path | str], format: str, out: Path) -> None:
    """Measure a command of the harness."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", verb, *map(str, runs), "--format", format, "-o", str(out)],
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"harness {verb} ended with {os.waitstatus_to_exitcode(status)}")
    seconds = time.perf_counter() - started
    of = " of columns" if Path(runs[-1]).suffix == ".parquet" else ""
    row(f"`{verb} --format {format}`{of}", seconds, used.ru_utime + used.ru_stime, used.ru_maxrss, out)


def alone(what: str, function: Callable[..., object], *paths: Path | None) -> None:
    """Measure a function in a process of its own; the last path is what it writes."""
    pipe, theirs = multiprocessing.Pipe()
    started = time.perf_counter()
    process = multiprocessing.get_context("spawn").Process(target=_measured, args=(theirs, function, paths))
    process.start()
    processor, memory, said = pipe.recv()
    process.join()
    seconds = time.perf_counter() - started
    row(f"{what}{said}", seconds, processor, memory, paths[-1])


def _measured(pipe: Any, function: Callable[..., object], paths: tuple[Path | None, ...]) -> None:
    said = function(*paths)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(each.ru_utime + each.ru_stime for each in used)
    pipe.send((seconds, max(each.ru_maxrss for each in used), "" if said is None else f": {said}"))


def row(what: str, seconds: float, processor: float, memory: int, written: Path | None) -> None:
    """Print a row of the table."""
    size = "" if written is None else f"{written.stat().st_size / (1 << 20):,.1f} MiB"
    times = (f"{seconds:,.1f} s", f"{processor:,.1f} s", f"{memory >> 10:,} MiB") if seconds else ("", "", "")
    print(f"| {what} | {' | '.join(times)} | {size} |", flush=True)


def _gzip(run: Path, to: Path) -> None:
    with open(to, "wb") as file:
        subprocess.run(["gzip", "-1", "-c", str(run)], stdout=file, check=True)


if __name__ == "__main__":
    main()
