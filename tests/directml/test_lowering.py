"""Lowering needs no DLL: what is asserted here is what DirectML's documents ask of a description."""

from __future__ import annotations

import json

import numpy as np
import pytest

from harness.compile.directml import lowered, prepared
from harness.compile.prepare import by_graph
from harness.model.case import (
    Case,
    DirectmlOptions,
    DirectmlTensor,
    Options,
    Tensor,
    TensorSpec,
    Validity,
)
from harness.model.expected import Exact
from harness.model.query import parse_all
from harness.operators import OPERATORS
from harness.operators.directml import lowering
from harness.operators.directml.description import Description, call_of, decode
from harness.operators.directml.layout import buffer_bytes
from harness.operators.directml.lowering import NotExpressible
from harness.run.oracle import oracle
from harness.specs.selection import Selection
from harness.specs.sweeps import calls
from tests.plans import PARTS, plan_in_parts


def lower(case: Case) -> Description:
    return lowering.lower(case, calls.call_of(case))


def gather_nd(
    data: tuple[int, ...], indices: tuple[int, ...], batch: int = 0, dtype: str = "int64", **asked: object
) -> Case:
    inputs = (TensorSpec("data", "float32", data), TensorSpec("indices", dtype, indices, "first"))
    attributes = {"batch_dims": batch} if batch else {}
    return Case(
        "GatherND@13:case=x",
        "GatherND",
        13,
        attributes,
        inputs,
        directml=DirectmlOptions(**asked) if asked else None,
    )


def gather_elements(
    data: tuple[int, ...], indices: tuple[int, ...], axis: int, dtype: str = "float32", **asked: object
) -> Case:
    inputs = (TensorSpec("data", dtype, data), TensorSpec("indices", "int32", indices, "first"))
    options = DirectmlOptions(**asked) if asked else None
    return Case("GatherElements@13:case=x", "GatherElements", 13, {"axis": axis}, inputs, directml=options)


def rounding(
    dtype: str = "float32", shape: tuple[int, ...] = (3,), variant: str | None = None, **asked: object
) -> Case:
    options = DirectmlOptions(**asked) if asked else None
    return Case(
        "Round@22:case=x",
        "Round",
        22,
        {},
        (TensorSpec("X", dtype, shape),),
        Options(variant=variant),
        directml=options,
    )


def test_a_description_is_canonical_json() -> None:
    model = lower(gather_nd((2, 3), (2, 1))).encode()
    assert json.loads(model) == {
        "operator": "DML_OPERATOR_GATHER_ND1",
        "tensors": {
            "InputTensor": {
                "dtype": "float32",
                "sizes": [2, 3],
                "strides": None,
                "flags": 0,
                "bytes": 24,
                "alignment": 0,
            },
            "IndicesTensor": {
                "dtype": "int64",
                "sizes": [2, 1],
                "strides": None,
                "flags": 0,
                "bytes": 16,
                "alignment": 0,
            },
            "OutputTensor": {
                "dtype": "float32",
                "sizes": [2, 3],
                "strides": None,
                "flags": 0,
                "bytes": 24,
                "alignment": 0,
            },
        },
        "attributes": {"InputDimensionCount": 2, "IndicesDimensionCount": 2, "BatchDimensionCount": 0},
        "inputs": ["InputTensor", "IndicesTensor"],
        "outputs": ["OutputTensor"],
        "number": 140,
        "members": [
            "InputTensor:input",
            "IndicesTensor:input",
            "OutputTensor:output",
            "InputDimensionCount:uint",
            "IndicesDimensionCount:uint",
            "BatchDimensionCount:uint",
        ],
        "in_place": None,
        "output_shapes": [[2, 3]],
        "flags": 0,
        "minimum_feature_level": "1_0",
    }
    assert model == json.dumps(json.loads(model), sort_keys=True, separators=(",", ":")).encode()
    assert decode(model).encode() == model


def test_gather_nd_pads_all_tensors_to_one_dimension_count() -> None:
    low = lower(gather_nd((4, 5, 6), (2, 3, 2, 2)))
    assert [low.tensors[name].sizes for name in ("InputTensor", "IndicesTensor", "OutputTensor")] == [
        (1, 4, 5, 6), (2, 3, 2, 2), (2, 3, 2, 6),
    ]  # fmt: skip
    assert (low.attributes["InputDimensionCount"], low.attributes["IndicesDimensionCount"]) == (3, 4)


@pytest.mark.parametrize(
    ("case", "documented", "by_formula"),
    [  # DML_GATHER_ND_OPERATOR_DESC: the sizes example, example 2; DML_GATHER_ND1_OPERATOR_DESC: example 2
        (gather_nd((3, 4, 5, 6, 7), (1, 2, 3), dimension_count=5), (1, 1, 2, 6, 7), (1, 2, 5, 6, 7)),
        (gather_nd((2, 2, 2), (2, 2), dimension_count=4), (1, 1, 2, 2), (1, 2, 2, 2)),
        (gather_nd((3, 2, 2), (3, 2, 2), batch=1, dimension_count=4), (1, 1, 3, 2), (3, 2, 2, 2)),
    ],
)
def test_output_sizes_are_those_of_the_examples_and_not_of_the_printed_formula(
    case: Case, documented: tuple[int, ...], by_formula: tuple[int, ...]
) -> None:
    low = lower(case)
    assert low.tensors["OutputTensor"].sizes == documented
    given, index = low.tensors["InputTensor"].sizes, low.tensors["IndicesTensor"].sizes
    count, meaningful = len(given), low.attributes["IndicesDimensionCount"]
    printed = index[count - meaningful : count - 1] + given[count - index[-1] :]
    assert (1,) * (count - len(printed)) + printed == by_formula


def test_the_axis_moves_with_the_leading_ones() -> None:
    assert lower(gather_elements((3, 4), (3, 2), -1)).attributes == {"Axis": 1}
    low = lower(gather_elements((3, 4), (3, 2), 0, dimension_count=5))
    assert low.attributes == {"Axis": 3}
    assert {tensor.sizes for tensor in low.tensors.values()} == {(1, 1, 1, 3, 4), (1, 1, 1, 3, 2)}


def test_tensors_of_gather_elements_keep_their_ranks() -> None:
    """Equal ranks are a rule of ONNX and of DirectML: padding would take the breach away."""
    low = lower(gather_elements((1, 3), (3,), 1))
    assert [len(tensor.sizes) for tensor in low.tensors.values()] == [2, 1, 1]
    assert lower(rounding(shape=())).tensors["InputTensor"].sizes == (1,)


@pytest.mark.parametrize(("variant", "mode"), [(None, 0), ("toward_zero", 1), ("halves_away_from_zero", 2)])
def test_a_variant_of_round_is_a_rounding_mode(variant: str | None, mode: int) -> None:
    assert lower(rounding(variant=variant)).attributes == {"RoundingMode": mode}


def test_gather_nd_has_no_batches() -> None:
    low = lower(gather_nd((2, 3), (2, 1), operator="DML_OPERATOR_GATHER_ND"))
    assert low.operator == "DML_OPERATOR_GATHER_ND"
    assert set(low.attributes) == {"InputDimensionCount", "IndicesDimensionCount"}


def test_bool_is_passed_as_uint8_and_comes_back_as_bool() -> None:
    case = gather_elements((3,), (3,), 0, "bool")
    description = lower(case)
    assert description.tensors["InputTensor"].dtype == description.tensors["OutputTensor"].dtype == "uint8"
    assert lowered(case, calls.call_of(case), description).outputs == (("output", 9),)
    plain = gather_elements((3,), (3,), 0, "uint8")
    assert lowered(plain, calls.call_of(plain), lower(plain)).outputs == (("output", 2),)


def test_members_that_a_case_writes_replace_the_lowered_ones() -> None:
    changed = DirectmlTensor(dtype="int32", sizes=(7,), bytes=64, alignment=32, flags=1)
    low = lower(rounding(attributes=(("RoundingMode", 3),), tensors=(("OutputTensor", changed),)))
    assert low.attributes == {"RoundingMode": 3}
    output = low.tensors["OutputTensor"]
    assert (output.dtype, output.sizes, output.bytes, output.alignment, output.flags) == (
        "int32",
        (7,),
        64,
        32,
        1,
    )
    assert low.tensors["InputTensor"].sizes == (3,)
    assert low.output_shapes == ((7,),)


def test_in_place_names_the_input_that_the_output_aliases() -> None:
    assert lower(rounding(in_place="InputTensor")).in_place == "InputTensor"
    inplace = Case(
        "Round@22:case=x", "Round", 22, {}, (TensorSpec("X", "float32", (3,)),), Options(in_place=True)
    )
    assert lower(inplace).in_place == "InputTensor"
    assert lower(rounding()).in_place is None


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (rounding("bfloat16"), "DML_TENSOR_DATA_TYPE has no bfloat16"),
        (gather_elements((2,), (2,), 0, "string"), "DML_TENSOR_DATA_TYPE has no string"),
        (gather_elements((2,), (2,), -3), "Axis is a UINT and cannot be -2"),
        (gather_elements((2,), (2,), 2**32), "Axis is a UINT and cannot be 4294967296"),
        (gather_nd((2, 3), (2, 1), batch=-1), "BatchDimensionCount is a UINT and cannot be -1"),
    ],
)
def test_what_the_api_cannot_express(case: Case, why: str) -> None:
    with pytest.raises(NotExpressible, match=why):
        lower(case)


def test_a_case_with_strides_is_sent_as_buffers_and_judged_by_what_they_hold() -> None:
    case = gather_elements(
        (2, 3), (2, 3), 0, layout=(("InputTensor", "broadcast"), ("IndicesTensor", "padded"))
    )
    inputs = (
        Tensor("float32", np.arange(6, dtype=np.float32).reshape(2, 3)),
        Tensor("int32", np.ones((2, 3), np.int32)),
    )
    sent = prepared(case, calls.call_of(case), inputs, lower(case))
    assert sent.buffers is not None
    assert [tensor.array.shape for tensor in sent.buffers] == [(3,), (9,)]
    expected = oracle(sent, "DirectML")
    assert expected is not None
    (output,) = expected
    assert isinstance(output, Exact)
    assert output.tensor.array.tolist() == [[0, 1, 2], [0, 1, 2]]


def test_buffers_of_a_description_that_contradicts_the_case_are_its_elements() -> None:
    changed = (("InputTensor", DirectmlTensor(sizes=(2, 2), strides=(1,))),)
    case = rounding(tensors=changed)
    inputs = (Tensor("float32", np.zeros(3, np.float32)),)
    assert prepared(case, calls.call_of(case), inputs, lower(case)).inputs == inputs


def test_the_call_names_what_the_tables_speak_of() -> None:
    case = gather_nd((2, 3), (2, 1), operator="DML_OPERATOR_GATHER_ND", dimension_count=4)
    assert (
        call_of(lower(case).encode())
        == "GATHER_ND InputTensor=FLOAT32[4] IndicesTensor=INT64[4] OutputTensor=FLOAT32[4]"
    )


@pytest.mark.parametrize("part", PARTS)
def test_every_case_of_the_specs_is_lowered_as_the_api_asks(part: str) -> None:
    refused: list[str] = []
    selection = Selection(
        plan_in_parts(part), parse_all(["api=directml", "GatherND@13:sweep=batch", "Round@22:sweep=rank"])
    )
    seen = 0
    for valid in (True, False):
        for unit in by_graph(
            selection.cases(valid=valid), 0, "DirectML", lambda case, _: refused.append(case.id)
        ):
            low = decode(unit.graph.model)
            for one in unit.cases:
                seen += 1
                asked = one.case.directml
                for name, tensor in low.views():
                    if asked is None or name not in dict(asked.tensors):
                        assert tensor.bytes == buffer_bytes(tensor.dtype, tensor.sizes, tensor.strides)
                        assert tensor.bytes % 4 == 0
                        assert asked is None or asked.dimension_count in (None, len(tensor.sizes))
                if one.case.validity is Validity.VALID:
                    operator = OPERATORS[one.case.operator]
                    inputs = dict(zip(one.call.inputs, one.inputs, strict=True))
                    assert operator.family.broken_by_values(operator, one.call, inputs) is None, one.case.id
                    assert oracle(one, "DirectML") is not None
    assert seen > {PARTS[0]: 300, "the rest": 4000}[part]
    assert all("=string[" in case or "=bfloat16[" in case for case in refused)
    assert not any("api=directml" in case for case in refused)


def test_bool_and_uint8_are_one_call_and_two_units() -> None:
    cases = [gather_elements((3,), (3,), 0, dtype) for dtype in ("bool", "uint8", "uint8")]
    found = list(by_graph(cases, 0, "DirectML"))
    assert len({unit.graph.digest for unit in found}) == 1
    assert [(unit.graph.outputs, len(unit.cases)) for unit in found] == [
        ((("output", 9),), 1),
        ((("output", 2),), 2),
    ]


def test_a_pool_without_a_call_of_its_own_is_not_expressible() -> None:
    """As in a run of every operator on every provider."""
    inputs = (TensorSpec("x", "int8", (1, 4, 1)),)
    case = Case(
        "com.microsoft.NhwcMaxPool@1:case=x", "com.microsoft.NhwcMaxPool", 1, {"kernel_shape": (1,)}, inputs
    )
    with pytest.raises(NotExpressible):
        lower(case)
