from __future__ import annotations

import pytest

from harness.model.case import Validity
from harness.model.header import Header
from harness.model.reference.feature_levels import documented_tensor, tensors_documented
from harness.model.result import Error
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from harness.results.tensor_support import DATA_TYPES, RANKS, Status, SupportCell, SupportKey, TensorSupport
from tests import synthetic

REFUSED = Error("CreateOperator E_INVALIDARG")


def collected(
    *given: tuple[str, Outcome, Validity], level: str | None = "6_4"
) -> dict[SupportKey, SupportCell]:
    info = TargetInfo("DirectML", max_feature_level=level)
    support = TensorSupport(Header(1, "r", "", 0, {}, {"directml": info}))
    for number, (call, outcome, validity) in enumerate(given):
        error = REFUSED if outcome is Outcome.REJECTED else None
        support.add(
            synthetic.result(
                f"c{number}", outcome, target="directml", validity=validity, error=error, call=call
            )
        )
    return {cell.key: cell for cell in support.cells("directml")}


def gather(operator: str, data: str, indices: str, rank: int, output: str = "", output_rank: int = 0) -> str:
    return f"{operator} InputTensor={data}[{rank}] IndicesTensor={indices}[{rank}] OutputTensor={output or data}[{output_rank or rank}]"


VALID, INVALID, UNSPECIFIED = Validity.VALID, Validity.INVALID, Validity.UNSPECIFIED
PASS, REJECTED, ACCEPTED = Outcome.PASS, Outcome.REJECTED, Outcome.ACCEPTED_INVALID


def test_there_is_a_cell_for_everything_the_tables_could_speak_of() -> None:
    calls = [
        f"{operator} InputTensor=UINT4[1] IndicesTensor=UINT4[1] OutputTensor=INT8[1]"
        for operator in ("GATHER_ND", "GATHER_ND1")
    ]
    cells = collected(*((call, REJECTED, VALID) for call in calls))
    assert len(cells) == (3 + 3) * len(DATA_TYPES) * len(RANKS) == 594
    assert {cell.status for cell in cells.values()} == {Status.NOT_RUN}
    assert collected() == {}


def test_the_tensors_that_tables_speak_of() -> None:
    assert tensors_documented("GATHER_ND1") == ("InputTensor", "IndicesTensor", "OutputTensor")
    assert tensors_documented("REDUCE") == ("InputTensor", "OutputTensor")
    assert tensors_documented("NOTHING") == ()


def test_the_tables_in_force_at_a_level() -> None:
    assert documented_tensor("GATHER_ELEMENTS", "IndicesTensor", "2_1") == (4, 4, ("UINT32",))
    assert documented_tensor("GATHER_ELEMENTS", "IndicesTensor", "3_1")[:2] == (1, 8)
    assert "INT64" in documented_tensor("GATHER_ND1", "InputTensor", "6_4")[2]
    assert "INT64" not in documented_tensor("GATHER_ND1", "InputTensor", "4_0")[2]
    assert documented_tensor("GATHER_ND1", "InputTensor", "2_1") == (0, -1, ())


def test_tables_by_value_are_taken_together() -> None:
    least, most, dtypes = documented_tensor("REDUCE", "OutputTensor", "1_0")
    assert (least, most, set(dtypes)) == (4, 4, {"UINT32", "FLOAT32", "FLOAT16"})


def test_a_valid_call_is_evidence_for_each_of_its_tensors() -> None:
    cells = collected((gather("GATHER_ND", "INT8", "UINT32", 3), PASS, VALID))
    for tensor, dtype in (("InputTensor", "INT8"), ("IndicesTensor", "UINT32"), ("OutputTensor", "INT8")):
        cell = cells[SupportKey("GATHER_ND", tensor, dtype, 3)]
        assert (cell.status, cell.documented, cell.since) == (Status.AS_DOCUMENTED, True, "3_0")
        assert cell.result is not None
        assert cell.result.case == "c0"
    assert sum(cell.status is not Status.NOT_RUN for cell in cells.values()) == 3


def test_each_status() -> None:
    cells = collected(
        (gather("GATHER_ND", "INT8", "UINT32", 3), REJECTED, VALID),
        (gather("GATHER_ND", "FLOAT32", "INT8", 2), REJECTED, INVALID),
        (gather("GATHER_ND1", "FLOAT32", "INT8", 2), ACCEPTED, INVALID),
    )
    assert cells[SupportKey("GATHER_ND", "InputTensor", "INT8", 3)].status is Status.REJECTED
    assert cells[SupportKey("GATHER_ND", "IndicesTensor", "INT8", 2)].status is Status.AS_DOCUMENTED
    assert cells[SupportKey("GATHER_ND1", "IndicesTensor", "INT8", 2)].status is Status.ACCEPTED
    assert cells[SupportKey("GATHER_ND1", "InputTensor", "FLOAT32", 2)].status is Status.NOT_RUN


def test_an_invalid_call_says_nothing_against_a_documented_cell() -> None:
    cells = collected((gather("GATHER_ND", "INT8", "UINT32", 3), REJECTED, INVALID))
    assert cells[SupportKey("GATHER_ND", "InputTensor", "INT8", 3)].status is Status.NOT_RUN


def test_one_result_is_enough_whatever_else_was_refused() -> None:
    """Calls of one data type and rank can be refused for their sizes."""
    call = gather("GATHER_ND", "INT8", "UINT32", 3)
    cells = collected((call, REJECTED, VALID), (call, Outcome.MISMATCH, VALID), (call, PASS, VALID))
    cell = cells[SupportKey("GATHER_ND", "InputTensor", "INT8", 3)]
    assert cell.status is Status.AS_DOCUMENTED
    assert cell.result is not None
    assert cell.result.case == "c2"


@pytest.mark.parametrize(
    "call",
    [
        gather("GATHER_ND", "FLOAT32", "UINT32", 2, output="INT32"),
        gather("GATHER_ND", "FLOAT32", "UINT32", 2, output_rank=3),
    ],
    ids=["another output type", "another output rank"],
)
def test_a_call_that_breaks_another_rule_is_no_evidence(call: str) -> None:
    assert {cell.status for cell in collected((call, ACCEPTED, UNSPECIFIED)).values()} == {Status.NOT_RUN}


def test_a_call_of_an_operator_without_tables_has_no_cell() -> None:
    assert collected((gather("NOTHING", "FLOAT32", "UINT32", 2), ACCEPTED, UNSPECIFIED)) == {}


def test_an_optional_tensor_may_be_absent_and_a_required_one_may_not() -> None:
    tensors = "InputTensor=FLOAT32[4] FilterTensor=FLOAT32[4] OutputTensor=FLOAT32[4]"
    assert (
        collected((f"CONVOLUTION {tensors}", PASS, VALID))[
            SupportKey("CONVOLUTION", "FilterTensor", "FLOAT32", 4)
        ].status
        is Status.AS_DOCUMENTED
    )
    assert collected((f"CONVOLUTION {tensors.replace('FilterTensor', 'BiasTensor')}", PASS, VALID)) == {}


def test_two_undocumented_tensors_say_nothing_of_either() -> None:
    round_cells = collected(
        ("ELEMENT_WISE_ROUND InputTensor=INT8[2] OutputTensor=INT8[2]", REJECTED, INVALID)
    )
    assert (
        round_cells[SupportKey("ELEMENT_WISE_ROUND", "OutputTensor", "INT8", 2)].status
        is Status.AS_DOCUMENTED
    )
    cells = collected((gather("GATHER_ND", "INT64", "INT8", 2), REJECTED, INVALID), level="3_0")
    assert {cell.status for cell in cells.values()} == {Status.NOT_RUN}


def test_a_target_is_held_against_the_level_of_its_device() -> None:
    call = gather("GATHER_ND", "INT64", "UINT32", 2)
    key = SupportKey("GATHER_ND", "InputTensor", "INT64", 2)
    assert collected((call, PASS, VALID), level="6_4")[key].status is Status.AS_DOCUMENTED
    old = collected((call, PASS, VALID), level="4_0")[key]
    assert (old.status, old.documented, old.since) == (Status.ACCEPTED, False, "4_1")
    assert collected((call, PASS, VALID), level=None)[key].documented


def test_a_crash_is_no_refusal() -> None:
    documented = gather("GATHER_ND", "INT8", "UINT32", 3)
    undocumented = gather("GATHER_ND", "FLOAT32", "INT8", 2)
    cells = collected((documented, Outcome.CRASH, VALID), (undocumented, Outcome.CRASH, INVALID))
    assert cells[SupportKey("GATHER_ND", "InputTensor", "INT8", 3)].status is Status.REJECTED
    assert cells[SupportKey("GATHER_ND", "IndicesTensor", "INT8", 2)].status is Status.NOT_RUN
