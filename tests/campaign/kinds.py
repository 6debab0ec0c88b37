"""The kinds of files that the harness reads: whole ones, the ways to damage them, and a command that reads
the damaged one."""

from __future__ import annotations

import gzip
import lzma
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.model.cache_folder import CACHE_ENV
from harness.targets import components
from harness.targets.fake_script import Script
from harness.targets.runtimes import environments
from tests.campaign import parquet
from tests.campaign.mutations import BYTES, LINES, TEXT, Mutation
from tests.histories import CASE, INVALID, OPEN, OTHER, write_run
from tests.running import SPECS, harness, script_of

_ALLOWED = {0, 1, 2, 3, 4}
ROUND = """\
operator: Round
opsets: [11, 22]
lowers_to: {directml: DML_OPERATOR_ELEMENT_WISE_ROUND}
because: one rounding
cases:
  - name: halves
    inputs: {X: {dtype: float16, values: [0.5, "0x7e01", -2.5, .nan]}}
sweeps:
  - name: sizes
    X: {dtype: [float16, float32, bfloat16], shape: [[], [3, 4]], values: [ordinary, random]}
"""
EXPECTATIONS = """\
# known
- {match: "Round@22:X=float16", expect: mismatch, difference: {kind: value}, reason: a test, link: "https://example.org/1"}
- match: ["GatherND@13:data=float32[*,*]", "GatherElements:axis>=1"]
  unless: "GatherND@13:sweep=tuples"
  when: {onnxruntime: ">=1.20,<1.23", adapter: llvmpipe}
  expect: rejected
  title: something
  reason: another
  link: "https://example.org/2"
"""
SCRIPT = """\
startup: ok
rules:
  - {match: "Round@22:X=float16", do: ulp, every: 2}
  - {where: ["batch_dims>=1", "batch_sizes=differ"], do: fail}
  - {match: GatherND, where: "data.rank>=3", do: reject}
"""
_REPORTS = ("markdown", "html", "junit", "ctrf", "csv", "directml", "cells")


class Kind(NamedTuple):
    """A kind of file: the ways to damage it, and what to do with the damaged one, given the folder of the
    campaign."""

    mutations: Sequence[Mutation]
    whole: Callable[[Path], Sequence[bytes]]
    use: Callable[[Path, bytes, random.Random], None]


class Unexpected(Exception):
    """A command ended as it should not."""


def _command(*arguments: str | Path) -> None:
    ended = harness(*arguments)
    if ended.code not in _ALLOWED or "Traceback" in ended.err:
        raise Unexpected(f"exit code {ended.code}: {ended.err[-1500:]}")
    if ended.code == 2 and not ended.err.strip():
        raise Unexpected("exit code 2 without a word")


def _spec(folder: Path, data: bytes, rng: random.Random) -> None:
    """What plans a spec, and a run of one case in some hundred on a target that computes nothing."""
    path = _written(folder / "spec.yaml", data)
    shutil.rmtree(folder / "out", ignore_errors=True)
    run = (
        "run",
        path,
        "-t",
        f"fake,script={folder / 'none.yaml'}",
        "-j",
        "1",
        "--shard",
        f"{rng.randrange(1, 100)}/100",
    )
    _command(
        *rng.choice((
            ("check", path), ("list", path), ("list", path, "--json"), ("list", path, "--count", "--thorough"),
            ("coverage", path, "--missing"), ("coverage", path, "--json"), (*run, "-o", folder / "out"),
        ))
    )  # fmt: skip


def _expectations(folder: Path, data: bytes, rng: random.Random) -> None:
    path = _written(folder / "known.yaml", data)
    _command(
        *rng.choice(
            (
                ("check", folder / "Round.yaml", "--expectations", path),
                ("expect", "update", folder / "run", path, "--check"),
            )
        )
    )


def _script(folder: Path, data: bytes, rng: random.Random) -> None:
    script = Script(_written(folder / "fake.yaml", data))
    for case in (CASE, OTHER, INVALID):
        script.action(case, rng.randrange(3))


def _run(folder: Path, data: bytes, rng: random.Random) -> None:
    damaged = folder / "damaged"
    damaged.mkdir(exist_ok=True)
    path = _written(damaged / "run.jsonl", data)
    whole = folder / "run"
    _command(
        *rng.choice(
            (
                *(("report", path, "--format", name, "-o", folder / "report") for name in _REPORTS),
                ("compare", whole, path),
                ("compare", path, whole, "--format", "html", "-o", folder / "report"),
                ("explain", path, "--known"),
                ("explain", path, "--against", whole, "--format", "json"),
                ("history", path, whole, "--flips"),
                ("merge", path, whole, "-o", folder / "merged"),
                ("expect", "update", path, folder / "Round.known.yaml", "--check"),
                (
                    "repro",
                    path,
                    "Round@22:case=halves",
                    "--spec",
                    folder / "Round.yaml",
                    "-o",
                    folder / "repro",
                ),
            )
        )
    )


def _packed(folder: Path, data: bytes, rng: random.Random) -> None:
    path = _written(folder / "packed.jsonl.xz", data)
    _command("report", path, "--format", "csv", "-o", folder / "report")
    _command("history", path)


def _columns(folder: Path, data: bytes, rng: random.Random) -> None:
    path = _written(folder / "damaged.parquet", data)
    whole = folder / "run"
    _command(
        *rng.choice(
            (
                *(("report", path, "--format", name, "-o", folder / "report") for name in _REPORTS),
                ("report", path, "-o", folder / "reports"),
                ("history", path),
                ("history", path, whole, "--flips"),
                ("site", path, "-o", folder / "site"),
                ("compare", whole, path),
                ("compare", path, whole),
                ("explain", path, "--known"),
                ("query", "SELECT * FROM results", path, "--format", "json", "-o", folder / "report"),
                ("query", "SELECT operator, reading, count(*) FROM results GROUP BY ALL", path),
            )
        )
    )


def _artifact(folder: Path, data: bytes, rng: random.Random) -> None:
    name = next(iter(sorted((folder / "run" / "artifacts").iterdir())))
    whole = name.read_bytes()
    try:
        name.write_bytes(data)
        _command("report", folder / "run", "--format", "html", "-o", folder / "report")
    finally:
        name.write_bytes(whole)


def _manifest(folder: Path, data: bytes, rng: random.Random) -> None:
    (folder / "manifest").mkdir(exist_ok=True)
    _written(folder / "manifest" / "manifest.txt", data)
    _command("compile", folder / "Round.yaml", "--check", "-o", folder / "manifest")


def _model(folder: Path, data: bytes, rng: random.Random) -> None:
    models = folder / "models"
    path = next(iter(sorted(models.rglob("*.onnx"))))
    _written(path, data)
    _command("compile", folder / "Round.yaml", *rng.choice(((), ("--check",))), "-o", models)


def _stamp(folder: Path, data: bytes, rng: random.Random) -> None:
    place = folder / "cache" / "runtimes" / "onnxruntime-1.22.1"
    _written(place / "stamp.json", data)
    components.problems(place, deep=rng.random() < 0.5)
    os.environ[CACHE_ENV] = str(folder / "cache")
    environments.installed()
    _command("runtimes", "list")


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _compressed(folder: Path) -> Sequence[bytes]:
    data = (folder / "run" / "run.jsonl").read_bytes()
    return [lzma.compress(data), gzip.compress(data)]


def prepare(folder: Path) -> None:
    """Make the undamaged files."""
    (folder / "Round.yaml").write_text(ROUND, encoding="utf-8")
    (folder / "Round.known.yaml").write_text(EXPECTATIONS, encoding="utf-8")
    (folder / "none.yaml").write_text("rules: []\n", encoding="utf-8")
    script = script_of(
        folder, [("Round@22:X=float16", "ulp"), ("Round@11", "reject"), ("Round@22:X=bfloat16", "nan")]
    )
    assert (
        harness(
            "run", folder / "Round.yaml", "-t", f"fake,script={script}", "-j", "1", "-o", folder / "run"
        ).code
        == 1
    )
    assert harness("compile", folder / "Round.yaml", "-o", folder / "models").code == 0
    for day in range(1, 6):
        write_run(
            folder / "days",
            day,
            {case: "pmra"[day % 4] if case == INVALID else "pmu"[day % 3] for case in (CASE, OTHER, OPEN)},
        )
    place = folder / "cache" / "runtimes" / "onnxruntime-1.22.1"
    place.mkdir(parents=True)
    (place / "key.txt").write_text("key", encoding="utf-8")
    components.seal(place, ["*.txt"], {"onnxruntime": "1.22.1", "python": "3.11.7", "numpy": "2.0"})
    np.savez(
        folder / "whole.npz",
        input_X=np.ones((3, 4), np.float16),
        expected=np.arange(12),
        actual=np.arange(12) + 1,
    )


def _as_columns(folder: Path) -> Sequence[bytes]:
    """As the harness writes them, and with pages that are not compressed, so that damage reaches what they hold. In a process of
    its own: a fork of one with DuckDB's threads would hang."""
    report = ("report", folder / "run", "-o", folder / "whole.parquet")
    subprocess.run([sys.executable, "-m", "harness", *report], check=True)
    (packed,) = _of("whole.parquet")(folder)
    plain = "import duckdb; duckdb.sql(\"COPY (FROM 'whole.parquet') TO 'plain.parquet' (COMPRESSION uncompressed)\")"
    subprocess.run([sys.executable, "-c", plain], check=True, cwd=folder)
    (pages,) = _of("plain.parquet")(folder)
    marked = parquet.footer(pages)
    marked.held[parquet.METADATA] = parquet.footer(packed).held[parquet.METADATA]
    return [packed, parquet.with_footer(pages, marked)]


def _of(name: str) -> Callable[[Path], Sequence[bytes]]:
    return lambda folder: [(folder / name).read_bytes()]


def _all(pattern: str) -> Callable[[Path], Sequence[bytes]]:
    return lambda _: [path.read_bytes() for path in sorted(SPECS.glob(pattern))]


KINDS: dict[str, Kind] = {
    "spec": Kind(TEXT, _all("[A-Z]*.yaml"), _spec),
    "graph": Kind(TEXT, _all("graphs/*.yaml"), _spec),
    "expectations": Kind(
        TEXT,
        lambda folder: [*_of("Round.known.yaml")(folder), *_all("expectations/*.yaml")(folder)],
        _expectations,
    ),
    "script": Kind(TEXT, lambda _: [SCRIPT.encode()], _script),
    "run": Kind(LINES, _of("run/run.jsonl"), _run),
    "packed run": Kind(BYTES, _compressed, _packed),
    "columns": Kind((*BYTES, *parquet.MUTATIONS), _as_columns, _columns),
    "artifact": Kind(BYTES, _of("whole.npz"), _artifact),
    "manifest": Kind(TEXT, lambda _: [b"0123456789abcdef0123 3 Round@22\n" * 40], _manifest),
    "model": Kind(
        BYTES,
        lambda folder: [path.read_bytes() for path in sorted((folder / "models").rglob("*.onnx"))],
        _model,
    ),
    "stamp": Kind(LINES, _of("cache/runtimes/onnxruntime-1.22.1/stamp.json"), _stamp),
}
