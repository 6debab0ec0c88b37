"""What all models that the harness compiles have in common: who makes them, how attributes are written, and which
operators are no test."""

from __future__ import annotations

from onnx import AttributeProto, TypeProto, helper

from harness.compile.tensor_files import tensor_proto
from harness.model.case import TensorValue, Value
from harness.model.dtypes import DTYPES
from harness.model.onnx_schemas import dtypes_of

PRODUCER = "onnxruntime-conformance-harness"
UNTESTED = {"Identity", "Constant"}
"""Operators of which a graph may lose nodes, and that may run anywhere."""
TESTED = "tested"
"""The name of the node of a case of one operator."""
LOADED = {"Constant"}
"""Operators whose nodes no session keeps: loading makes initializers of them. The node that takes what they give is
tested in their place."""


def attribute(name: str, value: Value, kind: str) -> AttributeProto:
    """Return an attribute; `kind` is its type, by which an empty list is known."""
    if isinstance(value, TensorValue) and value.indices is not None:
        given = value._replace(shape=(len(value.elements),), indices=None)
        values, indices = (tensor_proto("", each.tensor) for each in (given, value.indices))
        return helper.make_attribute(name, helper.make_sparse_tensor(values, indices, value.shape))
    if isinstance(value, TensorValue):
        return helper.make_attribute(name, tensor_proto("", value.tensor))
    if kind == "TYPE_PROTO":
        return helper.make_attribute(name, _type(str(value)))
    if isinstance(value, tuple) and not value:
        return AttributeProto(name=name, type=AttributeProto.AttributeType.Value(kind))
    return helper.make_attribute(name, value)


def _type(text: str) -> TypeProto:
    """Return a type as ONNX writes it, `tensor(float)` or `seq(tensor(float))`."""
    if text.startswith("seq("):
        return helper.make_sequence_type_proto(_type(text[len("seq(") : -1]))
    (dtype,) = dtypes_of([text])
    return helper.make_tensor_type_proto(DTYPES[dtype].onnx, None)
