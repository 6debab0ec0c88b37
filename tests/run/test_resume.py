"""An interrupted run that is continued has exactly the results of one that was not interrupted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from harness.run import artifacts
from harness.run.processes import coordinator
from tests.running import ROUND, complaint, harness, lines_of, raising, results_of, script_of, without_time

QUERY = "Round@22:sweep=empty"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of a fake target whose answers differ: some pass, some do not."""
    folder = tmp_path_factory.mktemp("resume")
    script_of(
        folder,
        [
            ("Round@22:X=float16[0]", "shape"),
            ("Round@22:X=float32", "reject"),
            ("Round@22:X=float64[0,3]", "misplace"),
        ],
    )
    assert harness("run", *options(folder), "-o", folder / "whole").code == 1
    return folder


def options(folder: Path) -> list[str | Path]:
    return [ROUND, "-t", f"fake,script={folder / 'script.yaml'}", "-k", QUERY, "-j", "2"]


@pytest.mark.parametrize(
    "kept", ["header", "one line", "half a line", "all but the end", "a cut end", "everything"]
)
def test_after_a_cut(whole: Path, tmp_path: Path, kept: str) -> None:
    data = (whole / "whole" / "run.jsonl").read_bytes()
    lines = data.splitlines(keepends=True)
    assert len(lines) == 34
    length = {
        "header": len(lines[0]),
        "one line": sum(map(len, lines[:2])),
        "half a line": sum(map(len, lines[:9])) + len(lines[9]) // 2,
        "all but the end": sum(map(len, lines[:-1])),
        "a cut end": len(data) - 5,
        "everything": len(data),
    }[kept]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.jsonl").write_bytes(data[:length])
    ended = harness("run", *options(whole), "-o", tmp_path / "out", "--resume")
    assert ended.code == 1
    assert without_time(results_of(tmp_path / "out")) == without_time(results_of(whole / "whole"))
    assert lines_of(tmp_path / "out")[0] == lines_of(whole / "whole")[0]
    ends = [lines_of(folder)[-1] for folder in (tmp_path / "out", whole / "whole")]
    for end in ends:
        del end["seconds"]
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("change", "complaint_"),
    [
        ("seed", "its --seed is 0, not 1; leave --seed out"),
        ("spec", "the hash of the specs changed since"),
        ("target", "its -t is fake,script={script}, not fake; leave -t out"),
        ("query", "its -k is Round@22:sweep=empty, not Round@22; leave -k out"),
        ("another query", "its -k is Round@22:sweep=empty, not Round@11 Round@22:sweep=empty; leave -k out"),
        ("shard", "its --shard is not given, not 1/2; leave --shard out"),
        ("select", "its --select is default, not pairwise; leave --select out"),
        ("timeout", "its --timeout is 30, not 31; leave --timeout out"),
        ("reruns", "its --rerun-unexpected is 0, not 2; leave --rerun-unexpected out"),
    ],
)
def test_a_run_of_something_else_is_not_continued(
    whole: Path, tmp_path: Path, change: str, complaint_: str
) -> None:
    shutil.copytree(whole / "whole", tmp_path / "out")
    before = (tmp_path / "out" / "run.jsonl").read_bytes()
    arguments = options(whole)
    more: dict[str, list[str | Path]] = {
        "seed": ["--seed", "1"],
        "another query": ["-k", "Round@11"],
        "shard": ["--shard", "1/2"],
        "select": ["--select", "pairwise"],
        "timeout": ["--timeout", "31"],
        "reruns": ["--rerun-unexpected", "2"],
    }
    arguments += more.get(change, [])
    if change in more:
        pass
    elif change == "target":
        arguments[2] = "fake"
    elif change == "query":
        arguments[4] = "Round@22"
    else:
        edited = tmp_path / "Round.yaml"
        edited.write_text(ROUND.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
        arguments[0] = edited
    ended = harness("run", *arguments, "-o", tmp_path / "out", "--resume")
    said = complaint_.format(script=whole / "script.yaml")
    remedy = (
        ", or start a new run without --resume" if "leave" in said else "; start a new run without --resume"
    )
    wanted = f"{tmp_path}/out/run.jsonl:1: cannot be continued: {said}{remedy}"
    assert (ended.code, complaint(ended)) == (2, wanted)
    assert (tmp_path / "out" / "run.jsonl").read_bytes() == before


def test_a_damaged_run_is_not_continued(whole: Path, tmp_path: Path) -> None:
    lines = (whole / "whole" / "run.jsonl").read_bytes().splitlines(keepends=True)
    lines[4] = b"damage\n"
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.jsonl").write_bytes(b"".join(lines))
    ended = harness("run", *options(whole), "-o", tmp_path / "out", "--resume")
    assert ended.code == 2
    assert complaint(ended).startswith(f"{tmp_path}/out/run.jsonl:5: damaged run file")
    assert (tmp_path / "out" / "run.jsonl").read_bytes() == b"".join(lines)


def test_the_run_says_what_is_continued(whole: Path, tmp_path: Path) -> None:
    """Specs, queries and shard are the run's; its target names a script, and so is repeated."""
    sharded = tmp_path / "shard"
    assert harness("run", *options(whole), "--shard", "1/2", "-o", sharded).code == 1
    every = results_of(sharded).keys()
    lines = (sharded / "run.jsonl").read_bytes().splitlines(keepends=True)
    (sharded / "run.jsonl").write_bytes(b"".join(lines[:5]))
    alone = harness("run", "--resume", "-o", sharded)
    target = options(whole)[2]
    wanted = f"{sharded}/run.jsonl:1: {target} names what it starts: repeat the targets on the command line, -t {target}"
    assert (alone.code, complaint(alone)) == (2, wanted)
    assert harness("run", "--resume", "-t", target, "-o", sharded).code == 1
    assert (sharded / "run.jsonl").read_bytes().startswith(b"".join(lines[:5]))
    assert len(lines_of(sharded)) == len(lines)
    assert results_of(sharded).keys() == every
    assert lines_of(sharded)[0]["selection"] == {
        "specs": [str(ROUND)],
        "queries": [QUERY],
        "shard": {"index": 1, "of": 2},
        "timeout": 30.0,
    }


def test_a_complete_run_is_not_run_again(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "whole", tmp_path / "out")
    before = (tmp_path / "out" / "run.jsonl").read_bytes()
    ended = harness("run", "--resume", "-t", options(whole)[2], "-o", tmp_path / "out")
    assert (ended.code, complaint(ended)) == (
        1,
        f"{tmp_path}/out/run.jsonl: already complete: nothing was run",
    )
    assert "13 unexpected in 32 results: 2 wrong, 11 not supported" in ended.out
    assert (tmp_path / "out" / "run.jsonl").read_bytes() == before


def test_a_run_from_before_selections_were_recorded(whole: Path, tmp_path: Path) -> None:
    """Its command line is repeated, and nothing holds the two against each other."""
    lines = (whole / "whole" / "run.jsonl").read_bytes().splitlines(keepends=True)
    header = json.loads(lines[0])
    del header["selection"]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.jsonl").write_bytes(json.dumps(header).encode() + b"\n" + b"".join(lines[1:9]))
    assert harness("run", *options(whole), "-o", tmp_path / "out", "--resume").code == 1
    assert without_time(results_of(tmp_path / "out")) == without_time(results_of(whole / "whole"))


@pytest.mark.slow
def test_a_target_that_was_out_of_reach_is_run_when_it_is_back(tmp_path: Path) -> None:
    script = script_of(tmp_path, [], startup="exit")
    arguments = [ROUND, "-t", f"fake,script={script}", "-t", "fake", "-k", QUERY]
    assert harness("run", *arguments, "-o", tmp_path / "out").code == 3
    before = results_of(tmp_path / "out", "fake")
    assert "unavailable" in lines_of(tmp_path / "out")[0]["targets"][f"fake,script={script}"]
    again = harness("run", *arguments, "-o", tmp_path / "out", "--resume")
    assert again.code == 3
    assert results_of(tmp_path / "out", "fake") == before
    script_of(tmp_path, [])
    assert harness("run", *arguments, "-o", tmp_path / "out", "--resume").code == 0
    assert results_of(tmp_path / "out", "fake") == before
    assert "unavailable" not in lines_of(tmp_path / "out")[0]["targets"][f"fake,script={script}"]
    assert {
        result["outcome"] for result in results_of(tmp_path / "out", f"fake,script={script}").values()
    } == {"pass"}
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == [
        "report.html",
        "report.md",
        "run.jsonl",
    ]


@pytest.mark.slow
def test_a_target_that_is_out_of_reach_now(whole: Path, tmp_path: Path) -> None:
    script = script_of(tmp_path, [])
    arguments = [ROUND, "-t", f"fake,script={script}", "-k", QUERY, "-o", tmp_path / "out"]
    assert harness("run", *arguments).code == 0
    lines = (tmp_path / "out" / "run.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "out" / "run.jsonl").write_bytes(b"".join(lines[:5]))
    script_of(tmp_path, [], startup="exit")
    ended = harness("run", *arguments, "--resume")
    said = f"{tmp_path}/out/run.jsonl:1: cannot be continued: fake,script={script} was there and is not now: the worker"
    assert (ended.code, complaint(ended)[: len(said)]) == (3, said)
    assert (tmp_path / "out" / "run.jsonl").read_bytes() == b"".join(lines[:5])


@pytest.mark.slow
def test_the_latest_run_is_the_one_begun_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while it runs, and after it broke off: what is continued by default is never an older one."""
    monkeypatch.chdir(tmp_path)
    assert harness("run", ROUND, "-t", "fake", "-k", QUERY).code == 0
    first = (tmp_path / "reports" / "latest").resolve()

    with monkeypatch.context() as broken:
        broken.setattr("harness.run.job.judge", raising(KeyboardInterrupt))
        ended = harness("run", ROUND, "-t", "fake", "-k", "Round@22:sweep=sizes;X=float16")
    latest = (tmp_path / "reports" / "latest").resolve()
    assert latest != first
    assert lines_of(latest)[0]["run_id"] == latest.name
    advice = f"interrupted; what was finished is kept: continue with: harness run --resume -o reports/{latest.name}"
    assert (ended.code, complaint(ended)) == (130, advice)
    assert harness("run", "--resume").code == 0
    assert len(results_of(latest)) == 63
    assert (tmp_path / "reports" / "latest").resolve() == latest


@pytest.mark.parametrize("kept", ["complete", "unfinished", "header", "empty"])
def test_another_run_is_replaced_only_by_force(whole: Path, tmp_path: Path, kept: str) -> None:
    shutil.copytree(whole / "whole", tmp_path / "out")
    path = tmp_path / "out" / "run.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: {"complete": None, "unfinished": 5, "header": 1, "empty": 0}[kept]]))
    before = path.read_bytes()
    ended = harness("run", ROUND, "-t", "fake", "-k", QUERY, "-o", tmp_path / "out")
    if kept in ("header", "empty"):
        assert ended.code == 0
    else:
        resume = f"harness run --resume -t {options(whole)[2]} -o {tmp_path}/out"
        wanted = {
            "complete": "holds a complete run: choose another folder with -o, or replace the run with --force",
            "unfinished": f"holds an unfinished run: continue it with `{resume}`, or replace it with --force",
        }
        assert (ended.code, complaint(ended)) == (2, f"{path}: {wanted[kept]}")
        assert path.read_bytes() == before
        assert list((tmp_path / "out" / "artifacts").iterdir())
        assert harness("run", ROUND, "-t", "fake", "-k", QUERY, "-o", tmp_path / "out", "--force").code == 0
    assert {result["outcome"] for result in results_of(path).values()} == {"pass"}
    assert not list((tmp_path / "out" / "artifacts").iterdir()), "tensors of the run that was replaced"


def test_resume_and_force_contradict_each_other(tmp_path: Path) -> None:
    ended = harness("run", "--resume", "--force", "-o", tmp_path)
    assert (ended.code, complaint(ended)) == (
        2,
        "--resume goes on with a run and --force replaces it: name one of the two",
    )


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["LIMIT_BYTES", "_LIMIT_CASES"])
@pytest.mark.parametrize("number", [1, 2])
def test_what_is_kept_already_counts_towards_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, number: int
) -> None:
    monkeypatch.setattr(coordinator, "CASES", 1 if number == 2 else 1000)
    script = script_of(tmp_path, [("Round@22", "bit")])
    asked = ("-t", f"fake,script={script}", "-k", "Round@22:sweep=sizes;X=float32", "-j", str(number))
    arguments = [ROUND, *asked, "-o", tmp_path / "out"]
    monkeypatch.setattr(artifacts, "_LIMIT_CASES", 3)
    assert harness("run", *arguments).code == 1
    path, folder = tmp_path / "out" / "run.jsonl", tmp_path / "out" / "artifacts"
    kept = {each: each.stat().st_mtime_ns for each in folder.iterdir()}
    assert len(kept) == 3
    if limit == "LIMIT_BYTES":
        monkeypatch.setattr(artifacts, "_LIMIT_CASES", 2000)
        monkeypatch.setattr(
            artifacts, "LIMIT_BYTES", sum(array.nbytes for each in kept for array in np.load(each).values())
        )
    header, *results = (json.loads(line) for line in path.read_bytes().splitlines()[:-1])
    done = [
        result
        for result in results
        if folder / artifacts.artifact_name(result["case"], result["target"]) in kept
    ]
    assert len(results) > len(done) == 3
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (header, *done)), encoding="utf-8")
    assert harness("run", *arguments, "--resume").code == 1
    assert len(results_of(path)) == len(results)
    assert {each: each.stat().st_mtime_ns for each in folder.iterdir()} == kept
