"""A case that is answered as before is neither made nor judged again; all else is, and what is kept changes no result."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import onnxruntime
import pytest

from harness.model.errors import HarnessFault, TargetUnavailable
from harness.model.query import parse_all
from harness.run import artifacts, block_files, held_back, job, kept_blocks
from harness.run.judge import Judgement
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.targets.execution import Execution, Graph, Prepared
from harness.targets.frames import FrameReader
from harness.targets.pool import WorkerPool
from harness.worker.worker import file_of_library
from tests.running import ROUND, SPECS, Ended, harness, lines_of, raising

QUERY = "Round@22:sweep=sizes;X=float32"
NEVER = -1


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (block_files, kept_blocks):
        monkeypatch.setattr(module, "cache_folder", lambda kind: tmp_path / "cache" / kind)
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


def without_chance(folder: str, query: str = "") -> list[dict[str, Any]]:
    """Run a query, where one is given, and return the results without what differs from run to run: memory, random numbers,
    and sums whose order an address decides."""
    if query:
        run(folder, query=query)
    without = ("output", "memory", "diff", "repeats", "accuracy")
    return [
        {"examined": "memory" in line} | {key: line[key] for key in line if key not in without}
        for line in results(folder)
    ]


def change(cache: Path, how: Callable[[list[Any]], object]) -> None:
    """Change what the files of blocks hold, so that they are whole afterwards."""
    for path in cache.iterdir():
        groups = block_files.read(path)
        assert groups
        how(groups)
        block_files.kept.put(path, block_files.zlib.compress(msgspec.msgpack.encode(groups), 1))


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
        "GatherND@13:case=*",  # inputs that are too long to be kept, cases that its own API alone expresses, known deviations
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
    assert without_chance("anew") == without_chance("first") == without_chance("second")


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
            block_files.kept.put(path, b"none")
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
    monkeypatch.setattr(block_files, "_SPACE", old.stat().st_size * 3 // 2)
    os.utime(old, (1, 1))
    run("seed", "--seed", "1")
    (new,) = cache.iterdir()
    assert new != old
    monkeypatch.setattr(block_files, "_SPACE", 0)
    run("none")
    assert not list(cache.iterdir())


def test_what_runs_again_over_patterns_is_told_in_full(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mismatch whose answer differs from the kept one is examined as any other: its later runs expect nothing."""
    run("first", query="Shrink")
    examined: list[str] = []
    expected: list[str] = []
    known: list[str] = []
    real = FrameReader.answers

    def answers(self: Any, kind: str, body: memoryview, cases: Any, done: int) -> Any:
        prepared, group = cases[done]
        if group.graph.patterns is not None:
            (examined if prepared.kept is None else expected).append(prepared.case.id)
        return real(self, kind, body, cases, done)

    def differ(groups: list[Any]) -> None:
        for group in groups:
            for case in group.cases:
                if case.digest and case.result.outcome == "mismatch":
                    case.digest = "0" * 32
                    known.append(case.result.case)

    monkeypatch.setattr(FrameReader, "answers", answers)
    change(cache, differ)
    run("second", query="Shrink")
    assert known
    assert {each for each in known if "in_place" not in each} <= set(examined)
    assert not expected
    assert results("second") == results("first")


def test_known_deviations_are_judged_as_long_as_artifacts_have_room(
    judged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but their tensors is made anew: they run once, over no pattern."""
    run("first", query="Shrink")
    known = {line["case"] for line in results("first") if line["outcome"] == "mismatch"}
    judged.clear()
    examined: list[str] = []
    real = held_back.PatternRuns.hold

    def hold(self: Any, prepared: Prepared, *arguments: Any) -> bool:
        examined.append(prepared.case.id)
        return real(self, prepared, *arguments)

    monkeypatch.setattr(held_back.PatternRuns, "hold", hold)
    run("second", query="Shrink")
    assert len(known & set(judged)) == len(known) > 10
    assert not known & set(examined)
    assert results("second") == results("first")
    files = {path.name for path in Path("first/artifacts").iterdir()}
    assert files == {path.name for path in Path("second/artifacts").iterdir()}
    monkeypatch.setattr(artifacts, "_LIMIT_EXPECTED", 0)
    judged.clear()
    run("third", query="Shrink")
    assert not known & set(judged)
    assert results("third") == results("first")


def test_kept_results_count_for_their_entries(
    judged: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An entry that matched nothing, or nothing that does not conform, would be a problem of the second run."""
    monkeypatch.setattr(artifacts, "_LIMIT_EXPECTED", 0)
    entries = tmp_path / "entries.yaml"
    said = (
        "expect: mismatch, gives: shrunk_in_float32, title: float32, reason: its own, "
        "link: https://github.com/microsoft/onnxruntime/issues/1, when: {provider: CPUExecutionProvider}"
    )
    entries.write_text(
        f'- {{match: "Shrink:case=kind_input_greatest", {said}}}\n- {{match: Shrink, sometimes: true, {said}}}\n'
    )
    for folder in ("first", "second"):
        told = ["-t", "cpu", "-j", "1", "-o", folder, "--expectations", entries]
        ended = harness("run", SPECS / "Shrink.yaml", *told)
        assert ended.code == 0, ended.out
    assert len(judged) == len(set(judged)), "the second run judged none of them"


@pytest.mark.parametrize("query", ["Bernoulli:sweep=types", "DoubleQdq", "DynamicQuantizeMatMul", "Shrink"])
def test_what_was_not_examined_is_not_kept(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later runs of a large part are limited: of what goes without, the next run says what it says without a cache."""
    query = f"*{query}"
    run("anew", "--no-cache", query=query)
    monkeypatch.setattr(held_back, "_MOST_EXAMINED", 3)
    monkeypatch.setattr(held_back, "_MOST_SEARCHED", 3)
    run("first", query=query)
    monkeypatch.setattr(held_back, "_MOST_EXAMINED", 5000)
    monkeypatch.setattr(held_back, "_MOST_SEARCHED", 2000)
    assert without_chance("second", query) == without_chance("third", query) == without_chance("anew")
    monkeypatch.setattr(kept_blocks, "_ANEW", 1)
    judge_anew_at(0, monkeypatch)
    assert run("all", query=query).code == 0, "what is kept is what is judged"


@pytest.mark.parametrize("where", ["culprits", "over patterns", "before"])
def test_what_a_lost_target_left_unexamined_is_not_kept(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "DoubleQdq" if where == "culprits" else "Shrink"
    run("anew", "--no-cache", query=query)

    def lost(*_: object) -> Any:
        raise TargetUnavailable("gone")

    real = WorkerPool.run

    def answers(self: WorkerPool, groups: Any, *, keep: bool = False) -> Any:
        yield from real(self, groups, keep=keep)
        lost()

    with monkeypatch.context() as patch:
        if where == "culprits":
            patch.setattr(held_back, "culprits", lost)
        elif where == "over patterns":
            patch.setattr(held_back, "_run_over_patterns", lost)
        else:
            patch.setattr(WorkerPool, "run", answers)
        assert run("first", query=query).code == TargetUnavailable.exit_code
    held = [line for line in results("anew") if "memory" in line or "culprit" in line]
    assert len(held) > 10
    found = {line["case"] for line in results("first")}
    assert {line["case"] for line in held if line["validity"] == "valid"} <= found, "none is lost"
    assert without_chance("second", query) == without_chance("anew")


def test_what_became_of_a_graph_is_kept_for_one_build(judged: list[str], cache: Path) -> None:
    query = "CastChain"
    run("first", query=query)
    changed = [line["case"] for line in results("first") if "transformers" in line]
    judged.clear()

    def another_build(groups: list[Any]) -> None:
        for group in groups:
            kept = group.cases[0].optimized
            group.cases[0].optimized = msgspec.structs.replace(kept, library="1 2", transformers=("None",))

    change(cache, another_build)
    run("second", query=query)
    assert not set(judged) & set(changed)
    assert results("second") == results("first")

    def other_transformers(groups: list[Any]) -> None:
        for group in groups:
            kept = group.cases[0].optimized
            group.cases[0].optimized = msgspec.structs.replace(kept, library=file_of_library(onnxruntime))

    change(cache, other_transformers)
    run("third", query=query)
    assert set(changed) <= set(judged)
    assert {tuple(line["transformers"]) for line in results("third") if line["case"] in changed} == {
        ("None",)
    }


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

    monkeypatch.setattr(block_files.os, "utime", raising(PermissionError))
    judged.clear()
    run("second")
    assert not judged
