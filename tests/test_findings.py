from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from harness.model.case import Case, Validity
from harness.model.errors import UsageError
from harness.model.header import Header
from harness.model.result import Diff, Error, Result
from harness.model.result_key import artifact_name
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.results.runfile import RunWriter
from harness.specs.expectations import load_expectations
from tests.synthetic import end_of
from tools.findings import Side, findings, main, page, read_sides

CPU = TargetInfo("CPUExecutionProvider", onnxruntime="1.24.4")
DML = TargetInfo(
    "DmlExecutionProvider", onnxruntime="1.24.4", directml="1.15.4", adapter="llvmpipe (LLVM 19, 256 bits)"
)
STRING, RANGE, SAME, OPEN, NEW = (
    "GatherND@13:sweep=a;data=string[2];indices=int64[1]",
    "GatherND@13:sweep=b;data=int8[2];indices=int64[1,1];values=above",
    "GatherND@13:sweep=a;data=int8[2];indices=int64[1]",
    "Round@11:case=open;X=float32[1]",
    "Round@11:sweep=c;X=float32[2]",
)
ENTRIES = """\
- match: data=string
  when: {provider: Dml*}
  expect: not_placed
  title: No strings
  reason: there is no kernel
  documents: there is no such | type
  link: https://example.org/types
- match: sweep=b
  when: {provider: Dml*}
  expect: accepted_invalid
  reason: nothing looks at the indices; never
  link: https://example.org/indices
"""


def result(
    case: str, target: str, outcome: Outcome, validity: Validity = Validity.VALID, error: Error | None = None
) -> Result:
    provider = CPU.provider if target == "cpu" or outcome is Outcome.NOT_PLACED else DML.provider
    diff = Diff(3, 1, 2, (1,), "2.0", "3.0") if outcome is Outcome.MISMATCH else None
    return Result(
        case,
        case.partition("@")[0],
        target,
        validity,
        {"directml": "2_1"},
        outcome,
        Verdict.EXPECTED,
        None,
        provider,
        error,
        diff,
    )


def write(folder: Path, target: str, info: TargetInfo, results: Sequence[Result]) -> Path:
    folder.mkdir()
    header = Header(1, "r", "harness run", 0, {}, {target: info})
    with RunWriter(folder / "run.jsonl", header) as run:
        for one in results:
            run.add(one)
        run.close(end_of(results))
    return folder


@pytest.fixture
def sides(tmp_path: Path) -> list[Side]:
    noise = "[ONNXRuntimeError] : 1 : FAIL : no E:\\a\\b.cpp(3)\\state.pyd!00FF: (caller: 00AA) Exception(2) tid(24) 8007 Invalid.\r\n"
    cpu = [
        result(STRING, "cpu", Outcome.PASS),
        result(RANGE, "cpu", Outcome.REJECTED, Validity.INVALID, Error("Fail", "out of range")),
    ]
    cpu += [
        result(SAME, "cpu", Outcome.PASS),
        result(OPEN, "cpu", Outcome.PASS, Validity.UNSPECIFIED),
        result(NEW, "cpu", Outcome.PASS),
    ]
    dml = [
        result(STRING, "dml", Outcome.NOT_PLACED, error=Error("Fail", noise)),
        result(NEW, "dml", Outcome.MISMATCH),
    ]
    dml += [
        result(RANGE, "dml", Outcome.ACCEPTED_INVALID, Validity.INVALID),
        result(SAME, "dml", Outcome.PASS),
    ]
    dml += [
        result(OPEN, "dml", Outcome.MISMATCH, Validity.UNSPECIFIED),
        result(OPEN.replace("11", "22"), "dml", Outcome.PASS),
    ]
    paths = [write(tmp_path / "cpu", "cpu", CPU, cpu), write(tmp_path / "dml", "dml", DML, dml)]
    (tmp_path / "dml" / "artifacts").mkdir()
    np.savez(
        tmp_path / "dml" / "artifacts" / artifact_name(RANGE, "dml"),
        input_indices=np.array([[2]]),
        actual=np.array([9], np.int8),
    )
    (tmp_path / "dml.yaml").write_text(ENTRIES, encoding="utf-8")
    return read_sides(paths)


def text(sides: list[Side], tmp_path: Path) -> str:
    cases = {
        RANGE: Case(RANGE, "GatherND", 13, {}, (), rule="values within [-s, s-1]", source="salient point 5"),
        OPEN: Case(OPEN, "Round", 11, {}, (), rule="the sign of | zero"),
    }
    return "\n".join(page(sides, load_expectations([tmp_path / "dml.yaml"]), cases))


def test_cases_are_grouped_by_what_explains_them(sides: list[Side], tmp_path: Path) -> None:
    found = findings(sides, load_expectations([tmp_path / "dml.yaml"]))
    assert [(one.cases, one.of) for one in found] == [((STRING,), 3), ((RANGE,), 3), ((NEW,), 2)]
    assert [one.entries[1] and one.entries[1].expect for one in found] == [
        Outcome.NOT_PLACED,
        Outcome.ACCEPTED_INVALID,
        None,
    ]
    assert all(one.entries[0] is None for one in found)


def test_page_says_what_each_side_did_and_who_is_right(sides: list[Side], tmp_path: Path) -> None:
    written = text(sides, tmp_path)
    assert "5 cases ran on both; 1 on one alone." in written
    assert "not from a GPU" in written
    assert "| [1](#finding-1) | GatherND | No strings | 1 | 3 | pass 1 | not_placed 1 | cpu |" in written
    assert "Microsoft's documents: there is no such \\| type" in written
    assert "`Fail`: `no …/b.cpp(3) 8007 Invalid.`" in written
    assert "the case is invalid: values within [-s, s-1]; salient point 5" in written
    assert "(`accepted_invalid`): indices `2`; output `9`" in written
    assert "  - nothing looks at the indices; never [Source](https://example.org/indices)" in written
    assert "3. not explained by any expectation" in written
    assert "expected `2.0`, got `3.0` at (1,)" in written


def test_what_is_open_is_recorded_and_no_finding(sides: list[Side], tmp_path: Path) -> None:
    row = "| Round 11 | `case=open;X=float32[1]` | the sign of \\| zero | `pass` | `mismatch`: expected `2.0`, got `3.0` at (1,) |"
    assert text(sides, tmp_path).rstrip().endswith(row)


def test_same_runs_give_the_same_page(sides: list[Side], tmp_path: Path) -> None:
    assert text(sides, tmp_path) == text(sides, tmp_path)


def test_a_run_of_both_targets_is_as_good(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RunWriter(path, Header(1, "r", "harness run", 0, {}, {"cpu": CPU, "dml": DML})) as run:
        run.add(result(SAME, "dml", Outcome.PASS))
    assert [(side.target, len(side.results)) for side in read_sides([path])] == [("cpu", 0), ("dml", 1)]
    with pytest.raises(UsageError, match="two targets are compared, the runs have 4: cpu, dml, cpu, dml"):
        read_sides([path, path])


def test_command(sides: list[Side], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main([str(tmp_path / "cpu"), str(tmp_path / "none")]) == 2
    assert "none" in capsys.readouterr().err
    assert main([str(tmp_path / "cpu"), str(tmp_path / "dml")]) == 0
    assert capsys.readouterr().out.startswith("# What the CPU and the DirectML provider make differently\n")
