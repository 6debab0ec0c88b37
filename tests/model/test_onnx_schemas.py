from __future__ import annotations

import pytest

from harness.model.dtypes import DTYPES
from harness.model.onnx_schemas import (
    OpsetUnavailable,
    UnknownOperator,
    latest_opset,
    operator_schema,
    operator_versions,
)
from harness.model.operator_schema import Attribute


def test_gather_nd_changes_between_opsets() -> None:
    eleven, twelve, thirteen = (operator_schema("GatherND", opset) for opset in (11, 12, 13))
    assert [s.since_version for s in (eleven, twelve, thirteen)] == [11, 12, 13]
    assert eleven.attributes == {}
    assert twelve.attributes == {"batch_dims": Attribute("INT", 0, False)}
    assert [p.name for p in thirteen.inputs] == ["data", "indices"]
    assert [p.name for p in thirteen.outputs] == ["output"]
    assert thirteen.inputs[1].dtypes == ("int64",)
    wide = {name for name, entry in DTYPES.items() if not entry.narrow}
    assert set(thirteen.inputs[0].dtypes) == wide
    assert wide - set(eleven.inputs[0].dtypes) == {"bfloat16"}


def test_later_opsets_use_the_definition_in_force() -> None:
    assert operator_schema("GatherND", 20).since_version == 13
    assert operator_schema("Round", 21).since_version == 11
    assert operator_schema("Round", 22).inputs[0].dtypes == ("float32", "float16", "float64", "bfloat16")


def test_output_dtype() -> None:
    assert operator_schema("GatherElements", 13).output_dtype({"data": "int8", "indices": "int64"}) == "int8"
    assert operator_schema("GatherElements", 13).output_dtype({"indices": "int64"}) is None
    assert operator_schema("Shape", 13).output_dtype({"data": "int8"}) == "int64"


def test_optional_inputs() -> None:
    assert [p.optional for p in operator_schema("Clip", 13).inputs] == [False, True, True]
    assert operator_schema("Clip", 13).input("min") is not None
    assert operator_schema("Clip", 13).input("mean") is None


def test_what_is_not_there() -> None:
    with pytest.raises(UnknownOperator, match="ONNX has no operator 'GaterND'"):
        operator_schema("GaterND", 13)
    with pytest.raises(OpsetUnavailable, match="GatherND exists since opset 11, not at 10"):
        operator_schema("GatherND", 10)
    with pytest.raises(OpsetUnavailable, match="whose newest is"):
        operator_schema("GatherND", latest_opset() + 1)


@pytest.mark.parametrize("name", operator_versions())
def test_every_operator_can_be_described(name: str) -> None:
    for opset in operator_versions()[name]:
        assert operator_schema(name, opset).name == name
