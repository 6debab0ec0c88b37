"""Signatures of operators beside ONNX's: as they are written, as the installed release states them, and what tells that a
release has others."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import pytest

from harness.model import onnx_schemas, signatures
from harness.model.onnx_schemas import OpsetUnavailable, UnknownOperator, operator_schema, opset_imports
from harness.targets import contributed
from tests.running import harness
from tools.contributed_operators import PATH, text


def test_a_signature_is_read_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "_OWN", {})
    given: dict[str, Any] = {
        "inputs": ["X: T", "axis: int64?", "more: T+", "any: T*"],
        "outputs": ["Y: T"],
        "types": {"T": ["float32", "int8"]},
        "attributes": {"alpha": ["FLOAT", 1.5], "mode": ["STRING"], "size": ["INT", None, True]},
        "since": 3,
    }
    signatures.register("own.Turned", given)
    onnx_schemas._operator_schema.cache_clear()
    schema = operator_schema("own.Turned", 3)
    x, axis, more, anything = schema.inputs
    assert (x.dtypes, x.needed, axis.dtypes, axis.optional) == (("float32", "int8"), True, ("int64",), True)
    assert (more.variadic, more.alike, anything.variadic, anything.alike) == (True, True, True, False)
    assert schema.defaults() == {"alpha": 1.5}
    assert (schema.attributes["size"].required, schema.attributes["mode"].type) == (True, "STRING")
    with pytest.raises(OpsetUnavailable, match="exists since version 3 of its domain, not at 2"):
        operator_schema("own.Turned", 2)
    with pytest.raises(UnknownOperator):
        operator_schema("own.Other", 3)


def test_a_map_is_its_keys_and_its_values() -> None:
    vectorizer, zipped = (operator_schema(f"ai.onnx.ml.{name}", 1) for name in ("DictVectorizer", "ZipMap"))
    keys, values = vectorizer.inputs
    assert (keys.name, keys.map, keys.dtypes) == ("X_keys", "X", ("int64", "string"))
    assert (values.name, values.map, "float64" in values.dtypes) == ("X_values", "X", True)
    assert [(each.name, each.map) for each in zipped.outputs] == [("Z_keys", "Z"), ("Z_values", "Z")]


def test_what_onnx_runtime_has_before_onnx_is_what_onnx_defines_first() -> None:
    assert signatures.earlier() == ("LayerNormalization", "ThresholdedRelu")
    assert operator_schema("LayerNormalization", 13) == operator_schema("LayerNormalization", 17)
    with pytest.raises(
        OpsetUnavailable, match="exists since opset 9, not at 8"
    ):  # whose attributes are others
        operator_schema("MeanVarianceNormalization", 8)


def test_names_do_not_clash_with_those_of_onnx() -> None:
    own, other = operator_schema("com.microsoft.Attention", 1), operator_schema("Attention", 23)
    assert [each.name for each in own.inputs[:2]] == ["input", "weights"]
    assert [each.name for each in other.inputs[:2]] == ["Q", "K"]
    assert opset_imports("com.microsoft.Attention", 1) == {"": onnx_schemas.BESIDE, "com.microsoft": 1}
    assert opset_imports("Attention", 23) == {"": 23}


@pytest.mark.slow
@pytest.mark.skipif(version("onnxruntime") != signatures.release(), reason="the file is of another release")
def test_the_file_says_what_its_release_states() -> None:
    assert PATH.read_text(encoding="utf-8") == text()
    assert list(contributed.changes()) == []


def test_check_tells_what_a_later_release_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    known = json.loads(PATH.read_text(encoding="utf-8"))["operators"]
    for each in known.values():
        each.pop("function", None)
    known["com.microsoft.Gelu"]["attributes"]["approximate"] = ["STRING", "none"]
    known["com.microsoft.Newer"] = known.pop("com.microsoft.Range")
    monkeypatch.setattr(contributed, "installed", lambda: ("9.9.0", known))
    about = f"in onnxruntime 9.9.0; the harness knows the signatures of {signatures.release()}"
    lines = [
        f"com.microsoft.Gelu has other approximate {about}",
        f"com.microsoft.Newer is new {about}",
        f"com.microsoft.Range is gone {about}",
    ]
    assert list(contributed.changes()) == lines
    ended = harness("check", "specs/com.microsoft/Gelu.yaml")
    assert (ended.code, [line for line in ended.err.splitlines() if "9.9.0" in line]) == (0, lines)
