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
from tools.release_findings import Releases, main, page

OLD = TargetInfo("DmlExecutionProvider", onnxruntime="1.11.1", directml="1.8.0", max_feature_level="5_0")
MIDDLE = TargetInfo("DmlExecutionProvider", onnxruntime="1.14.1", directml="1.10.1", max_feature_level="5_2")
NEW = TargetInfo("DmlExecutionProvider", onnxruntime="1.24.4", directml="1.15.4", max_feature_level="6_4")
TARGETS = {
    "cpu": TargetInfo("CPUExecutionProvider"),
    "dml@level-5_0": OLD,
    "dml@level-5_2": MIDDLE,
    "dml@level-6_4": NEW,
}
LATER = Error(
    "UnknownVersionError",
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Unsupported model IR version: 10, max supported IR version: 8\n",
)
CASES: dict[str, tuple[tuple[Outcome, Error | None], ...]] = {
    "Round@11:case=same": ((Outcome.PASS, None),) * 4,
    "Round@22:case=later": (
        (Outcome.PASS, None),
        (Outcome.NOT_RUN, LATER),
        (Outcome.NOT_RUN, LATER),
        (Outcome.NOT_PLACED, Error("NotPlaced")),
    ),
    "Round@11:case=fused": (
        (Outcome.PASS, None),
        (Outcome.CRASH, Error("exit code 3", "of a queue")),
        (Outcome.PASS, None),
        (Outcome.PASS, None),
    ),
    "Round@11:case=fused_too": (
        (Outcome.PASS, None),
        (Outcome.CRASH, Error("exit code 3")),
        (Outcome.PASS, None),
        (Outcome.PASS, None),
    ),
}
ENTRIES = """\
- match: ["case=fused", "case=fused_too"]
  when: {directml: "<1.10"}
  expect: crash
  title: Fused | by an old release
  reason: it dies
  link: https://example.org/fused
"""


def run(folder: Path, targets: dict[str, TargetInfo] = TARGETS) -> Path:
    results = [
        Result(
            case,
            "Round",
            target,
            Validity.VALID,
            {},
            outcome,
            Verdict.EXPECTED,
            placed_on=info.provider if outcome is Outcome.PASS else None,
            error=error,
        )
        for case, told in CASES.items()
        for (target, info), (outcome, error) in zip(TARGETS.items(), told, strict=True)
        if target in targets
    ]
    with RunWriter(
        folder / "run.jsonl", Header(1, "r", "harness run -t dml@levels", 0, {}, targets)
    ) as writer:
        for result in results:
            writer.add(result)
        writer.close(end_of(results))
    return folder


def test_releases_are_compared_case_by_case(tmp_path: Path) -> None:
    (tmp_path / "dml.yaml").write_text(ENTRIES, encoding="utf-8")
    releases = Releases(run(tmp_path), load_expectations([tmp_path / "dml.yaml"]))
    fused, later = releases.groups()
    assert fused.cases == ("Round@11:case=fused", "Round@11:case=fused_too")
    assert releases.spans(fused.told) == "5_0: `crash`, 5_2 to 6_4: `pass`"
    assert later.cases == ("Round@22:case=later",)
    assert releases.spans(later.told) == "5_0 to 5_2: `not_run`, 6_4: `not_placed`"


def test_the_page_says_why_and_with_which_message(tmp_path: Path) -> None:
    (tmp_path / "dml.yaml").write_text(ENTRIES, encoding="utf-8")
    text = "\n".join(page(Releases(run(tmp_path), load_expectations([tmp_path / "dml.yaml"]))))
    assert "1 of 4 cases end alike on all releases" in text
    assert "| dml@level-5_0 | 1.11.1 | 1.8.0 | 5_0 | 1 of 3 | 1 |" in text
    assert (
        "| [1](#1) | Round 11 | 2 valid | 5_0: `crash`, 5_2 to 6_4: `pass` | Fused \\| by an old release |"
        in text
    )
    assert "opset or IR version newer than the release" in text
    assert "`exit code 3`: of a queue" in text
    assert "`UnknownVersionError`: Unsupported model IR version: 10, max supported IR version: 8" in text
    assert "cpu" not in text


def test_one_release_is_nothing_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run(tmp_path, {"cpu": TARGETS["cpu"], "dml@level-6_4": NEW}))]) == 2
    assert "the run has 1 DirectML targets: run -t dml@levels" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["a", "b"]])
def test_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "write: python -m tools.release_findings RUN" in capsys.readouterr().err
