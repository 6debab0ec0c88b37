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
from tools.errata import Measured, command, main, page

API = TargetInfo("DirectML", directml="1.15.4", max_feature_level="6_4", adapter="llvmpipe")


def write(folder: Path, results: list[Result], **targets: TargetInfo) -> Path:
    folder.mkdir(exist_ok=True)
    with RunWriter(folder / "run.jsonl", Header(1, "r", "", 0, {}, targets)) as run:
        for one in results:
            run.add(one)
        run.close(end_of(results))
    return folder


def result(case: str, outcome: Outcome, validity: Validity, call: str = "") -> Result:
    error = Error("CreateOperator E_INVALIDARG", "x") if outcome is Outcome.REJECTED else None
    placed = "DirectML" if outcome in (Outcome.PASS, Outcome.ACCEPTED_INVALID) else None
    made = Result(
        case,
        case.partition("@")[0],
        "directml",
        validity,
        {"directml": "3_0"},
        outcome,
        Verdict.EXPECTED,
        "load",
        placed,
        error,
    )
    return Result(
        **{
            **{name: getattr(made, name) for name in made.__struct_fields__},
            **({"call": call} if call else {}),
        }
    )


BY_FORMULA = (
    "GatherND@13:case=api_nd_sizes_by_formula;data=float32[3,4,5,6,7];indices=uint32[1,2,3];api=directml"
)
OPEN = (
    "GatherND@13:sweep=api_index_out_of_range;data=float32[5];indices=int64[3,1];values=above;api=directml;"
    "operator=DML_OPERATOR_GATHER_ND"
)
ODD = "GatherND@13:sweep=api_other_index_types;data=float32[6];indices=int8[1];values=in_range;api=directml;operator=DML_OPERATOR_GATHER_ND"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    call = "GATHER_ND InputTensor=FLOAT32[1] IndicesTensor=INT8[1] OutputTensor=FLOAT32[1]"
    results = [
        result(BY_FORMULA, Outcome.REJECTED, Validity.INVALID),
        result(OPEN, Outcome.ACCEPTED_INVALID, Validity.UNSPECIFIED),
        result(ODD, Outcome.ACCEPTED_INVALID, Validity.INVALID, call),
    ]
    return write(tmp_path / "r", results, directml=API)


def test_each_erratum_says_what_the_dll_does_and_with_which_command(run: Path) -> None:
    text = "\n".join(page(Measured(run, load_expectations())))
    section = text[text.index("### 3. ") : text.index("### 4. ")]
    assert (
        "A call that keeps to the first: 1 × rejected at load: CreateOperator E\\_INVALIDARG"
        in section.replace("E_I", "E\\_I")
    )
    assert "`harness run -t directml -k GatherND:case=api_nd_sizes_by_formula`" in section
    assert "A call that keeps to the second: not run" in section


def test_documents_and_dll_are_held_against_each_other(run: Path) -> None:
    text = "\n".join(page(Measured(run, load_expectations())))
    differ = text[text.index("## Documents and DLL differ") : text.index("## What the documents leave open")]
    assert "Of the calls that break it, 1 of 1: accepted" in differ
    assert f'-k "{ODD}"' in differ
    assert "GATHER_ND IndicesTensor INT8 × 1: undocumented, accepted" in differ
    assert "1 undocumented, accepted" in differ
    still = text[text.index("## What the documents leave open") :]
    assert "gives some result without an error" in still
    assert OPEN in still


def test_what_is_known_stands_with_a_case_that_shows_it(tmp_path: Path) -> None:
    shown = "Round@22:sweep=rank;X=float64[3];values=ordinary"
    folder = write(tmp_path / "r", [result(shown, Outcome.REJECTED, Validity.VALID)], directml=API)
    text = "\n".join(page(Measured(folder, load_expectations())))
    known = text[text.index("## What is known") : text.index("## What the documents leave open")]
    assert "**Round of FLOAT64** (1 × rejected)." in known
    assert f'`harness run -t directml -k "{shown}"`' in known


def test_the_same_run_gives_the_same_page(run: Path) -> None:
    assert list(page(Measured(run, load_expectations()))) == list(page(Measured(run, load_expectations())))


def test_a_run_without_the_api_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "r", [], cpu=TargetInfo("CPUExecutionProvider"))
    assert main([str(folder)]) == 2
    assert (
        capsys.readouterr()
        .err.rstrip()
        .endswith("no target of this run is DirectML's own API; run: harness run -t directml")
    )
    assert main([]) == 2
    assert main([str(tmp_path / "none")]) == 2


def test_a_query_that_a_shell_would_take_apart_is_quoted() -> None:
    assert (
        command(["Round:case=a", "Round:case=a;X=float32[1]"])
        == '`harness run -t directml -k Round:case=a -k "Round:case=a;X=float32[1]"`'
    )
