"""Shards: together they are the whole run, and nothing else can be merged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import ROUND, SPECS, complaint, harness, lines_of, results_of, script_of, without_time

QUERY = "Round@22:sweep=empty"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    script_of(folder, [("Round@22:X=float16[0]", "shape"), ("Round@22:X=float32", "reject")])
    for name, shard in (("whole", None), ("one", "1/2"), ("two", "2/2")):
        assert (
            harness("run", *options(folder), *(["--shard", shard] if shard else []), "-o", folder / name).code
            == 1
        )
    return folder


def options(folder: Path) -> list[str | Path]:
    return [ROUND, "-t", f"fake,script={folder / 'script.yaml'}", "-k", QUERY]


@pytest.mark.slow
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


def test_a_missing_shard_is_refused(runs: Path, tmp_path: Path) -> None:
    ended = harness("merge", runs / "one", "-o", tmp_path / "merged")
    there = len(results_of(runs / "one"))
    what = f"shard 2/2 is missing, with {32 - there} of 32 cases: merge all shards, or what is there with --partial"
    assert (ended.code, complaint(ended)) == (2, f"{runs}/one/run.jsonl: {what}")
    assert list((tmp_path / "merged").iterdir()) == []


def test_a_part_of_the_shards_says_what_it_lacks(runs: Path, tmp_path: Path) -> None:
    ended = harness("merge", runs / "two", "-o", tmp_path / "merged", "--partial")
    there = results_of(runs / "two")
    assert (ended.code, ended.err) == (1, "")
    assert without_time(results_of(tmp_path / "merged")) == without_time(there)
    header, *_, end = lines_of(tmp_path / "merged")
    assert header["merged"] == {"runs": [lines_of(runs / "two")[0]["run_id"]], "missing": [1]}
    assert (end["selected"], end["run"]) == (32, len(there))
    for text in (ended.out, (tmp_path / "merged" / "report.md").read_text(encoding="utf-8")):
        assert "Merged without shard 1: what it held is not in this run." in text
        assert f"holds {len(there)} of 32 selected results" in text


def test_a_green_part_ends_with_4(tmp_path: Path) -> None:
    """As a comparison with a run that was cut off does."""
    asked = ("run", ROUND, "-t", "fake", "-k", "Round@22:sweep=empty", "--shard", "1/2")
    assert harness(*asked, "-o", tmp_path / "one").code == 0
    ended = harness("merge", tmp_path / "one", "-o", tmp_path / "merged", "--partial")
    assert ended.code == 4
    assert "run.jsonl is incomplete: Merged without shard 2" in complaint(ended)
    assert (tmp_path / "merged" / "report.html").exists()


def test_what_a_part_lacks_can_be_run(runs: Path, tmp_path: Path) -> None:
    harness("merge", runs / "two", "-o", tmp_path / "merged", "--partial")
    target = options(runs)[2]
    assert harness("run", "--resume", "-t", target, "-o", tmp_path / "merged").code == 1
    assert results_of(tmp_path / "merged").keys() == results_of(runs / "whole").keys()


@pytest.mark.slow
def test_what_several_merged_shards_lack_can_be_run(runs: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        harness("run", *options(runs), "--shard", f"{number}/3", "-o", tmp_path / str(number))
    harness("merge", tmp_path / "1", tmp_path / "2", "-o", tmp_path / "merged", "--partial")
    before = lines_of(tmp_path / "merged")[0]
    target = options(runs)[2]
    assert harness("run", "--resume", "-t", target, "-o", tmp_path / "merged").code == 1
    assert without_time(results_of(tmp_path / "merged")) == without_time(results_of(runs / "whole"))
    header = lines_of(tmp_path / "merged")[0]
    assert header["targets"] == before["targets"], "the room for tensors stays the sum of the shards'"
    assert header["merged"] == {"runs": before["merged"]["runs"]}
    assert "Merged without" not in (tmp_path / "merged" / "report.md").read_text(encoding="utf-8")
    again = harness("run", "--resume", "-t", target, "-o", tmp_path / "merged")
    assert complaint(again) == f"{tmp_path}/merged/run.jsonl: already complete: nothing was run"


@pytest.mark.slow
def test_a_shard_without_cases_is_not_missed(tmp_path: Path) -> None:
    """It ends with 4 and leaves no run: the others have all cases there are."""
    query, made = "Round@22:sweep=empty;X=float16[0]", []
    for number in range(1, 4):
        ended = harness(
            "run", ROUND, "-t", "fake", "-k", query, "--shard", f"{number}/3", "-o", tmp_path / str(number)
        )
        assert ended.code in (0, 4)
        made += [tmp_path / str(number)] if ended.code == 0 else []
    assert 1 <= len(made) < 3
    assert harness("merge", *made, "-o", tmp_path / "merged").code == 0
    assert harness("run", ROUND, "-t", "fake", "-k", query, "-o", tmp_path / "whole").code == 0
    assert results_of(tmp_path / "merged").keys() == results_of(tmp_path / "whole").keys()


@pytest.mark.slow
def test_pairwise_shards_are_the_pairwise_run(tmp_path: Path) -> None:
    arguments = [ROUND, "-t", "fake", "-k", "Round@22:sweep=rank", "--select", "pairwise"]
    for name, shard in (("whole", []), ("one", ["--shard", "1/2"]), ("two", ["--shard", "2/2"])):
        assert harness("run", *arguments, *shard, "-o", tmp_path / name).code == 0
    assert harness("merge", tmp_path / "one", tmp_path / "two", "-o", tmp_path / "merged").code == 0
    assert results_of(tmp_path / "merged").keys() == results_of(tmp_path / "whole").keys()
    assert lines_of(tmp_path / "merged")[-1]["left_out"] == lines_of(tmp_path / "whole")[-1]["left_out"]


def test_merged_runs_keep_the_tensors(runs: Path, tmp_path: Path) -> None:
    harness("merge", runs / "one", runs / "two", "-o", tmp_path / "merged")
    of = [
        {path.name: path.read_bytes() for path in (folder / "artifacts").glob("*")}
        for folder in (tmp_path / "merged", runs / "whole")
    ]
    assert of[0].keys() == of[1].keys() != set()
    limits = [
        lines_of(folder)[0]["targets"][f"fake,script={runs}/script.yaml"]["artifact_limit_bytes"]
        for folder in (tmp_path / "merged", runs / "whole")
    ]
    assert limits[0] == 2 * limits[1]


def test_a_merged_run_is_a_run_of_its_own(runs: Path, tmp_path: Path) -> None:
    harness("merge", runs / "one", runs / "two", "-o", tmp_path / "merged")
    one, two, merged = (lines_of(folder)[0] for folder in (runs / "one", runs / "two", tmp_path / "merged"))
    assert merged["merged"] == {"runs": [one["run_id"], two["run_id"]]}
    assert merged["run_id"] not in (one["run_id"], two["run_id"])
    assert "shard" not in merged["selection"]
    assert one["selection"]["shard"] == {"index": 1, "of": 2}


@pytest.mark.parametrize(
    ("options_", "what"),
    [
        (["-k", "Round@22:sweep=sizes", "--shard", "2/2"], "-k"),
        (["-k", QUERY, "--select", "pairwise", "--shard", "2/2"], "--select"),
        (["-k", QUERY, "--shard", "2/3"], "N of --shard I/N"),
    ],
)
def test_a_shard_of_something_else(runs: Path, tmp_path: Path, options_: list[str], what: str) -> None:
    harness("run", *options(runs)[:3], *options_, "-o", tmp_path / "other")
    ended = harness("merge", runs / "one", tmp_path / "other", "-o", tmp_path / "merged")
    wanted = f"{tmp_path}/other/run.jsonl:1: cannot be merged with the first run: the {what} differs"
    assert (ended.code, complaint(ended)) == (2, wanted)


def test_another_run_is_replaced_only_by_force(runs: Path, tmp_path: Path) -> None:
    arguments = ["merge", runs / "one", runs / "two", "-o", tmp_path / "merged"]
    assert harness(*arguments).code == 1
    ended = harness(*arguments)
    wanted = f"{tmp_path}/merged/run.jsonl: holds a complete run: choose another folder with -o, or replace the run with --force"
    assert (ended.code, complaint(ended)) == (2, wanted)
    assert harness(*arguments, "--force").code == 1


def test_results_that_a_shard_lost_are_not_green(tmp_path: Path) -> None:
    """Its target was gone before the end: the run ends, without some results."""
    for name in ("one", "two"):
        asked = ("-t", "fake", "-k", QUERY, "--shard", f"{('one', 'two').index(name) + 1}/2")
        assert harness("run", ROUND, *asked, "-o", tmp_path / name).code == 0
    path = tmp_path / "two" / "run.jsonl"
    header, _, *lines = path.read_text(encoding="utf-8").splitlines()
    end = json.loads(lines.pop())
    end["run"] -= 1
    end["outcomes"]["pass"] -= 1
    end["verdicts"]["expected"] -= 1
    path.write_text("\n".join((header, *lines, json.dumps(end), "")), encoding="utf-8")
    assert harness("merge", tmp_path / "one", tmp_path / "two", "-o", tmp_path / "merged").code == 3
    merged = lines_of(tmp_path / "merged")[-1]
    assert (merged["run"], merged["selected"]) == (31, 32)


def test_overlapping_runs(runs: Path, tmp_path: Path) -> None:
    ended = harness("merge", runs / "one", runs / "one", "-o", tmp_path / "merged")
    assert ended.code == 2
    assert complaint(ended).startswith(f"{runs}/one/run.jsonl: Round@22:")
    assert complaint(ended).endswith("is in an earlier run too: name each shard once")
    assert list((tmp_path / "merged").iterdir()) == []


def test_an_incomplete_shard(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl").write_bytes((runs / "two" / "run.jsonl").read_bytes()[:-5])
    ended = harness("merge", runs / "one", tmp_path / "cut.jsonl", "-o", tmp_path / "merged")
    wanted = f"{tmp_path}/cut.jsonl: the run is not complete: continue it with --resume before merging"
    assert (ended.code, complaint(ended)) == (2, wanted)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of file sizes")
def test_a_merge_without_space(runs: Path, tmp_path: Path) -> None:
    """A limit of this process's files stands for a full disk.

    Python 3.11 would keep compiled modules that the limit cut off.
    """
    code = (
        "import resource, signal, sys; from harness.commands import cli; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "sys.dont_write_bytecode = True; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); cli.main()"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "merge",
        str(runs / "one"),
        str(runs / "two"),
        "-o",
        str(tmp_path / "merged"),
    ]
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


@pytest.mark.slow
def test_an_entry_that_no_shard_matches_is_found_when_they_are_merged(tmp_path: Path) -> None:
    """A shard cannot know it: the case may be in another. Of a part of the cases nobody knows, nor with other
    entries."""
    entries = tmp_path / "fake.yaml"
    entry = "- {match: %s, when: {target: fake}, expect: mismatch, difference: {kind: value}, reason: none, link: 'https://example.org/'}\n"
    entries.write_text(entry % '"Round@11:case=never"' + entry % '"Round@22:sweep=empty"', encoding="utf-8")
    runs = {
        "one": ("1/2", []),
        "two": ("2/2", []),
        "part1": ("1/2", ["-k", QUERY]),
        "part2": ("2/2", ["-k", QUERY]),
    }
    for name, (shard, query) in runs.items():
        asked = ("-t", "fake", "--shard", shard, *query, "--expectations", entries)
        harness("run", ROUND, *asked, "-o", tmp_path / name)

    def problems(*names: str) -> list[str]:
        merged = tmp_path / "+".join(names)
        harness("merge", *(tmp_path / name for name in names), "-o", merged, "--partial", "--force")
        found: list[str] = lines_of(merged)[-1]["problems"]
        return found

    unmatched, stale = problems("two", "one")
    assert "matches no case on fake" in unmatched
    assert "cases conform on fake" in stale
    assert problems("one") == []
    assert problems("part1", "part2") == []
    entries.write_text(entry % '"Round@11:case=another"', encoding="utf-8")
    assert problems("one", "two") == []


@pytest.mark.slow
def test_what_no_run_has_makes_merged_shards_no_part_of_a_run(tmp_path: Path) -> None:
    """A sweep of the spec is itself of some pairs alone."""
    entries = tmp_path / "fake.yaml"
    entries.write_text(
        '- {match: "Not@1:case=never", expect: mismatch, difference: {kind: value}, reason: none, link: "https://example.org/"}\n',
        encoding="utf-8",
    )
    for name in ("1", "2"):
        options_ = ["--shard", f"{name}/2", "--expectations", entries, "-o", tmp_path / name]
        assert harness("run", SPECS / "Not.yaml", "-t", "fake", *options_).code == 0
    assert harness("merge", tmp_path / "1", tmp_path / "2", "-o", tmp_path / "merged").code == 1
    end = lines_of(tmp_path / "merged")[-1]
    assert end["left_out"]["adds no new pair"] > 0
    assert "matches no case on fake" in end["problems"][0]
