"""Histories: since when cases fail, which flip, counts by version and level, and wrong input."""

from __future__ import annotations

import gzip
import json
import lzma
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harness.commands.history import answer
from harness.model.query import parse_all
from harness.model.target_info import TargetInfo
from harness.model.verdict import Reading
from harness.render.history_chart import render_history_svg
from harness.results.history.recorded import Rate, RecordedRuns
from harness.results.history.runs import collect, find_runs
from harness.results.history.summary import History, sentence
from tests.histories import CASE, INVALID, OPEN, OTHER, cpu, write_days, write_run
from tests.running import complaint, harness, without_onnxruntime
from tests.synthetic import DML


def ask(folder: Path, **asked: Any) -> History:
    with RecordedRuns() as recorded:
        collect(recorded, find_runs([folder]))
        return answer(recorded, **asked)


@pytest.mark.parametrize(
    ("case", "letters", "since", "last_good", "until"),
    [
        (CASE, "ppmm", 3, 2, None),
        (CASE, "pmpm", 4, 3, None),
        (CASE, "mmm", 1, None, None),
        (CASE, "pmmp", 2, 1, 4),
        (CASE, "mpmpp", 3, 2, 4),
        (CASE, "mp", 1, None, 2),
        (CASE, "pnm", 3, 1, None),
        (CASE, "pmn", 2, 1, None),
        (CASE, "mup", 1, None, 3),
        (INVALID, "rra", 3, 2, None),
    ],
)
def test_since(
    tmp_path: Path, case: str, letters: str, since: int, last_good: int | None, until: int | None
) -> None:
    (group,) = ask(write_days(tmp_path, case, letters), case=case).since or []
    found = group.finding
    days = [
        int(moment.run_id[6:8]) if moment else None for moment in (found.since, found.last_good, found.until)
    ]
    assert days == [since, last_good, until]


@pytest.mark.parametrize(("case", "letters"), [(CASE, "ppp"), (INVALID, "rr"), (OPEN, "pmr"), (CASE, "npu")])
def test_never_failed(tmp_path: Path, case: str, letters: str) -> None:
    found = ask(write_days(tmp_path, case, letters), case=case)
    assert found.since == []
    assert found.stand == {"never failed": 1}


def test_runs_are_ordered_by_id_not_by_folder(tmp_path: Path) -> None:
    write_run(tmp_path / "a", 2, {CASE: "m"})
    write_run(tmp_path / "b", 1, {CASE: "p"})
    (group,) = ask(tmp_path, case=CASE).since or []
    assert group.finding.since.run_id.startswith("20260102")
    assert group.finding.last_good is not None


def test_what_differs_is_named(tmp_path: Path) -> None:
    write_run(tmp_path, 1, {CASE: "p"}, {"cpu": cpu("1.22.0")})
    write_run(tmp_path, 2, {CASE: "m"}, {"cpu": cpu("1.23.0")}, specs="cc", seed=8)
    ended = harness("history", tmp_path, "--case", CASE, "--format", "json")
    document = json.loads(ended.out)
    assert document["since"][0]["differs"] == ["onnxruntime", "specs", "seed"]
    assert document["since"][0]["last_good"]["onnxruntime"] == "1.22.0"
    assert [remark.partition(":")[0] for remark in document["remarks"]] == [
        "The specs differ from the run before in 20260102T030405Z-7",
        "The seed differs from the run before in 20260102T030405Z-7",
    ]


def test_cases_with_the_same_history_are_one_group(tmp_path: Path) -> None:
    second = CASE.replace("batched", "batched_too")
    write_run(tmp_path, 1, {CASE: "p", second: "p", OTHER: "p"})
    write_run(tmp_path, 2, {CASE: "m", second: "m", OTHER: "p"})
    found = ask(tmp_path, queries=parse_all(["GatherND"]))
    assert [(group.number, group.example) for group in found.since or []] == [(2, CASE)]
    assert found.stand == {"failing": 2}


def test_releases_are_joined_and_ordered_by_version(tmp_path: Path) -> None:
    write_run(tmp_path, 1, {CASE: "p"}, {"cpu": cpu("1.31.1")})
    write_run(tmp_path, 2, {CASE: "mm"}, {"cpu@ort-1.9.0": cpu("1.9.0"), "cpu@ort-1.24.2": cpu("1.24.2")})
    apart = ask(tmp_path, case=CASE)
    assert list(apart.lines) == ["cpu", "cpu@ort-1.24.2", "cpu@ort-1.9.0"]
    joined = ask(tmp_path, case=CASE, by_release=True)
    assert [moment.version for moment in joined.lines["cpu"]] == ["1.9.0", "1.24.2", "1.31.1"]
    (group,) = joined.since or []
    assert sentence(group.finding) == (
        "failed from 1.9.0 (2026-01-02 03:04), correct since 1.31.1 (2026-01-01 03:04); never correct before"
    )


@pytest.mark.parametrize(
    ("letters", "changes"),
    [
        ("pmp", 2),
        ("mpmpm", 4),
        ("pnmnp", 2),
        ("pm", None),
        ("pmm", None),
        ("pmr", None),
        ("ppp", None),
        ("pmrm", 3),
    ],
)
def test_flips(tmp_path: Path, letters: str, changes: int | None) -> None:
    found = ask(write_days(tmp_path, CASE, letters), asks_flips=True)
    assert [flip.changes for flip in found.flips or []] == ([] if changes is None else [changes])
    assert found.flips_number == len(found.flips or [])


@pytest.mark.parametrize("changed", ["version", "specs", "seed"])
def test_a_change_with_a_cause_is_no_flip(tmp_path: Path, changed: str) -> None:
    write_run(tmp_path, 1, {CASE: "p"})
    write_run(
        tmp_path,
        2,
        {CASE: "m"},
        {"cpu": cpu("1.24.0" if changed == "version" else "1.23.0")},
        specs="cc" if changed == "specs" else "aa",
        seed=8 if changed == "seed" else 7,
    )
    write_run(tmp_path, 3, {CASE: "p"})
    assert ask(tmp_path, asks_flips=True).flips == []


def test_rates_count_what_is_judged(tmp_path: Path) -> None:
    second, third = CASE.replace("batched", "b2"), CASE.replace("batched", "b3")
    write_run(tmp_path, 1, {CASE: "p", second: "m", third: "n", OTHER: "u", INVALID: "r", OPEN: "m"})
    (row,) = ask(tmp_path).rows["cpu"]
    assert row.rates == {"2_1": Rate(1, 3), "beyond": Rate(0, 0), "invalid": Rate(1, 1)}
    assert row.total == Rate(1, 3)


def test_the_chart_has_room_for_counts_of_six_digits(tmp_path: Path) -> None:
    write_run(tmp_path, 1, {CASE: "p", INVALID: "r"})
    history = ask(tmp_path)
    (moments,) = history.lines.values()
    narrow = columns_of(render_history_svg(history))
    large = {Reading.CORRECT: 113_684, Reading.WRONG: 3_570}
    counts = dict.fromkeys(moments[0].point.counts, large)
    moments[0] = moments[0]._replace(point=moments[0].point._replace(counts=counts))
    chart = render_history_svg(history)
    assert "113,684 / 117,254 \N{MINUS SIGN} 3,570" in chart
    assert min(b - a for a, b in pairwise(columns_of(chart))) >= 7 * len(
        "113,684 / 117,254 \N{MINUS SIGN} 3,570"
    )
    assert {b - a for a, b in pairwise(narrow)} == {150}


def columns_of(chart: str) -> list[int]:
    return [int(x) for x in re.findall(r'<text class="bold" x="(\d+)" y="34">', chart)]


def test_equal_neighbours_are_one_row(tmp_path: Path) -> None:
    rows = ask(write_days(tmp_path, CASE, "ppmp")).rows["cpu"]
    assert [(row.runs, row.first.run_id[6:8], row.total) for row in rows] == [
        (2, "01", Rate(1, 1)),
        (1, "03", Rate(0, 1)),
        (1, "04", Rate(1, 1)),
    ]


def test_only_the_target_that_is_asked_for(tmp_path: Path) -> None:
    write_run(tmp_path, 1, {CASE: "pm"}, {"cpu": cpu("1.23.0"), "dml": DML})
    assert list(ask(tmp_path, targets=("dml",)).lines) == ["dml"]
    ended = harness("history", tmp_path, "-t", "cuda")
    assert ended.code == 4
    assert complaint(ended) == "no run has the target cuda; there are: cpu, dml"


def test_what_limits_the_answer(tmp_path: Path) -> None:
    write_run(tmp_path, 1, {CASE: "p"}, whole=False)
    write_run(tmp_path, 2, {CASE: "u"}, {"cpu": TargetInfo("CPUExecutionProvider", unavailable="gone")})
    assert ask(tmp_path).remarks == (
        "20260101T030405Z-7 is incomplete: only what is in it is counted.",
        "cpu was not available in 20260102T030405Z-7.",
    )


def test_a_damaged_run_leaves_nothing(tmp_path: Path) -> None:
    first = write_run(tmp_path, 1, {CASE: "p"})
    second = write_run(tmp_path, 2, {CASE: "p", OTHER: "m"})
    lines = second.read_bytes().splitlines(keepends=True)
    second.write_bytes(b"".join([lines[0], lines[1], lines[2], lines[1]]))
    with RecordedRuns() as recorded:
        collect(recorded, [first])
        (left_out,) = collect(recorded, [second])
        assert re.search(r"day02/run\.jsonl:4: .* is in it twice", str(left_out))
        assert [point.header.run_id for point in recorded.points()] == ["20260101T030405Z-7"]
        assert [case for case, _ in recorded.results(lambda _: True)] == [CASE]


def test_compressed_runs_and_links(tmp_path: Path) -> None:
    path = write_run(tmp_path, 1, {CASE: "p"})
    path.with_name("run.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert find_runs([tmp_path]) == [path]
    path.unlink()
    (tmp_path / "latest").symlink_to("day01")
    assert find_runs([tmp_path, tmp_path / "latest"]) == [path.with_name("run.jsonl.gz")]
    assert ask(tmp_path).rows["cpu"][0].total == Rate(1, 1)


def _missing(folder: Path) -> list[str | Path]:
    return [folder / "none"]


def _empty(folder: Path) -> list[str | Path]:
    (folder / "empty").mkdir()
    return [folder / "empty"]


def _twice(folder: Path) -> list[str | Path]:
    write_run(folder / "a", 1, {CASE: "p"})
    write_run(folder / "b", 1, {CASE: "p"})
    return [folder]


def _header(folder: Path) -> list[str | Path]:
    path = write_run(folder, 1, {CASE: "p"})
    path.write_bytes(path.read_bytes()[:40])
    return [folder]


def _schema(folder: Path) -> list[str | Path]:
    path = write_run(folder, 1, {CASE: "p"})
    path.write_bytes(path.read_bytes().replace(b'"schema":1', b'"schema":2'))
    return [folder]


def _case(folder: Path) -> list[str | Path]:
    return [write_days(folder, CASE, "p"), "--case", OTHER]


def _query(folder: Path) -> list[str | Path]:
    return [write_days(folder, CASE, "p"), "-k", "Round"]


def _both(folder: Path) -> list[str | Path]:
    return [write_days(folder, CASE, "p"), "--case", OTHER, "-k", "Round"]


@pytest.mark.parametrize(
    ("make", "code", "said"),
    [
        (_missing, 2, "none: does not exist; name run files or folders"),
        (_empty, 4, "empty: no run.jsonl, run.jsonl.xz, run.jsonl.gz or run.parquet in it"),
        (_twice, 2, "run 20260101T030405Z-7 is also "),
        (_header, 2, "run.jsonl:1: the header is cut off"),
        (_schema, 2, "run.jsonl:1: run file schema 2; this harness reads schema 1"),
        (_case, 4, f"no run has the case {OTHER}"),
        (_query, 4, "no run has a case that matches Round"),
        (_both, 2, "--case and -k ask the same"),
    ],
)
def test_wrong_input(tmp_path: Path, make: Callable[[Path], list[str | Path]], code: int, said: str) -> None:
    ended = harness("history", *make(tmp_path))
    assert said in complaint(ended)
    assert ended.code == code
    assert not ended.out


def _cut_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def _no_content(path: Path) -> None:
    path.write_bytes(b"")


def _damaged_line(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"outcome":"mismatch"', b'"outcome":"past"'))


def _cut_archive(path: Path) -> None:
    path.with_suffix(".jsonl.xz").write_bytes(lzma.compress(path.read_bytes())[:-20])
    path.unlink()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_cut_header, "run.jsonl:1: the header is cut off: nothing of this run was kept; start a new one"),
        (_no_content, "run.jsonl: the run file is empty"),
        (_damaged_line, "run.jsonl:2: damaged run file: Invalid enum value 'past' - at `$.outcome`"),
        (
            _cut_archive,
            "run.jsonl.xz: the compressed file is cut off: copy it again, or take the uncompressed one",
        ),
    ],
)
def test_one_damaged_run_among_many_is_left_out_and_named(
    tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    runs = write_days(tmp_path / "runs", CASE, "pmp")
    damage(runs / "day02" / "run.jsonl")
    ended = harness("history", runs, "--case", CASE, "--format", "json")
    assert ended.code == 2
    assert complaint(ended) == f"left out: {tmp_path}/runs/day02/{said}"
    assert "20260101T030405Z-7" in ended.out
    assert "20260103T030405Z-7" in ended.out
    assert "20260102T030405Z-7" not in ended.out


def test_no_flip_where_nothing_ran(tmp_path: Path) -> None:
    targets = {"cpu": cpu("1.23.0"), "dml": cpu("1.23.0")}
    for day, letters in enumerate(("p-", "m-", "p-"), start=1):
        write_run(tmp_path, day, {CASE: letters, OTHER: "-p"}, targets)
    ended = harness("history", tmp_path, "--flips", "--format", "json")
    assert ended.code == 0
    assert [flip["target"] for flip in json.loads(ended.out)["flips"]] == ["cpu"]


def test_it_needs_no_onnxruntime(tmp_path: Path) -> None:
    write_days(tmp_path, CASE, "pm")
    without_onnxruntime(
        "from harness.commands.history import *\n"
        f"recorded = RecordedRuns().__enter__(); collect(recorded, find_runs([Path({str(tmp_path)!r})]))\n"
        "assert all(RENDERINGS.text(answer(recorded), each) for each in RENDERINGS.formats)"
    )
