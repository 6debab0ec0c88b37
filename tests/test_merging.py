"""Shards: together they are the whole run, and nothing else can be merged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import ROUND, complaint, harness, lines_of, results_of, script_of, without_time

QUERY = "Round@22:sweep=empty"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    script_of(folder, [("Round@22:X=float16[0]", "shape"), ("Round@22:X=float32", "reject")])
    for name, shard in (("whole", None), ("one", "1/2"), ("two", "2/2")):
        assert harness("run", *options(folder), *(["--shard", shard] if shard else []), "-o", folder / name).code == 1
    return folder


def options(folder: Path) -> list[str | Path]:
    return [ROUND, "-t", f"fake,script={folder / 'script.yaml'}", "-k", QUERY]


def test_shards_are_disjoint_and_both_hold_something(runs: Path) -> None:
    one, two, whole = (results_of(runs / name) for name in ("one", "two", "whole"))
    assert one.keys() | two.keys() == whole.keys()
    assert not one.keys() & two.keys()
    assert min(len(one), len(two)) > 5


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_merged_shards_are_the_whole_run(runs: Path, tmp_path: Path, order: tuple[str, str]) -> None:
    ended = harness("merge", *(runs / name for name in order), "-o", tmp_path / "merged")
    assert (ended.code, ended.err) == (1, "")
    assert without_time(results_of(tmp_path / "merged")) == without_time(results_of(runs / "whole"))
    ends = [lines_of(folder)[-1] for folder in (tmp_path / "merged", runs / "whole")]
    for key in ("selected", "run", "outcomes", "verdicts", "problems"):
        assert ends[0][key] == ends[1][key], key
    assert (tmp_path / "merged" / "report.html").exists()


def test_overlapping_runs(runs: Path, tmp_path: Path) -> None:
    ended = harness("merge", runs / "one", runs / "whole", "-o", tmp_path / "merged")
    assert ended.code == 2
    assert complaint(ended).startswith(f"{runs}/whole/run.jsonl: Round@22:")
    assert complaint(ended).endswith("is in an earlier run too: shards do not overlap")


def test_a_run_with_itself(runs: Path, tmp_path: Path) -> None:
    assert harness("merge", runs / "one", runs / "one", "-o", tmp_path / "merged").code == 2


def test_an_incomplete_shard(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl").write_bytes((runs / "two" / "run.jsonl").read_bytes()[:-5])
    ended = harness("merge", runs / "one", tmp_path / "cut.jsonl", "-o", tmp_path / "merged")
    wanted = f"{tmp_path}/cut.jsonl: the run is not complete: continue it with --resume before merging"
    assert (ended.code, complaint(ended)) == (2, wanted)


def test_a_merge_that_fails_leaves_nothing(runs: Path, tmp_path: Path) -> None:
    assert harness("merge", runs / "one", runs / "whole", "-o", tmp_path / "merged").code == 2
    assert list((tmp_path / "merged").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of file sizes")
def test_a_merge_without_space(runs: Path, tmp_path: Path) -> None:
    """A limit of this process's files stands for a full disk."""
    code = (
        "import resource, signal, sys; from harness import cli; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); cli.main()"
    )
    command = [sys.executable, "-c", code, "merge", str(runs / "one"), str(runs / "two"), "-o", str(tmp_path / "merged")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    wanted = f"harness: {tmp_path}/merged/.run.jsonl.part: File too large; nothing was merged: free some space, then merge again\n"
    assert (ended.returncode, ended.stderr) == (5, wanted)
    assert list((tmp_path / "merged").iterdir()) == []


def test_another_seed(runs: Path, tmp_path: Path) -> None:
    text = (runs / "two" / "run.jsonl").read_text(encoding="utf-8").replace('"seed":0', '"seed":1', 1)
    (tmp_path / "other.jsonl").write_text(text, encoding="utf-8")
    ended = harness("merge", runs / "one", tmp_path / "other.jsonl", "-o", tmp_path / "merged")
    wanted = f"{tmp_path}/other.jsonl:1: cannot be merged with the first run: the seed differs"
    assert (ended.code, complaint(ended)) == (2, wanted)


def test_into_one_of_the_runs(runs: Path) -> None:
    before = (runs / "one" / "run.jsonl").read_bytes()
    ended = harness("merge", runs / "one", runs / "two", "-o", runs / "one")
    wanted = f"{runs}/one/run.jsonl: is one of the runs to merge; choose another folder with -o"
    assert (ended.code, complaint(ended)) == (2, wanted)
    assert (runs / "one" / "run.jsonl").read_bytes() == before


def test_an_entry_that_no_shard_matches_is_found_when_they_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard cannot know it: the case may be in another. Of a part of the cases nobody knows, nor with other entries."""
    entries = tmp_path / "specs/expectations/fake.yaml"
    entries.parent.mkdir(parents=True)
    entry = "- {match: %s, when: {target: fake}, expect: mismatch, reason: none, link: 'https://example.org/'}\n"
    entries.write_text(entry % '"Round@11:case=never"' + entry % '"Round@22:sweep=empty"', encoding="utf-8")
    monkeypatch.setattr("harness.expectations.default_folder", lambda: tmp_path / "specs")
    runs = {"one": ("1/2", []), "two": ("2/2", []), "part1": ("1/2", ["-k", QUERY]), "part2": ("2/2", ["-k", QUERY])}
    for name, (shard, query) in runs.items():
        harness("run", ROUND, "-t", "fake", "--shard", shard, *query, "-o", tmp_path / name)

    def problems(*names: str) -> list[str]:
        merged = tmp_path / "+".join(names)
        harness("merge", *(tmp_path / name for name in names), "-o", merged)
        found: list[str] = lines_of(merged)[-1]["problems"]
        return found

    unmatched, stale = problems("two", "one")
    assert "matches no case on fake" in unmatched
    assert "cases conform on fake" in stale
    assert problems("one") == []
    assert problems("part1", "part2") == []
    entries.write_text(entry % '"Round@11:case=another"', encoding="utf-8")
    assert problems("one", "two") == []
