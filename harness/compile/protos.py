"""What all models that the harness compiles have in common: who makes them, how attributes and tensors are written and
read, and which operators are no test. A tensor has the bits and texts that the harness stores of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import Message
from onnx import AttributeProto, NodeProto, SequenceProto, TensorProto, TypeProto, helper, numpy_helper

from harness.model.case import Tensor, TensorValue, Value
from harness.model.dtypes import BY_ONNX_NUMBER, DTYPES, Array
from harness.model.onnx_schemas import dtypes_of
from harness.model.operator_schema import OperatorSchema
from harness.targets.frames import tensor_bytes
from harness.worker.worker import PACKED, packed

_NO_TEXT = "strings that are not UTF-8"


class LeftOut(ValueError):
    """A value that is not fed to ONNX Runtime, a model or a call that is no case: `reason` is the same for all of a kind,
    `detail` is of this one."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}" if detail else reason)


def encoded(model: Message) -> tuple[bytes, str]:
    """Return the bytes of a model, and their SHA-256."""
    data = model.SerializeToString(deterministic=True)
    return data, sha256(data).hexdigest()


def tensor_proto(name: str, tensor: Tensor) -> TensorProto:
    """Return a tensor as a TensorProto."""
    number = DTYPES[tensor.dtype].onnx
    proto = TensorProto(name=name, data_type=number, dims=tensor.array.shape)
    if tensor.dtype == "string":
        proto.string_data.extend(str(text).encode() for text in tensor.array.reshape(-1))
    else:
        proto.raw_data = packed(tensor.array, number).tobytes() if number in PACKED else tensor_bytes(tensor)
    return proto


def value_info(
    name: str, dtype: str | None, shape: Sequence[int] = (), shapes: str = "undeclared"
) -> onnx.ValueInfoProto:
    """Return the declaration of a value whose shape is `static`, symbolic with a name for each dimension, or `undeclared`;
    of an element type that is not known the name alone."""
    if dtype is None:
        return onnx.ValueInfoProto(name=name)
    dimensions: list[int | str] | None = None
    if shapes != "undeclared":
        dimensions = [extent if shapes == "static" else f"{name}_{n}" for n, extent in enumerate(shape)]
    return helper.make_tensor_value_info(name, DTYPES[dtype].onnx, dimensions)


def tensor_of(number: int, held: TensorProto | SequenceProto | Any) -> Tensor:
    """Return a TensorProto, or an array as ONNX's own cases hold it, as a tensor of the element type `number`
    (TensorProto.DataType).

    Raises LeftOut for other element types, sequences, and data that does not fit its shape.
    """
    if number not in BY_ONNX_NUMBER:
        known = number in TensorProto.DataType.values()
        name = TensorProto.DataType.Name(number) if known else f"number {number}"
        raise LeftOut("an element type that the harness cannot feed to ONNX Runtime", name)
    dtype = BY_ONNX_NUMBER[number]
    if isinstance(held, TensorProto):
        if held.data_type != number:
            raise LeftOut("a tensor of another element type than the model declares")
        if held.data_location == TensorProto.EXTERNAL:
            raise LeftOut("a tensor whose data lies in another file")
        try:
            if min(held.dims, default=0) < 0:  # which NumPy takes for whatever fits
                raise ValueError
            held = numpy_helper.to_array(held)
        except Exception as error:  # whatever onnx says of damaged data, which differs by release
            no_text = isinstance(error, UnicodeDecodeError)
            raise LeftOut(_NO_TEXT if no_text else "a tensor whose data does not fit its shape") from error
    if isinstance(held, (list, tuple, dict, SequenceProto)) or held is None:
        raise LeftOut("sequences, maps or optional values")
    array = _stored(dtype.storage, np.asarray(held))
    return Tensor(dtype.name, dtype.wrapped(array) if number in PACKED else array)


def _stored(storage: str, array: Array) -> Array:
    if storage == "O":
        texts = np.empty(array.size, object)
        try:
            texts[:] = [
                each.decode() if isinstance(each, bytes) else str(each) for each in array.reshape(-1).tolist()
            ]
        except UnicodeDecodeError as error:
            raise LeftOut(_NO_TEXT) from error
        return texts.reshape(array.shape)
    if array.dtype.newbyteorder("=") == storage:
        return array.astype(storage, copy=False)
    if (
        array.dtype.isbuiltin == 1
        or array.dtype.kind in "USO"
        or array.dtype.itemsize != np.dtype(storage).itemsize
    ):
        raise LeftOut("a tensor of another element type than the model declares")
    return np.ascontiguousarray(array).view(storage).reshape(array.shape)


PRODUCER = "onnxruntime-conformance-harness"
UNTESTED = {"Identity", "Constant"}
"""Operators of which a graph may lose nodes, and that may run anywhere."""
TESTED = "tested"
"""The name of the node of a case of one operator."""
LOADED = {"Constant"}
"""Operators whose nodes no session keeps: loading makes initializers of them. The node that takes what they give is
tested in their place."""


def pad(node: NodeProto, schema: OperatorSchema) -> None:
    """Give each optional input and output that a node lacks at its end an empty name, which says that it is left out."""
    node.input.extend("" for each in schema.inputs[len(node.input) :] if each.optional)
    node.output.extend("" for each in schema.outputs[len(node.output) :] if each.optional)


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


def attributed(node: NodeProto, schema: OperatorSchema, values: Mapping[str, Value]) -> NodeProto:
    """Give a node attributes, in the order of their names, and return it."""
    node.attribute.extend(
        attribute(name, value, schema.attributes[name].type) for name, value in sorted(values.items())
    )
    return node


def _type(text: str) -> TypeProto:
    """Return a type as ONNX writes it, `tensor(float)` or `seq(tensor(float))`."""
    if text.startswith("seq("):
        return helper.make_sequence_type_proto(_type(text[len("seq(") : -1]))
    (dtype,) = dtypes_of([text])
    return helper.make_tensor_type_proto(DTYPES[dtype].onnx, None)
