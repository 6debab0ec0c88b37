"""`docs/directml-coverage.md` is of the CSV file beside it, and that of the harness's tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from msgspec import UNSET

from harness.model.case import Validity
from harness.model.reference.directml import operator_names
from harness.model.result import Error, Result
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from tests import synthetic
from tools import directml_cells, directml_coverage
from tools.directml_cells import CoverageCell, CoverageKey, cells, measure, read_cells, registrations
from tools.directml_coverage import CELLS, CONTRADICTIONS, page

TARGETS = {
    "dml": TargetInfo("DmlExecutionProvider", onnxruntime="1.24.4", directml="1.15.4"),
    "directml": TargetInfo("DirectML", directml="1.15.4"),
    "cpu": TargetInfo("CPUExecutionProvider", onnxruntime="1.31.1"),
}
OUTCOMES = (
    ("Elu@7:X=float32[3,4]", "directml", Outcome.PASS, "1_0", "ACTIVATION_ELU InputTensor=FLOAT32[4] OutputTensor=FLOAT32[4]"),
    ("Elu@7:X=float32[3,4]", "dml", Outcome.REJECTED, "1_0", None),
    ("Elu@7:X=float32[3,4]", "cpu", Outcome.PASS, "1_0", None),
    ("Elu@22:X=float16[0]", "dml", Outcome.PASS, "1_0", None),
    ("Tile@13:input=float64[3]", "directml", Outcome.PASS, "beyond", "TILE InputTensor=FLOAT64[1] OutputTensor=FLOAT64[1]"),
    ("GRU@7:X=float16[3,2,2];W=float16[1,9,2]", "dml", Outcome.NOT_PLACED, "beyond", None),
    ("Einsum@12:Inputs.0=float32[2]", "dml", Outcome.PASS, "beyond", None),
)  # fmt: skip
INVALID = ("Elu@7:X=float64[3]", "dml", Outcome.REJECTED, "1_0", None)


def result(
    case: str, target: str, outcome: Outcome, level: str, call: str | None, validity: Validity
) -> Result:
    error = None if outcome is Outcome.PASS else Error("Fail")
    return synthetic.result(
        case,
        outcome,
        target=target,
        validity=validity,
        levels={"directml": level},
        error=error,
        call=UNSET if call is None else call,
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    results = [
        *(result(*each, Validity.VALID) for each in OUTCOMES),
        result(*INVALID, Validity.INVALID),
    ]
    return synthetic.write_results(tmp_path / "run.jsonl", results, TARGETS, run_id="r")


def test_valid_cases_with_elements_count_by_the_call_or_the_only_operator(run: Path) -> None:
    measured = measure([run])
    assert measured.ran == {
        CoverageKey("ACTIVATION_ELU", "1_0", "FLOAT32"): {
            "directml": Counter(conform=1),
            "dml": Counter(refused=1),
        },
        CoverageKey("TILE", "beyond", "FLOAT64"): {"directml": Counter(conform=1)},
        CoverageKey("GRU", "1_0", "FLOAT16"): {"dml": Counter({"no kernel": 1})},
    }
    assert measured.ambiguous == {"Einsum": 1}
    assert measured.targets["dml"] == "onnxruntime 1.24.4, DirectML 1.15.4"


@pytest.mark.slow
def test_the_counts_of_a_table_are_added(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once = measure([run])
    old = tmp_path / "old.csv"
    old.write_text(directml_cells.write_cells(cells(once.ran), once), encoding="utf-8")
    assert directml_cells.main([str(run), str(old)]) == 0
    old.write_text(capsys.readouterr().out, encoding="utf-8")
    found, comments = read_cells(old)
    twice = {cell.key: cell.ran["dml"] for cell in found if directml_coverage.ran(cell)}
    assert twice[CoverageKey("ACTIVATION_ELU", "1_0", "FLOAT32")] == Counter(refused=2)
    assert comments[-1].endswith("Einsum 2")


def test_every_operator_has_a_cell_and_each_level_those_it_adds(run: Path) -> None:
    found = {cell.key: cell for cell in cells(measure([run]).ran)}
    assert {f"DML_OPERATOR_{key.operator}" for key in found} == set(operator_names())
    assert [key.level for key in found if key[::2] == ("ACTIVATION_ELU", "FLOAT32")] == ["1_0", "2_0", "3_0"]
    assert found[CoverageKey("ACTIVATION_ELU", "1_0", "FLOAT32")][1:3] == ("4", "yes")
    assert found[CoverageKey("ELEMENT_WISE_ADD", "4_1", "INT64")][1:3] == ("1-8", "yes")
    assert CoverageKey("ELEMENT_WISE_ADD", "4_1", "FLOAT32") not in found
    assert found[CoverageKey("TILE", "beyond", "FLOAT64")][1:3] == ("", "yes")


def test_what_registers_an_operator() -> None:
    assert registrations("GATHER_ND") == {}
    assert registrations("MULTIHEAD_ATTENTION")["FLOAT16"] == "other"
    assert registrations("ACTIVATION_GELU")["FLOAT32"] == "other"
    assert registrations("ELEMENT_WISE_ABS") == dict.fromkeys(
        ("FLOAT32", "FLOAT16", "INT64", "INT32", "INT16", "INT8"), "yes"
    )
    assert registrations("ACTIVATION_PARAMETERIZED_RELU")["INT32"] == "yes"


def cell(ranks: str, registered: str, level: str = "1_0", **dml: int) -> CoverageCell:
    counts = Counter({kind.replace("_", " "): number for kind, number in dml.items()})
    return CoverageCell(CoverageKey("ELEMENT_WISE_ABS", level, "FLOAT32"), ranks, registered, {"dml": counts})


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (cell("4", "yes", conform=3), []),
        (cell("4", "yes", conform=3, refused=1), []),
        (cell("4", "yes", refused=1), ["Documented, registered, and refused by the provider"]),
        (cell("4", "yes", no_kernel=1), []),
        (cell("4", "yes", differ=1), ["Documented, and the result differs"]),
        (cell("4", "yes"), ["Documented, registered, and no case ran"]),
        (cell("", "yes", "beyond", conform=1), ["Ran, and no table has it"]),
        (cell("4", "no", conform=1), ["Documented, and not registered for this data type"]),
    ],
)
def test_contradictions(one: CoverageCell, found: list[str]) -> None:
    assert [title for title, _, test in CONTRADICTIONS if test(one)] == found


@pytest.mark.slow
def test_a_row_of_the_page() -> None:
    lines = list(page([cell("4", "yes", conform=3, refused=1, no_kernel=2)], ["dml: 1.24.4"]))
    assert r"| **ELEMENT_WISE_ABS**<br>Abs | 1_0 | F32, 4 | all | F32 3/4, no kernel 2 | no case |" in lines


def test_the_page_is_that_of_its_cells() -> None:
    text = CELLS.with_suffix(".md").read_text("utf-8")
    made = "\n".join(page(*read_cells(CELLS))).rstrip() + "\n"
    assert made == text, "python -m tools.directml_coverage"


def test_documents_and_registrations_in_the_cells_are_those_of_the_tables() -> None:
    kept, _ = read_cells(CELLS)
    now = list(cells({each.key: each.ran for each in kept if directml_coverage.ran(each)}))
    assert [each[:3] for each in now] == [each[:3] for each in kept], "python -m tools.directml_cells RUN…"


def test_bad_input_is_one_line(tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (wrong := tmp_path / "wrong.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert directml_coverage.main([str(wrong)]) == 2
    assert capsys.readouterr().err == (
        f"harness: {wrong}: not a table of cells; write it with `python -m tools.directml_cells RUN`\n"
    )
    assert directml_cells.main([]) == 2
    assert capsys.readouterr().err == "harness: write: python -m tools.directml_cells RUN…\n"
    cpu = synthetic.write_results(tmp_path / "cpu.jsonl", [], {"cpu": TARGETS["cpu"]})
    assert directml_cells.main([str(cpu)]) == 2
    assert "give a run of `dml` and `directml`" in capsys.readouterr().err
