"""A case that is answered as before is neither made nor judged again; all else is, and what is kept changes no result."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.model.errors import HarnessFault
from harness.model.query import parse_all
from harness.run import held_back, job, kept_blocks
from harness.run.judge import Judgement
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.targets.execution import Execution, Graph, Prepared
from harness.targets.frames import FrameReader
from tests.running import ROUND, Ended, harness, lines_of

QUERY = "Round@22:sweep=sizes;X=float32"
NEVER = -1


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept_blocks, "cache_folder", lambda kind: tmp_path / "cache" / kind)
    monkeypatch.chdir(tmp_path)
    judge_anew_at(NEVER, monkeypatch)
    return tmp_path / "cache" / "blocks"


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the cases that are judged."""
    found: list[str] = []
    real = job.judge

    def judge(prepared: Prepared, graph: Graph, execution: Execution, provider: str) -> Judgement:
        found.append(prepared.case.id)
        return real(prepared, graph, execution, provider)

    monkeypatch.setattr(job, "judge", judge)
    return found


def judge_anew_at(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_blocks.random, "randrange", lambda _: number)


def run(folder: str, *arguments: str | Path, query: str = QUERY) -> Ended:
    return harness("run", "-t", "cpu", "-j", "1", "-k", query, "-o", folder, *arguments)


def results(folder: str) -> list[dict[str, Any]]:
    found = [{**line, "seconds": 0} for line in lines_of(Path(folder)) if "case" in line]
    return sorted(found, key=lambda line: line["case"])


def change(cache: Path, how: Callable[[list[Any]], object]) -> None:
    """Change what the files of blocks hold, so that they are whole afterwards."""
    for path in cache.iterdir():
        groups = kept_blocks.read(path)
        assert groups
        how(groups)
        kept_blocks.kept.put(path, kept_blocks.zlib.compress(msgspec.msgpack.encode(groups), 1))


def test_a_second_run_judges_nothing_and_says_the_same(judged: list[str]) -> None:
    assert run("first").code == 0
    assert len(judged) == len(set(judged)) > 10
    judged.clear()
    assert run("second").code == 0
    assert (judged, results("second")) == ([], results("first"))


@pytest.mark.parametrize(
    "query",
    [
        "BatchNormalization",  # cases that end the worker
        "GatherND",  # inputs that are too long to be kept, cases that its own API alone expresses, known deviations
        "RandomUniform",  # other outputs each time
        "DoubleQdq",  # optimised graphs, culprits
        "Cast@19:sweep=*",  # element types that NumPy lacks, strings
        "Gemm@13:sweep=*",
    ],
)
def test_results_are_those_of_a_run_that_keeps_nothing(query: str, judged: list[str]) -> None:
    run("anew", "--no-cache", query=query)
    every = len(judged)
    run("first", query=query)
    judged.clear()
    run("second", query=query)
    assert len(judged) < every / 2
    # what differs from run to run: memory, random numbers, and sums whose order an address decides
    without = ("output", "memory", "diff", "repeats", "accuracy")

    def plain(folder: str) -> list[dict[str, Any]]:
        return [{key: line[key] for key in line if key not in without} for line in results(folder)]

    assert plain("anew") == plain("first") == plain("second")


def test_another_seed_spec_entry_or_release_of_the_code_judges_again(
    judged: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run("first")
    every = sorted(judged)
    judged.clear()
    run("seed", "--seed", "1")
    assert sorted(judged) == every
    judged.clear()
    (tmp_path / "Round.yaml").write_bytes(ROUND.read_bytes() + b"\n# another file\n")
    run("own", tmp_path / "Round.yaml")
    assert sorted(judged) == every
    judged.clear()
    run("own again", tmp_path / "Round.yaml")
    assert not judged, "specs of one's own are kept too"
    entries = tmp_path / "entries.yaml"
    entries.write_text(
        "- match: [Round@22]\n  expect: unsupported\n  reason: none is known\n  when: {provider: CPUExecutionProvider}\n"
        "  sometimes: true\n  link: https://github.com/microsoft/onnxruntime/issues/1\n"
    )
    ended = run("entry", "--expectations", entries)
    assert sorted(judged) == every, ended.err
    judged.clear()
    real = kept_blocks.digests.code
    monkeypatch.setattr(
        kept_blocks.digests, "code", lambda *rooms: real(*rooms) + (b"x" if "run" in rooms else b"")
    )
    run("code")
    assert sorted(judged) == every


def test_other_outputs_are_judged(judged: list[str], cache: Path) -> None:
    """What the worker answers has another digest than what is kept."""
    run("first")
    judged.clear()
    changed: list[str] = []

    def differ(groups: list[Any]) -> None:
        for group in groups:
            for case in group.cases:
                if case.result is not None and "float32[9]" in case.result.case:
                    case.digest = "0" * 32
                    changed.append(case.result.case)

    change(cache, differ)
    assert run("second").code == 0
    assert sorted(judged) == sorted(changed) != []
    assert results("second") == results("first")


def test_a_part_is_judged_anew_and_what_is_wrong_is_found(
    judged: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("first", query="Round")
    judged.clear()
    run("second", query="Round")
    total, always = len(results("second")), len(judged)
    judged.clear()
    judge_anew_at(7, monkeypatch)
    assert run("third", query="Round").code == 0
    assert total // kept_blocks._ANEW <= len(judged) - always < total // 20, (
        "those that fail with one take part"
    )
    monkeypatch.setattr(kept_blocks, "_ANEW", 1)
    judge_anew_at(0, monkeypatch)
    judged.clear()
    assert run("every", query="Round").code == 0
    assert len(judged) > total / 2

    def other_result(groups: list[Any]) -> None:
        for group in groups:
            for case in group.cases:
                if case.result is not None:
                    case.result = msgspec.structs.replace(case.result, empty=True)

    change(cache, other_result)
    ended = run("fourth", query="Round")
    assert ended.code == HarnessFault.exit_code
    assert f"what is kept of this case is of another: delete {cache}" in ended.err


def test_inputs_of_another_case_are_found(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("first")
    monkeypatch.setattr(kept_blocks, "_ANEW", 1)
    judge_anew_at(0, monkeypatch)

    def other_inputs(groups: list[Any]) -> None:
        for group in groups:
            for case in group.cases:
                if case.sent is not None:
                    payload = case.sent.payload[::-1]
                    case.sent = msgspec.structs.replace(case.sent, payload=payload)

    change(cache, other_inputs)
    ended = run("second")
    assert ended.code == HarnessFault.exit_code
    assert "what is kept of this case is of another" in ended.err


@pytest.mark.parametrize("how", ["cut", "a folder", "no groups"])
def test_a_damaged_file_costs_the_oracle_and_nothing_else(how: str, judged: list[str], cache: Path) -> None:
    run("first")
    judged.clear()
    for path in list(cache.iterdir()):
        if how == "cut":
            path.write_bytes(path.read_bytes()[:500])
        elif how == "a folder":
            path.unlink()
            path.mkdir()
        else:
            kept_blocks.kept.put(path, b"none")
    assert run("second").code == 0
    assert judged
    assert results("second") == results("first")
    judged.clear()
    run("third")
    assert (judged == []) is (how != "a folder"), "what is damaged is made anew"


def test_a_folder_that_cannot_be_written_costs_nothing_else(judged: list[str], cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("no folder")
    assert run("first").code == run("second").code == 0
    assert len(judged) == 2 * len(set(judged))


def test_room_is_made_by_what_was_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("first")
    (old,) = cache.iterdir()
    monkeypatch.setattr(kept_blocks, "_SPACE", old.stat().st_size * 3 // 2)
    os.utime(old, (1, 1))
    run("seed", "--seed", "1")
    (new,) = cache.iterdir()
    assert new != old
    monkeypatch.setattr(kept_blocks, "_SPACE", 0)
    run("none")
    assert not list(cache.iterdir())


def test_what_runs_again_over_patterns_is_told_in_full(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mismatch whose answer differs from the kept one is examined as any other: its later runs expect nothing."""
    monkeypatch.setattr(kept_blocks, "_LONGEST", 0)
    monkeypatch.setattr(kept_blocks, "_follows", lambda _result, execution: execution.digest != "")
    monkeypatch.setattr(held_back.PatternRuns, "hold", lambda *_: False)
    run("first", query="GatherND")
    monkeypatch.undo()
    monkeypatch.setattr(kept_blocks, "cache_folder", lambda kind: cache.parent / kind)
    monkeypatch.chdir(cache.parents[1])
    judge_anew_at(NEVER, monkeypatch)
    examined: list[str] = []
    expected: list[str] = []
    real = FrameReader.answers

    def answers(self: Any, kind: str, body: memoryview, cases: Any, done: int) -> Any:
        prepared, group = cases[done]
        if group.graph.patterns is not None:
            (examined if prepared.kept is None else expected).append(prepared.case.id)
        return real(self, kind, body, cases, done)

    def differ(groups: list[Any]) -> None:
        for group in groups:
            for case in group.cases:
                if case.digest:
                    case.digest = "0" * 32

    monkeypatch.setattr(FrameReader, "answers", answers)
    change(cache, differ)
    run("second", query="GatherND")
    assert examined
    assert not expected


def test_nothing_is_kept_of_the_fake_target_nor_beside_a_baseline(cache: Path) -> None:
    run("first")
    shutil.rmtree(cache)
    assert harness("run", "-t", "fake", "-k", QUERY, "-o", "fake").code == 0
    assert run("against", "--baseline", "first").code == 0
    assert run("no cache", "--no-cache").code == 0
    assert not cache.exists()


def test_elements_in_a_file_beside_a_spec_count(judged: list[str], tmp_path: Path) -> None:
    (tmp_path / "Abs.yaml").write_text(
        "operator: Abs\nopsets: [13]\ncases:\n"
        "  - {name: stored, inputs: {X: {dtype: float32, shape: [2], file: x.bin}}}\n"
    )
    (tmp_path / "x.bin").write_bytes(b"\0\0\x80\x3f" * 2)
    ended = harness("run", "Abs.yaml", "-t", "cpu", "-j", "1", "-o", "first")
    assert (ended.code, len(judged)) == (0, 1), ended.err
    harness("run", "Abs.yaml", "-t", "cpu", "-j", "1", "-o", "second")
    assert len(judged) == 1
    (tmp_path / "x.bin").write_bytes(b"\0\0\0\x40" * 2)
    harness("run", "Abs.yaml", "-t", "cpu", "-j", "1", "-o", "third")
    assert len(judged) == 2


def test_all_cases_and_thorough_ones_are_other_blocks() -> None:
    (query,) = parse_all(["Size"])
    specs = load_specs((), (query,))
    named: dict[tuple[str, int], str] = {}
    for options in ({}, {"everything": True}, {"thorough": True}):
        plan = expand(specs, (query,), **options)
        plan.counted()
        for valid in (True, False):
            for piece in plan.pieces(Counter(), valid=valid):
                assert named.setdefault((piece.name, piece.most), piece.text()) == piece.text()


def test_a_block_of_which_most_answers_differ_is_kept_anew(judged: list[str], cache: Path) -> None:
    run("first")

    def differ(groups: list[Any]) -> None:
        for group in groups:
            for case in group.cases:
                case.digest = case.digest and "0" * 32

    change(cache, differ)
    for folder in ("second", "third"):
        judged.clear()
        run(folder)
        assert judged, "all differ, and then nothing is kept"
    judged.clear()
    run("fourth")
    assert not judged
    assert results("first") == results("fourth")


def test_a_folder_that_can_be_read_alone_is_used(
    judged: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("first")

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(kept_blocks.os, "utime", refused)
    judged.clear()
    run("second")
    assert not judged
