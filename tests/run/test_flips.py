"""Flip tests: one thing about a right output is altered, and the judged outcome must change. No mutation may
survive."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.model.case import Options, Tensor, Validity
from harness.model.dtypes import DTYPES
from harness.model.verdict import Outcome
from harness.operators import OPERATORS
from harness.run.judge import Judgement, judge
from harness.targets.fake import alter
from harness.targets.fake_script import ALTERATIONS
from tests.calling import exact
from tests.prepared import (
    OPERATOR_DTYPES,
    OPSETS,
    PROVIDER,
    answered,
    graph_of,
    legal_dtypes,
    placed,
    prepare,
    right_output,
)
from tests.running import harness, results_of

FLOATS = [name for name, entry in DTYPES.items() if entry.is_float]


def outcome_of(prepared: object, output: Tensor) -> Outcome:
    return judge(
        prepared, graph_of(prepared), answered(output, placed(prepared.case.operator)), PROVIDER
    ).outcome


def test_every_operator_and_dtype_is_flipped() -> None:
    assert {operator for operator, _ in OPERATOR_DTYPES} == set(OPSETS)
    assert set(legal_dtypes("GatherElements")) == {name for name, entry in DTYPES.items() if not entry.narrow}
    assert set(legal_dtypes("Round")) == set(FLOATS)


@pytest.mark.parametrize(("operator", "dtype"), OPERATOR_DTYPES)
def test_the_right_output_passes(operator: str, dtype: str) -> None:
    prepared = prepare(operator, dtype)
    found = judge(prepared, graph_of(prepared), answered(right_output(prepared), placed(operator)), PROVIDER)
    assert (found.outcome, found.placed_on, found.error, found.diff) == (Outcome.PASS, PROVIDER, None, None)


@pytest.mark.parametrize("how", ALTERATIONS)
@pytest.mark.parametrize(("operator", "dtype"), OPERATOR_DTYPES)
def test_an_altered_output_is_a_mismatch(operator: str, dtype: str, how: str) -> None:
    prepared = prepare(operator, dtype)
    right = right_output(prepared)
    found = judge(prepared, graph_of(prepared), answered(alter(right, how), placed(operator)), PROVIDER)
    assert found.outcome is Outcome.MISMATCH
    assert found.diff is not None
    if how in ("dtype", "shape"):
        assert (found.diff.differing, found.diff.first_index) == (right.array.size, None)
    else:
        assert found.diff.differing == (2 if how == "order" else 1)
    if dtype in FLOATS and how in ("ulp", "zero_sign"):
        assert found.diff.max_ulp == 1
    if how == "nan" and dtype in FLOATS:
        assert found.diff.actual.startswith("nan ")


@pytest.mark.parametrize(("operator", "dtype"), OPERATOR_DTYPES)
def test_every_bit_of_every_element_counts(operator: str, dtype: str) -> None:
    """All elements of the output are finite, so that no flipped bit turns one NaN into another."""
    prepared = prepare(operator, dtype)
    right = right_output(prepared)
    if dtype == "string":
        for position in range(right.array.size):
            changed = right.array.copy()
            changed.reshape(-1)[position] += "."
            assert outcome_of(prepared, Tensor(dtype, changed)) is Outcome.MISMATCH
        return
    for bit in range(right.array.nbytes * 8):
        if dtype == "bool" and bit % 8:
            continue  # a bool has one bit; the others are no value of the type
        raw = bytearray(right.array.tobytes())
        raw[bit // 8] ^= 1 << bit % 8
        changed = np.frombuffer(bytes(raw), right.array.dtype).reshape(right.array.shape)
        assert outcome_of(prepared, Tensor(dtype, changed)) is Outcome.MISMATCH, bit


@pytest.mark.parametrize(("operator", "dtype"), OPERATOR_DTYPES)
def test_a_missing_or_additional_element_is_a_mismatch(operator: str, dtype: str) -> None:
    prepared = prepare(operator, dtype)
    right = right_output(prepared)
    assert outcome_of(prepared, Tensor(dtype, right.array[:-1])) is Outcome.MISMATCH
    assert (
        outcome_of(prepared, Tensor(dtype, np.concatenate([right.array, right.array[:1]])))
        is Outcome.MISMATCH
    )
    assert outcome_of(prepared, Tensor(dtype, right.array[..., None])) is Outcome.MISMATCH
    assert outcome_of(prepared, Tensor(dtype, right.array[:0])) is Outcome.MISMATCH


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("variant", OPERATORS["Round"].variants)
def test_one_rounding_mode_is_not_another(dtype: str, variant: str) -> None:
    halves = np.array([0.5, 1.5, 2.5, -0.5, 1.75, 0.0], np.float32)
    storage = (
        (halves.view(np.uint32) >> 16).astype(np.uint16)
        if dtype == "bfloat16"
        else halves.astype(DTYPES[dtype].storage)
    )
    prepared = prepare("Round", dtype, options=Options(variant=variant))._replace(
        inputs=(Tensor(dtype, storage),)
    )
    tested = graph_of(prepared, ("Floor", "Mul"))
    nodes = ((PROVIDER, "Floor"), (PROVIDER, "Mul"))
    for mode in (None, *OPERATORS["Round"].variants):
        output = exact("Round", prepared.inputs, {}, mode)
        wanted = Outcome.PASS if mode == variant else Outcome.MISMATCH
        assert judge(prepared, tested, answered(output, nodes), PROVIDER).outcome is wanted, mode


@pytest.mark.parametrize("operator", OPSETS)
def test_misplacement_is_never_a_pass(operator: str) -> None:
    prepared = prepare(operator, "float32")
    right = right_output(prepared)
    elsewhere = "CPUExecutionProvider"
    for nodes, placed_on in (
        (None, None),
        ((), None),
        (placed(operator, elsewhere), elsewhere),
        (placed("Identity"), None),
        (((PROVIDER, operator), (elsewhere, operator)), elsewhere),
        (((PROVIDER, "Identity"), (elsewhere, operator)), elsewhere),
    ):
        found = judge(prepared, graph_of(prepared), answered(right, nodes), PROVIDER)
        assert (found.outcome, found.placed_on) == (Outcome.NOT_PLACED, placed_on), nodes
        assert found.error is not None
        assert found.error.class_ == "NotPlaced"


def test_a_node_that_the_provider_fused_is_its_own() -> None:
    prepared = prepare("Round", "float32")
    right = right_output(prepared)

    def outcome(*nodes: tuple[str, str], optimization: str = "off", fuses: bool = True) -> Outcome:
        graph = graph_of(prepared, ("Floor", "Mul"))._replace(optimization=optimization)  # type: ignore[arg-type]
        return judge(prepared, graph, answered(right, nodes)._replace(fuses=fuses), PROVIDER).outcome

    assert outcome((PROVIDER, "DmlFusedNode_0_0")) is Outcome.PASS
    assert outcome((PROVIDER, "DmlFusedNode_0_0"), ("CPUExecutionProvider", "Identity")) is Outcome.PASS
    assert outcome((PROVIDER, "DmlFusedNode_0_0"), ("CPUExecutionProvider", "Mul")) is Outcome.NOT_PLACED
    assert outcome(("CPUExecutionProvider", "DmlFusedNode_0_0")) is Outcome.NOT_PLACED
    assert (
        outcome((PROVIDER, "DmlFusedNode_0_0"), optimization="all") is Outcome.NOT_PLACED
    )  # Mul may be folded away
    assert (
        outcome((PROVIDER, "DmlFusedNode_0_0"), fuses=False) is Outcome.NOT_PLACED
    )  # told to keep them apart


def test_a_composed_graph_needs_as_many_nodes_of_each_type_as_it_has() -> None:
    prepared = prepare("Round", "float32")
    right = right_output(prepared)

    def found(*operators: str, optimization: str = "off") -> Judgement:
        graph = graph_of(prepared, ("Floor", "Floor", "Mul"))._replace(optimization=optimization)  # type: ignore[arg-type]
        nodes = tuple((PROVIDER, operator) for operator in operators)
        return judge(prepared, graph, answered(right, nodes), PROVIDER)

    assert found("Floor", "Mul", "Floor").outcome is Outcome.PASS
    lost = found("Floor", "Mul")
    assert lost.outcome is Outcome.NOT_PLACED
    assert lost.error is not None
    assert lost.error.message == "only 1 of 2 Floor are in the graph that ran"
    assert found("Floor", "Mul", optimization="all").outcome is Outcome.PASS  # equal nodes may be merged


def test_every_operator_of_a_variant_must_be_placed() -> None:
    prepared = prepare("Round", "float32")
    tested = graph_of(prepared, ("Floor", "Mul"))
    right = right_output(prepared)

    def outcome(*nodes: tuple[str, str]) -> Outcome:
        return judge(prepared, tested, answered(right, nodes), PROVIDER).outcome

    assert outcome((PROVIDER, "Floor"), (PROVIDER, "Mul")) is Outcome.PASS
    assert (
        outcome((PROVIDER, "Floor"), (PROVIDER, "Mul"), ("CPUExecutionProvider", "Identity")) is Outcome.PASS
    )  # a neighbour
    assert outcome((PROVIDER, "Floor")) is Outcome.NOT_PLACED
    assert outcome((PROVIDER, "Floor"), ("CPUExecutionProvider", "Mul")) is Outcome.NOT_PLACED


@pytest.mark.parametrize(("operator", "dtype"), OPERATOR_DTYPES)
def test_accepting_an_invalid_case_is_not_a_pass(operator: str, dtype: str) -> None:
    prepared = prepare(operator, dtype, validity=Validity.INVALID, rule="a rule")
    assert outcome_of(prepared, right_output(prepared)) is Outcome.ACCEPTED_INVALID


@pytest.mark.parametrize(("operator", "dtype"), OPERATOR_DTYPES)
@pytest.mark.parametrize("how", ["bit", "shape"])
def test_a_documented_result_that_contradicts_the_oracle_is_an_oracle_error(
    operator: str, dtype: str, how: str
) -> None:
    right = right_output(prepare(operator, dtype))
    agreeing = prepare(operator, dtype, documented=(right.array,))
    assert outcome_of(agreeing, right) is Outcome.PASS
    contradicting = prepare(operator, dtype, documented=(alter(right, how).array,))
    assert outcome_of(contradicting, right) is Outcome.ORACLE_ERROR
    assert outcome_of(contradicting, alter(right, how)) is Outcome.ORACLE_ERROR


SCRIPT = [  # the outcome that each scripted answer must lead to, on a case of its own
    ("GatherElements@13:sweep=values;data=float32[257];values=in_range", "bit", "mismatch"),
    ("GatherElements@13:sweep=values;data=float32[257];values=last", "ulp", "mismatch"),
    ("GatherElements@13:sweep=values;data=float32[257];values=negative", "order", "mismatch"),
    ("GatherElements@13:sweep=values;data=float32[257];values=mixed", "dtype", "mismatch"),
    ("GatherElements@13:sweep=values;data=float32[257];values=boundary", "shape", "mismatch"),
    ("Round@22:sweep=values;X=float16;values=specials;shapes=static", "zero_sign", "mismatch"),
    ("Round@22:sweep=values;X=float64;values=specials;shapes=static", "nan", "mismatch"),
    ("GatherND@13:case=documented_onnx_1", "misplace", "not_placed"),
    ("GatherND@13:case=documented_onnx_2", "reject", "rejected"),
    ("GatherND@13:case=data_is_a_scalar", "accept", "accepted_invalid"),
    ("GatherND@13:case=indices_is_a_scalar", "pass", "rejected"),
    ("Round@22:sweep=empty;X=bfloat16[0];shapes=static", "unsupported", "unsupported"),
    ("Round@22:sweep=empty;X=bfloat16[0,3];shapes=static", "raise", "rejected"),
    ("Round@22:sweep=empty;X=bfloat16[3,0];shapes=static", "pass", "pass"),
    ("Round@11:sweep=empty;X=float16[0];shapes=static", "crash", "crash"),
    ("Round@11:sweep=empty;X=float32[0];shapes=static", "garbage", "crash"),
]


def test_flips_turn_a_whole_run_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(
        "rules:\n" + "".join(f'  - {{match: "{query}", do: {how}}}\n' for query, how, _ in SCRIPT),
        encoding="utf-8",
    )
    queries = [part for query, _, _ in SCRIPT for part in ("-k", query)]
    monkeypatch.chdir(tmp_path)
    ended = harness("run", "-t", f"fake,script={script}", *queries, "-o", "out")
    assert ended.code == 1
    found = results_of(tmp_path / "out")
    for query, how, outcome in SCRIPT:
        head, _, terms = query.partition(":")
        chosen = {
            result["outcome"]
            for case, result in found.items()
            if case.startswith(f"{head}:")
            and all(f"{term}[" in case or f"{term};" in f"{case};" for term in terms.split(";"))
        }
        assert chosen == {outcome}, (query, how)
    failing = {case for case, result in found.items() if result["verdict"] != "expected"}
    assert failing == {
        case
        for case, result in found.items()
        if result["outcome"] != {"valid": "pass", "invalid": "rejected"}[result["validity"]]
    }
    assert OPSETS.keys() == {result["operator"] for result in found.values()}


def test_the_same_run_is_green_without_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    queries = [part for query, _, _ in SCRIPT for part in ("-k", query)]
    ended = harness("run", "-t", "fake", *queries, "-o", "out")
    assert ended.code == 0
    assert {result["verdict"] for result in results_of(tmp_path / "out").values()} == {"expected"}
