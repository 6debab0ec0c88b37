"""An interrupted run that is continued has exactly the results of one that was not interrupted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from harness import artifacts
from harness.lanes import crew
from tests.running import ROUND, complaint, harness, lines_of, results_of, script_of, without_time

QUERY = "Round@22:sweep=empty"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of a fake target whose answers differ: some pass, some do not."""
    folder = tmp_path_factory.mktemp("resume")
    script_of(folder, [("Round@22:X=float16[0]", "shape"), ("Round@22:X=float32", "reject"), ("Round@22:X=float64[0,3]", "misplace")])
    assert harness("run", *options(folder), "-o", folder / "whole").code == 1
    return folder


def options(folder: Path) -> list[str | Path]:
    return [ROUND, "-t", f"fake,script={folder / 'script.yaml'}", "-k", QUERY, "-j", "2"]


@pytest.mark.parametrize("kept", ["header", "one line", "half a line", "all but the end", "a cut end", "everything"])
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
        ("seed", "the seed changed since"),
        ("spec", "the hash of the specs changed since"),
        ("target", "the targets changed since"),
    ],
)
def test_a_run_of_something_else_is_not_continued(whole: Path, tmp_path: Path, change: str, complaint_: str) -> None:
    shutil.copytree(whole / "whole", tmp_path / "out")
    before = (tmp_path / "out" / "run.jsonl").read_bytes()
    arguments = options(whole)
    if change == "seed":
        arguments += ["--seed", "1"]
    elif change == "target":
        arguments[2] = "fake"
    else:
        edited = tmp_path / "Round.yaml"
        edited.write_text(ROUND.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
        arguments[0] = edited
    ended = harness("run", *arguments, "-o", tmp_path / "out", "--resume")
    wanted = f"{tmp_path}/out/run.jsonl:1: cannot be continued: {complaint_}; start a new run without --resume"
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


def test_a_run_without_its_target_is_not_continued(tmp_path: Path) -> None:
    script = script_of(tmp_path, [], startup="exit")
    arguments = [ROUND, "-t", f"fake,script={script}", "-k", QUERY, "-o", tmp_path / "out"]
    assert harness("run", *arguments).code == 3
    script_of(tmp_path, [])
    ended = harness("run", *arguments, "--resume")
    assert ended.code == 2
    assert "cannot be continued" in complaint(ended)


@pytest.mark.parametrize("limit", ["LIMIT_BYTES", "_LIMIT_CASES"])
@pytest.mark.parametrize("number", [1, 2])
def test_what_is_kept_already_counts_towards_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, number: int) -> None:
    monkeypatch.setattr(crew, "_CASES", 1 if number == 2 else 1000)
    script = script_of(tmp_path, [("Round@22", "bit")])
    arguments = [ROUND, "-t", f"fake,script={script}", "-k", "Round@22:sweep=sizes;X=float32", "-j", str(number), "-o", tmp_path / "out"]
    monkeypatch.setattr(artifacts, "_LIMIT_CASES", 3)
    assert harness("run", *arguments).code == 1
    path, folder = tmp_path / "out" / "run.jsonl", tmp_path / "out" / "artifacts"
    kept = {each: each.stat().st_mtime_ns for each in folder.iterdir()}
    assert len(kept) == 3
    if limit == "LIMIT_BYTES":
        monkeypatch.setattr(artifacts, "_LIMIT_CASES", 2000)
        monkeypatch.setattr(artifacts, "LIMIT_BYTES", sum(array.nbytes for each in kept for array in np.load(each).values()))
    header, *results = (json.loads(line) for line in path.read_bytes().splitlines()[:-1])
    done = [result for result in results if folder / artifacts.artifact_name(result["case"], result["target"]) in kept]
    assert len(results) > len(done) == 3
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (header, *done)), encoding="utf-8")
    assert harness("run", *arguments, "--resume").code == 1
    assert len(results_of(path)) == len(results)
    assert {each: each.stat().st_mtime_ns for each in folder.iterdir()} == kept
