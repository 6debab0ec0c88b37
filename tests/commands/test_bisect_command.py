"""`harness bisect` over real releases: what changed with 1.24.3 is found, and what cannot be searched is
refused in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harness.model.cache_folder import CACHE_ENV
from harness.targets.runtimes import pythons
from tests.golden import check_golden
from tests.running import Ended, complaint, harness, raising

GOLDEN = Path(__file__).parents[1] / "golden"
_CRASH = "GatherND@13:case=batch_size_of_one_is_not_broadcast"
_CASE = f"{_CRASH};data=float32[2,2];indices=int64[1,1];batch_dims=1"
_ENDS = ("--good", "1.24.2", "--bad", "1.24.3")

needs_3_11 = pytest.mark.usefixtures("python_3_11")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_ENV, str(cache))
    monkeypatch.setenv("COLUMNS", "80")


def _bisect(*arguments: str) -> Ended:
    return harness("bisect", *arguments)


@pytest.mark.releases
@needs_3_11
def test_the_release_that_mended_a_crash_is_found(tmp_path: Path) -> None:
    ended = _bisect(_CASE, *_ENDS)
    assert ended.code == 0, ended.err
    check_golden(GOLDEN / "bisect_case.txt", ended.out)
    assert [line for line in ended.err.splitlines() if not line.startswith("runtimes: ")] == [
        "1.24.3: rejected",
        "1.24.2: crash",
    ]


@pytest.mark.releases
@needs_3_11
def test_a_query_finds_the_release_in_which_other_cases_fail(tmp_path: Path) -> None:
    ended = _bisect(
        "GatherND@13:sweep=batch_sizes_unequal",
        *_ENDS,
        "--format",
        "markdown",
        "-o",
        str(tmp_path / "table.md"),
    )
    assert (ended.code, ended.out) == (0, ""), ended.err
    check_golden(GOLDEN / "bisect_query.md", (tmp_path / "table.md").read_text(encoding="utf-8"))


@pytest.mark.releases
@needs_3_11
def test_json_tells_what_each_release_did() -> None:
    ended = _bisect("GatherND@13:case=batch_size*", *_ENDS, "--format", "json", "--all")
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    assert (document["first"], document["versions"]) == ("1.24.3", ["1.24.2", "1.24.3"])
    (change,) = document["changes"]
    assert change["cases"][_CASE] == {"before": "crash", "after": "rejected"}
    assert document["measured"][0]["not_conforming"][_CASE] == "crash"
    assert _CASE not in document["measured"][1]["not_conforming"]


@pytest.mark.releases
@needs_3_11
def test_a_crash_while_the_model_loads_is_an_outcome_and_no_lack_of_its_opset() -> None:
    ended = _bisect("GatherND@13:case=batch_dims_below_minus_rank", *_ENDS)
    assert ended.code == 1
    assert ended.out.startswith("nothing changes from 1.24.2 to 1.24.3: crash (fails)\n")


@pytest.mark.releases
@needs_3_11
def test_what_does_not_change_is_said(tmp_path: Path) -> None:
    ended = _bisect("Round@22:case=below_one_half", *_ENDS)
    assert ended.code == 1
    assert ended.out.startswith("nothing changes from 1.24.2 to 1.24.3: pass\n")


@pytest.mark.releases
def test_a_release_that_lacks_the_opset_is_skipped_not_failed() -> None:
    ended = _bisect("Round@22:case=below_one_half", "--good", "1.18.1", "--bad", "1.18.1")
    assert ended.code == 2  # one release alone is no range
    ended = _bisect("Round@22:case=below_one_half", "--good", "1.18.0", "--bad", "1.18.1")
    assert ended.code == 3
    assert (
        ended.err.splitlines()[-1] == "harness: none of 2 releases can run it; 1.18.1: opset 22 does not load"
    )


@pytest.mark.releases
@needs_3_11
def test_calls_of_directmls_own_api_among_a_query_are_left_out() -> None:
    ended = _bisect("Round@22:X=float32[5]", *_ENDS)
    assert ended.code == 1, ended.err
    lines = ended.out.splitlines()
    assert lines[0] == "nothing changes from 1.24.2 to 1.24.3: 0 of 31 fail"
    assert lines[1].startswith("  61 cases left out: a call of DirectML's own API, which no ONNX graph")


@pytest.mark.parametrize("ends", [("1.22.1", "1.22.1"), ("1.x", "1.22.1"), ("1.22", "new")])
def test_wrong_ends_are_told_before_a_release_or_a_case_is_looked_for(
    ends: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("looked for")

    monkeypatch.setattr("harness.triage.bisection.environments.published_releases", never)
    monkeypatch.setattr("harness.api.load", never)
    ended = harness("bisect", _CASE, "--good", ends[0], "--bad", ends[1])
    assert ended.code == 2
    assert "is not older than" in complaint(ended) or "is no release of onnxruntime" in complaint(ended)


def test_an_unknown_release_is_told_before_a_case_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.api.load", raising(AssertionError("looked for")))
    ended = harness("bisect", _CASE, "--over", "directml", "--good", "1.22.1")
    assert (ended.code, "no such stable release can run here" in complaint(ended)) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((_CASE, "--spec", "nowhere.yaml"), 2, "nowhere.yaml: cannot read"),
        (("Rounds",), 4, "no case matches Rounds"),
        ((_CASE,), 3, "uv, which makes environments for other releases, is missing"),
    ],
)
def test_a_wrong_argument_is_told_before_a_missing_uv(
    arguments: tuple[str, ...], code: int, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(CACHE_ENV, str(tmp_path))  # no release is installed
    monkeypatch.setitem(sys.modules, "uv", None)
    pythons.pythons.cache_clear()  # uv told which there are
    ended = harness("bisect", *arguments)
    assert (ended.code, complaint(ended).startswith(said)) == (code, True), ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ("Round@22:case=api_base;X=float32[5];api=directml",),
            4,
            "nothing to bisect on cpu: 1 case left out: a call of DirectML's own API, which no ONNX graph expresses",
        ),
        (("Rounds",), 4, "no case matches Rounds; no operator 'Rounds'; did you mean 'Round'?"),
        (
            ("Round@11:case=documented_onnx;x",),
            2,
            "bad query 'Round@11:case=documented_onnx;x': 'x' is not a key=value",
        ),
        pytest.param(
            (_CASE, "--good", "1.24.3", "--bad", "1.24.2"),
            2,
            "--good 1.24.3 is not older than --bad 1.24.2",
            marks=pytest.mark.releases,
        ),
        pytest.param(
            (_CASE, "--good", "1.24.9"),
            2,
            "--good 1.24.9: no such stable release can run here; near: 1.24.3, 1.24.4, 1.25.0, 1.25.1",
            marks=pytest.mark.releases,
        ),
        pytest.param(
            (_CASE, "--bad", "new"), 2, "'new' is no release of onnxruntime", marks=pytest.mark.releases
        ),
        (
            (_CASE, "-t", "dml"),
            2,
            "--over onnxruntime chooses the release of cpu: -t dml is not cpu with options",
        ),
        (
            (_CASE, "--over", "directml", "--good", "1.24.4"),
            2,
            "--good 1.24.4: there is no newer release to compare with, only 1.24.4",
        ),
        (
            (_CASE, "--over", "directml", "--good", "1.22.1"),
            2,
            "--good 1.22.1: no such stable release can run here; near: 1.21.0, 1.22.0",
        ),
        (
            (_CASE, "--over", "directml"),
            3,
            "none of 15 releases can run it; 1.24.4: the Windows runtime for onnxruntime-directml 1.24.4 is not",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused(arguments: tuple[str, ...], code: int, said: str) -> None:
    ended = _bisect(*arguments)
    assert ended.code == code
    assert ended.err.splitlines()[-1].removeprefix("harness: ").startswith(said)
    if code != 3:
        assert complaint(ended)
