from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.case import Validity
from harness.model.header import Header
from harness.model.result import Error, Result
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.results.runfile import RunWriter
from harness.specs.expectations import load_expectations
from tests.synthetic import end_of
from tools.cpu_findings import CpuReleases, main, page

RELEASES = ("1.9.0", "1.15.1", "1.21.0", "1.32.0")
PASS, WRONG, REFUSED = Outcome.PASS, Outcome.CRASH, Outcome.REJECTED
NOT_RUN, NO_KERNEL, ACCEPTED = Outcome.NOT_RUN, Outcome.UNSUPPORTED, Outcome.ACCEPTED_INVALID
CASES: dict[str, tuple[Outcome, ...]] = {
    "Round@11:case=same;X=float32[2]": (PASS, PASS, PASS, PASS),
    "Round@11:case=mended;X=float32[2]": (WRONG, WRONG, PASS, PASS),
    "Round@11:case=mended_too;X=float32[1]": (NOT_RUN, WRONG, NOT_RUN, PASS),
    "Round@11:case=mended_of_none;X=float32[0]": (NOT_RUN, WRONG, PASS, PASS),
    "Round@11:case=broken;X=float32[3]": (PASS, PASS, REFUSED, REFUSED),
    "Round@11:case=between;X=float32[3]": (PASS, PASS, WRONG, PASS),
    "Round@11:case=without_a_kernel;X=float32[3]": (NO_KERNEL, NO_KERNEL, PASS, PASS),
    "Round@11:case=open;X=float32[3]": (WRONG, WRONG, WRONG, PASS),
    "Round@11:case=breaks_a_rule;X=float32[3]": (REFUSED, REFUSED, REFUSED, ACCEPTED),
}
ERRORS = {
    REFUSED: Error("Fail", "no three"),
    WRONG: Error("SIGSEGV"),
    NOT_RUN: Error("UnknownVersionError"),
    NO_KERNEL: Error("NotImplemented"),
}
ENTRIES = """\
- match: "case=broken"
  when: {provider: CPUExecutionProvider}
  expect: rejected
  title: Round | of three
  reason: it is refused
  link: https://example.org/three
- match: "case=mended*"
  when: {provider: CPUExecutionProvider}
  expect: timeout
  title: Another outcome
  reason: it does not end
  link: https://example.org/timeout
"""


def _validity(case: str) -> Validity:
    if "open" in case:
        return Validity.UNSPECIFIED
    return Validity.INVALID if "rule" in case else Validity.VALID


def runs(folder: Path, releases: tuple[str, ...] = RELEASES, without: str = "") -> list[Path]:
    """Write a run of each release, the oldest without a case."""
    paths = []
    for place, version in enumerate(RELEASES):
        if version not in releases:
            continue
        info = TargetInfo("CPUExecutionProvider", onnxruntime=version, python="3.11.7")
        name = f"cpu@ort-{version}"
        results = [
            Result(
                case,
                "Round",
                name,
                _validity(case),
                {},
                told[place],
                Verdict.EXPECTED,
                placed_on=info.provider if told[place] in (PASS, ACCEPTED) else None,
                error=ERRORS.get(told[place]),
            )
            for case, told in CASES.items()
            if place or case != without
        ]
        paths.append(folder / version)
        paths[-1].mkdir()
        with RunWriter(
            paths[-1] / "run.jsonl", Header(1, version, "harness run -o x", 0, {}, {name: info})
        ) as writer:
            for result in results:
                writer.add(result)
            writer.close(end_of(results))
    return paths


def test_cases_that_changed_alike_are_a_group(tmp_path: Path) -> None:
    releases = CpuReleases(reversed(runs(tmp_path)))
    assert [each.version for each in releases.all] == list(RELEASES)
    found = {releases.since(each): each for each in releases.changes(newest_right=True)}
    assert {since: len(each.cases) for since, each in found.items()} == {
        "wrong in 1.9.0 to 1.15.1, right from 1.21.0": 2,
        "wrong in 1.15.1, right from 1.32.0": 1,
        "right before, wrong in 1.21.0, right from 1.32.0": 1,
    }
    assert (
        found["wrong in 1.9.0 to 1.15.1, right from 1.21.0"].smallest == "Round@11:case=mended;X=float32[2]"
    )


def test_a_release_has_the_cases_of_all_its_runs(tmp_path: Path) -> None:
    whole = runs(tmp_path)
    (tmp_path / "part").mkdir()
    part = runs(tmp_path / "part", RELEASES[:1], without=next(iter(CASES)))
    assert CpuReleases([*part, *whole]).cases == CpuReleases([*whole, *part]).cases == sorted(CASES)


def test_what_the_newest_release_gets_wrong(tmp_path: Path) -> None:
    releases = CpuReleases(runs(tmp_path))
    assert [(each.outcome, releases.since(each)) for each in releases.changes(newest_right=False)] == [
        (ACCEPTED, "right in 1.9.0 to 1.21.0, wrong from 1.32.0"),
        (REFUSED, "right in 1.9.0 to 1.15.1, wrong from 1.21.0"),
    ]


def test_the_page_counts_and_says_how_to_repeat(tmp_path: Path) -> None:
    (tmp_path / "cpu.yaml").write_text(ENTRIES, encoding="utf-8")
    text = "\n".join(page(CpuReleases(runs(tmp_path)), load_expectations([tmp_path / "cpu.yaml"])))
    assert "9 cases of 1 operators, each given to all of 1.9.0, 1.15.1, 1.21.0, 1.32.0." in text
    assert "| 1.9.0 | 3.11.7 | 4 | 1 | 1 | 1 | 2 | `harness run` |" in text
    assert "2 cases in 2 groups." in text
    assert "[Round \\| of three](https://example.org/three)" in text
    assert "Another outcome" not in text
    assert "- 1.32.0: Fail: no three" in text
    assert "`harness reduce 'Round@11:case=mended;X=float32[2]' -t cpu@ort-1.15.1`" in text


def test_a_case_counts_that_every_release_was_given(tmp_path: Path) -> None:
    case = "Round@11:case=broken;X=float32[3]"
    assert set(CASES) - set(CpuReleases(runs(tmp_path, without=case)).cases) == {case}


def test_one_release_is_nothing_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(path) for path in runs(tmp_path, ("1.15.1",))]) == 2
    assert "the runs have 1 of the CPU provider: run -t cpu@ort-1.22.1" in capsys.readouterr().err


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "write: python -m tools.cpu_findings RUN…" in capsys.readouterr().err
