"""What is listed of the values of attributes is what ONNX documents."""

from __future__ import annotations

import onnx.defs
import pytest

from harness.model.onnx_schemas import operator_schema
from harness.model.reference.feature_levels import load
from harness.model.signatures import signature
from harness.operators import OPERATORS
from harness.operators.base import Call, TensorType
from harness.specs.coverage.attribute_cells import documented_values, has_meaning, possible_words, shown_words
from harness.specs.reading.load import load_specs

FREE = {"delimiter", "equation", "locale", "pattern", "value_string"}
"""Attributes of text whose values cannot be listed."""


def schemas() -> list[tuple[str, int]]:
    return [
        (spec.model.operator, opset)
        for spec in load_specs(())
        if spec.graph is None and signature(spec.model.operator) is None
        for opset in spec.opsets
    ]


@pytest.mark.slow
def test_every_attribute_of_text_has_its_values_listed() -> None:
    unlisted = {
        (operator, name)
        for operator, opset in schemas()
        for name, attribute in operator_schema(operator, opset).attributes.items()
        if attribute.type == "STRING" and name not in FREE and not documented_values(operator, name)
    }
    assert not unlisted


@pytest.mark.slow
def test_every_listed_value_stands_in_the_specification() -> None:
    texts: dict[tuple[str, str], str] = {}
    for operator, opset in schemas():
        schema = onnx.defs.get_schema(operator, opset, "")
        for name, attribute in schema.attributes.items():
            texts[operator, name] = texts.get((operator, name), "") + attribute.description + schema.doc
    missing = [
        (operator, name, value)
        for (operator, name), text in texts.items()
        for value in documented_values(operator, name)
        if not value.isdecimal() and value.lower() not in text.lower()
    ]
    assert not missing


@pytest.mark.slow
def test_every_flag_and_every_listed_name_is_an_attribute() -> None:
    known = load("attribute_values.yaml")
    names = {name for operator, opset in schemas() for name in operator_schema(operator, opset).attributes}
    listed = {name.rpartition(".")[2] for name in known["values"]} | set(known["flags"]) | set(known["types"])
    assert listed <= names
    for operator, opset in schemas():
        for name, attribute in operator_schema(operator, opset).attributes.items():
            if name in known["flags"]:
                assert attribute.default in (0, 1), (operator, name)


@pytest.mark.parametrize(
    ("operator", "opset", "shape", "attributes", "shown"),
    [
        (
            "ArgMax",
            13,
            (2, 3, 4),
            {"axis": -1, "keepdims": 0, "select_last_index": 0},
            {"last", "negative", "0"},
        ),
        ("ArgMax", 13, (2, 3, 4), {"axis": 1, "keepdims": 1, "select_last_index": 1}, {"middle", "1"}),
        ("Elu", 6, (2,), {"alpha": 1.0}, {"default"}),
        ("Elu", 6, (2,), {"alpha": 0.5}, {"other"}),
        ("Transpose", 13, (2, 3), {}, {"left out"}),
        ("Cast", 13, (2,), {"to": 7}, {"int64"}),
    ],
)
def test_the_words_of_a_call(
    operator: str, opset: int, shape: tuple[int, ...], attributes: dict[str, float], shown: set[str]
) -> None:
    call = Call({"x": TensorType("float32", shape)}, attributes, opset=opset)
    assert {word for _, word in shown_words(OPERATORS[operator], call)} == shown


def test_which_words_have_a_meaning() -> None:
    assert ("axis", "middle") in possible_words("ArgMax", 13)
    assert not has_meaning(("axis", "middle"), 2)
    assert has_meaning(("axis", "middle"), 3)
    assert not has_meaning(("axes", "negative"), 0)
    assert has_meaning(("mode", "DCR"), 0)
