"""Verdicts against an earlier run: only what is new turns a run red."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.case import Validity
from harness.model.verdict import Outcome, Verdict, conforms
from harness.run.baseline import Baseline
from harness.run.judge import verdict
from tests.running import ROUND, complaint, harness, lines_of, results_of, script_of

SHAPES = ("[0]", "[0,3]", "[3,0]", "[2,0,3]")


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An earlier run: of four cases, two passed, one mismatched and one was rejected."""
    folder = tmp_path_factory.mktemp("baseline")
    script_of(folder, [("Round:X=float16[3,0]", "shape"), ("Round:X=float16[2,0,3]", "reject")])
    assert harness("run", *options(folder, "float16"), "-o", folder / "earlier").code == 1
    return folder


def options(folder: Path, *dtypes: str) -> list[str | Path]:
    queries = [part for dtype in dtypes for part in ("-k", f"Round@22:sweep=empty;X={dtype};shapes=static")]
    return [ROUND, "-t", f"fake,script={folder / 'script.yaml'}", *queries]


def run(
    earlier: Path, tmp_path: Path, rules: list[tuple[str, str]], *dtypes: str
) -> tuple[int, dict[str, str]]:
    """Run against the earlier one; return the exit code and the verdicts by dtype and shape."""
    script_of(earlier, rules)
    ended = harness(
        "run", *options(earlier, *dtypes), "--baseline", earlier / "earlier", "-o", tmp_path / "now"
    )
    found = results_of(tmp_path / "now")
    return ended.code, {
        case.split(";X=")[1].split(";")[0]: str(result["verdict"]) for case, result in found.items()
    }


SAME = [("Round:X=float16[3,0]", "shape"), ("Round:X=float16[2,0,3]", "reject")]


@pytest.mark.parametrize(
    ("rules", "code", "expected"),
    [
        (SAME, 0, ("expected", "expected", "expected", "expected")),
        (
            [("Round:X=float16[0]", "reject"), ("Round:X=float16[3,0]", "reject")],
            1,
            ("regression", "expected", "changed", "improvement"),
        ),
        (SAME[:1], 0, ("expected", "expected", "expected", "improvement")),
        (
            [SAME[0], ("Round:X=float16[2,0,3]", "unsupported")],
            1,
            ("expected", "expected", "expected", "changed"),
        ),
    ],
    ids=["the same again", "regression, improvement and change", "an improvement alone", "a change alone"],
)
def test_verdicts_against_an_earlier_run(
    earlier: Path, tmp_path: Path, rules: list[tuple[str, str]], code: int, expected: tuple[str, ...]
) -> None:
    verdicts = {f"float16{shape}": one for shape, one in zip(SHAPES, expected, strict=True)}
    assert run(earlier, tmp_path, rules, "float16") == (code, verdicts)


def test_new_cases_are_red_only_where_they_fail(earlier: Path, tmp_path: Path) -> None:
    code, found = run(earlier, tmp_path, SAME, "float16", "float32")
    assert {found[f"float32{shape}"] for shape in SHAPES} == {"new"}
    assert code == 0
    (tmp_path / "again").mkdir()
    code, found = run(
        earlier, tmp_path / "again", [*SAME, ("Round:X=float32[0]", "shape")], "float16", "float32"
    )
    assert {found[f"float32{shape}"] for shape in SHAPES} == {"new"}
    assert code == 1


def test_a_target_that_is_gone_is_missing(earlier: Path, tmp_path: Path) -> None:
    script_of(earlier, [], startup="exit")
    ended = harness(
        "run", *options(earlier, "float16"), "--baseline", earlier / "earlier", "-o", tmp_path / "now"
    )
    assert ended.code == 3
    assert {result["verdict"] for result in results_of(tmp_path / "now").values()} == {"missing"}


def test_another_outcome_of_an_unspecified_case_is_a_change(earlier: Path) -> None:
    """Neither outcome is better than the other: no source says what is right."""
    case, target = (
        "Round@22:sweep=empty;X=float16[0];values=ordinary;shapes=static",
        f"fake,script={earlier / 'script.yaml'}",
    )
    held = Baseline(earlier / "earlier", [target])
    assert held.verdict(case, target, Validity.UNSPECIFIED, Outcome.PASS) is Verdict.EXPECTED
    assert held.verdict(case, target, Validity.UNSPECIFIED, Outcome.REJECTED) is Verdict.CHANGED
    assert held.verdict(case, "cpu", Validity.UNSPECIFIED, Outcome.PASS) is Verdict.NEW


CONFORMING = {Validity.VALID: Outcome.PASS, Validity.INVALID: Outcome.REJECTED}


@pytest.mark.parametrize("validity", Validity)
@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("known", [None, *Outcome])
def test_verdict_against_an_expectation(validity: Validity, outcome: Outcome, known: Outcome | None) -> None:
    """All of them, written as the four sentences that define a verdict."""
    found = verdict(validity, outcome, known)
    ended = outcome in (Outcome.CRASH, Outcome.TIMEOUT)
    conforming = not ended if validity is Validity.UNSPECIFIED else CONFORMING[validity] is outcome
    assert conforms(validity, outcome) is conforming
    if (
        known is outcome or (conforming and known is None) or outcome is Outcome.NOT_RUN
    ):  # what cannot be asked contradicts nothing
        assert found is Verdict.EXPECTED
    elif conforming:
        assert found is Verdict.IMPROVEMENT
    elif known is None:
        assert found is Verdict.REGRESSION
    else:
        assert found is Verdict.CHANGED


def test_what_can_no_longer_be_asked_is_missing(earlier: Path) -> None:
    case = next(iter(results_of(earlier / "earlier")))
    target = f"fake,script={earlier / 'script.yaml'}"
    baseline = Baseline(earlier / "earlier", [target])
    assert baseline.verdict(case, target, Validity.VALID, Outcome.NOT_RUN) is Verdict.MISSING
    assert (
        baseline.verdict("Round@99:case=later", target, Validity.VALID, Outcome.NOT_RUN) is Verdict.EXPECTED
    )


@pytest.mark.slow
def test_what_the_specs_no_longer_have_is_counted(tmp_path: Path) -> None:
    """A whole run of a spec against one of the same spec with a case more."""
    text = ROUND.read_text(encoding="utf-8")
    assert "shape: [[0], [0, 3], [3, 0], [2, 0, 3]]" in text
    less = tmp_path / "Round.yaml"
    less.write_text(
        text.replace("shape: [[0], [0, 3], [3, 0], [2, 0, 3]]", "shape: [[0], [0, 3], [3, 0]]"),
        encoding="utf-8",
    )
    nothing = tmp_path / "none.yaml"
    nothing.write_text("[]\n", encoding="utf-8")
    alike = ["-t", "fake", "--expectations", nothing]
    harness("run", ROUND, *alike, "-o", tmp_path / "earlier")
    harness("run", less, *alike, "--baseline", tmp_path / "earlier", "-o", tmp_path / "now")
    before, now = results_of(tmp_path / "earlier"), results_of(tmp_path / "now")
    assert now.keys() < before.keys()
    assert lines_of(tmp_path / "now")[-1]["left_out"]["in the baseline, no longer in the specs"] == len(
        before
    ) - len(now)
    asked = (*alike, "--baseline", tmp_path / "earlier", "-k", "case=documented_onnx")
    part = harness("run", less, *asked, "-o", tmp_path / "part")
    assert part.code == 0
    assert "in the baseline, no longer in the specs" not in lines_of(tmp_path / "part")[-1]["left_out"]


def test_the_only_targets_of_both_are_held_against_each_other(earlier: Path, tmp_path: Path) -> None:
    """The reports say which run it was, and under which name."""
    asked = ("-t", "fake", *options(earlier, "float16")[3:], "--baseline", earlier / "earlier")
    ended = harness("run", ROUND, *asked, "-o", tmp_path / "now")
    assert ended.code == 0, ended.err
    found = results_of(tmp_path / "now")
    assert sorted(result["verdict"] for result in found.values()) == [
        "expected",
        "expected",
        "improvement",
        "improvement",
    ]
    then = lines_of(earlier / "earlier")[0]["run_id"]
    assert lines_of(tmp_path / "now")[0]["baseline"]["run_id"] == then
    assert f"Judged against run {then}, fake against its fake,script=" in " ".join(ended.out.split())
    for name in ("report.md", "report.html"):
        assert f"Judged against run {then}" in (tmp_path / "now" / name).read_text(encoding="utf-8")


def test_a_target_that_the_baseline_lacks_is_named(earlier: Path, tmp_path: Path) -> None:
    arguments = [*options(earlier, "float16"), "-t", "fake", "--seed", "3", "--baseline", earlier / "earlier"]
    out = " ".join(harness("run", *arguments, "-o", tmp_path / "now").out.split())
    assert (
        "It has no fake: what fails there is new. Other seed than then: a change need not be the target's."
        in out
    )


def test_a_baseline_without_any_of_the_targets_is_refused_before_the_run(
    earlier: Path, tmp_path: Path
) -> None:
    arguments = [
        ROUND,
        "-t",
        "cpu",
        "-t",
        "fake",
        "-k",
        "case=documented_onnx",
        "--baseline",
        earlier / "earlier",
    ]
    ended = harness("run", *arguments, "-o", tmp_path / "now")
    assert ended.code == 2
    assert complaint(ended).startswith(f"{earlier / 'earlier'}: no target in common: it has fake,script=")
    assert complaint(ended).endswith(
        "this run cpu, fake; runs of a single target each are held against each other by whatever name"
    )
    assert not (tmp_path / "now").exists()
