"""Size, time and memory of large run files: `python -m benchmarks.scale BASE HEAD [--results N] [--folder DIR]`.

BASE and HEAD are real runs of the same cases. Each is repeated until it has N results: the name of the sweep or entry
in a case's id is numbered, so ids differ and everything else is what was measured. Then every command runs in a process
of its own. With pyarrow installed (`pip install pyarrow`) the same results are written as Parquet, read again and
compared there, outcome by outcome, as the least that `compare` would do.
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
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from harness.model.header import End
from harness.results.runfile import RunReader, run_file

_BATCH = 100_000
_PARTS = ("report", "compare", "gzip", "parquet", "history")
_COLUMNS = ("case", "operator", "target", "validity", "outcome", "verdict", "stage", "placed_on", "seconds")
"""Of these each is a column; the rest of a result is one column of JSON."""


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
        if "parquet" in arguments.only and find_spec("pyarrow") is not None:
            columns = [folder / "base.parquet", folder / "head.parquet"]
            for run, to in zip(runs, columns, strict=True):
                alone("JSON lines to Parquet (zstd)", to_parquet, run, to)
            alone("counts by operator, target, outcome and verdict, from Parquet", counts, columns[0], None)
            alone("outcomes that differ, from Parquet", differing, columns[0], columns[1])


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
            mark = b"_%d" % number
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


def command(verb: str, runs: list[Path], format: str, out: Path) -> None:
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
    row(f"`{verb} --format {format}`", seconds, used.ru_utime + used.ru_stime, used.ru_maxrss, out)


def alone(what: str, function: Callable[..., object], *paths: Path | None) -> None:
    """Measure a function in a process of its own; the last path is what it writes."""
    pipe, theirs = multiprocessing.Pipe()
    started = time.perf_counter()
    process = multiprocessing.get_context("spawn").Process(target=_measured, args=(theirs, function, paths))
    process.start()
    processor, memory, said = pipe.recv()
    process.join()
    seconds = time.perf_counter() - started
    row(f"{what}{said}", seconds, processor, memory, paths[-1] if function is not differing else None)


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


def to_parquet(run: Path, to: Path) -> None:
    """Write the results of a run as Parquet, in groups of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for rows in _rows(run):
        table = pa.table(rows)
        if writer is None:
            writer = pq.ParquetWriter(to, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def _rows(run: Path) -> Iterator[dict[str, list[object]]]:
    rows: dict[str, list[object]] = {name: [] for name in (*_COLUMNS, "rest")}
    encode = msgspec.json.Encoder().encode
    for result in RunReader(run):
        values = msgspec.to_builtins(result)
        for name in _COLUMNS:
            rows[name].append(values.pop(name))
        rows["rest"].append(encode(values).decode())
        if len(rows["case"]) == _BATCH:
            yield rows
            rows = {name: [] for name in rows}
    if rows["case"]:
        yield rows


def counts(run: Path, _to: None) -> str:
    """Count what tables count, as far as columns say it."""
    import pyarrow.parquet as pq

    keys = ["operator", "target", "outcome", "verdict"]
    found = pq.read_table(run, columns=keys).group_by(keys).aggregate([([], "count_all")])
    return f"{len(found):,} groups"


def differing(base: Path, head: Path) -> str:
    """Count the results whose outcomes differ."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    keys = ["case", "target"]
    first, second = (pq.read_table(run, columns=[*keys, "outcome"]) for run in (base, head))
    joined = first.join(second, keys, right_suffix="_after", join_type="full outer")
    return f"{pc.sum(pc.not_equal(joined['outcome'], joined['outcome_after'])).as_py():,}"


if __name__ == "__main__":
    main()
