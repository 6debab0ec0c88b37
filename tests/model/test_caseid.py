from __future__ import annotations

import pytest
from hypothesis import given

from harness.model import caseid
from harness.model.caseid import TensorTerm
from tests.model.test_query import SHAPES, case_ids


def test_an_id_says_what_it_names() -> None:
    parsed = caseid.parse(
        "GatherND@13:sweep=batch;data=float16[3,4];indices=int64[2];batch_dims=0;scalar=int8[]"
    )
    assert (parsed.operator, parsed.opset) == ("GatherND", 13)
    assert parsed.terms["sweep"] == "batch"
    assert parsed.terms["batch_dims"] == "0"
    assert parsed.tensors == {
        "data": TensorTerm("float16", (3, 4)),
        "indices": TensorTerm("int64", (2,)),
        "scalar": TensorTerm("int8", ()),
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GatherND",
        "GatherND@13",
        "GatherND@13:",
        "GatherND@x:a=b",
        "GatherND@13:a",
        "GatherND@13:a=1;a=2",
        "@1:a=b",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a case id"):
        caseid.parse(text)


@given(SHAPES)
def test_tensor_terms_go_there_and_back(shape: tuple[int, ...]) -> None:
    term = caseid.tensor_term("data", "bfloat16", shape)
    assert caseid.parse(f"X@1:{term}").tensors == {"data": TensorTerm("bfloat16", shape)}


@pytest.mark.slow
@given(case_ids())
def test_parsed_ids_can_be_written_again(case_id: str) -> None:
    parsed = caseid.parse(case_id)
    assert (
        f"{parsed.operator}@{parsed.opset}:{';'.join(f'{k}={v}' for k, v in parsed.terms.items())}" == case_id
    )
