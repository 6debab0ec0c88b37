"""Our formulas against ONNX's own cases of every operator that has one: `onnx.backend.test.case.node`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from harness.model.case import Tensor, TensorValue, Value
from harness.model.diff import compare
from harness.model.dtypes import BY_ONNX_NUMBER, DTYPES, Array
from harness.model.onnx_schemas import operator_schema
from harness.model.signatures import signature
from harness.operators import COLLECTED
from harness.operators.base import Call, TensorType
from harness.specs.sweeps.calls import make_call
from tests.sampled import one_of

ELSEWHERE: dict[str, str] = {
    **{
        name.format(source): "NaN becomes -0, where the text has 6"
        for name in (
            "test_cast_{}_to_FLOAT4E2M1",
            "test_castlike_{}_to_FLOAT4E2M1",
            "test_castlike_{}_to_FLOAT4E2M1_expanded",
        )
        for source in ("FLOAT", "FLOAT16")
    },
    "test_training_dropout": "dropped at random",
    "test_training_dropout_default": "dropped at random",
    "test_training_dropout_default_mask": "dropped at random",
    "test_training_dropout_mask": "dropped at random",
    "test_training_dropout_zero_ratio": "training, of which nothing is claimed",
    "test_training_dropout_zero_ratio_mask": "training, of which nothing is claimed",
    "test_averagepool_2d_ceil_last_window_starts_on_pad": "the expected values are written with four decimals",
    "test_gridsample_bicubic": "the expected values are written with four decimals",
    "test_resize_downsample_scales_cubic_align_corners": "the length of the output is taken for a fraction",
    "test_resize_downsample_scales_linear_align_corners": "the length of the output is taken for a fraction",
    "test_roialign_aligned_false": "the expected values are written with four decimals",
    "test_roialign_aligned_true": "the expected values are written with four decimals",
    "test_roialign_mode_max": "the greatest of weighted corners, which the text does not know (onnx issue 4764)",
    "test_sequence_insert_at_front": "the position is a list of one, where the text has a scalar",
    "test_maxunpool_export_with_output_shape": "places count in the implied shape, not in the output (onnx issue 2398)",
}
"""Cases whose expected values are not what ONNX's text says, with the reason."""
OPEN = {"StringNormalizer": "which locale stands where none is given"}
"""What ONNX's text leaves open in cases whose expected values the formula gives nevertheless."""


WITHOUT: frozenset[str] = frozenset(
    {
        "ConcatFromSequence",
        "GlobalLpPool",
        "MaxRoiPool",
        "Multinomial",
        "Optional",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "SequenceAt",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceErase",
        "SequenceLength",
    }
)
"""Operators of which ONNX has no case of one node."""


class Found(NamedTuple):
    """A case of ONNX as the harness sees it."""

    name: str
    operator: str
    call: Call
    inputs: dict[str, Tensor]
    outputs: tuple[Tensor | None, ...]
    """None for one that is left out."""


class NoCase(Exception):
    """The case is outside of what the harness can express."""


@cache
def collected() -> tuple[tuple[Found, ...], dict[str, str]]:
    """Return the cases of operators that the harness knows, and why others of these operators are left
    out."""
    found: list[Found] = []
    left_out: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        model = case.model
        assert model is not None
        if (
            len(model.graph.node) != 1
            or model.graph.node[0].op_type not in COLLECTED
            or model.graph.node[0].domain
        ):
            continue
        try:
            found += [_read(case.name, model, inputs, outputs) for inputs, outputs in case.data_sets or ()]
        except NoCase as error:
            left_out[case.name] = str(error)
    return tuple(found), left_out


def _read(name: str, model: ModelProto, inputs: Sequence[Any], outputs: Sequence[Any]) -> Found:
    (node,) = model.graph.node
    opset = next(each.version for each in model.opset_import if not each.domain)
    schema = operator_schema(node.op_type, opset)
    given = {value.name: _value(value, held) for value, held in zip(model.graph.input, inputs, strict=True)}
    tensors: dict[str, Tensor] = {}
    for place, operand in enumerate(node.input):
        parameter = schema.inputs[min(place, len(schema.inputs) - 1)]
        held = given[operand] if operand else ()
        if isinstance(held, Tensor):
            last = place - len(schema.inputs) + 1
            tensors[f"{parameter.name}.{last}" if parameter.variadic else parameter.name] = held
        else:
            if operand and not parameter.sequence:
                raise NoCase("not a tensor")
            tensors |= {f"{parameter.name}.{number}": each for number, each in enumerate(held)}
    operator = COLLECTED[node.op_type]
    types = {key: TensorType(tensor.dtype, tensor.array.shape) for key, tensor in tensors.items()}
    constants = {key: tensor.array for key, tensor in tensors.items() if key in operator.constants}
    kept = map(_value, model.graph.output, outputs)
    results = _written_out(next(kept) if each else None for each in node.output)
    call = make_call(operator, opset, types, dict(_attributes(node)), constants, None, len(results))
    return Found(name, node.op_type, call, tensors, results)


def _written_out(results: Iterable[Tensor | tuple[Tensor, ...] | None]) -> tuple[Tensor | None, ...]:
    """Return outputs as the harness has them: of a sequence its length, and its tensors."""
    found: list[Tensor | None] = []
    for each in results:
        if each is None or isinstance(each, Tensor):
            found.append(each)
        else:
            found += [Tensor("int64", np.array(len(each), np.int64)), *each]
    return tuple(found)


def _attributes(node: NodeProto) -> Iterator[tuple[str, Value]]:
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        if isinstance(value, TensorProto):
            array = numpy_helper.to_array(value)
            yield (
                attribute.name,
                TensorValue(
                    BY_ONNX_NUMBER[value.data_type].name, array.shape, tuple(array.reshape(-1).tolist())
                ),
            )
        elif isinstance(value, (list, tuple)):
            yield attribute.name, tuple(each.decode() if isinstance(each, bytes) else each for each in value)
        else:
            yield attribute.name, value.decode() if isinstance(value, bytes) else value


def _value(value: ValueInfoProto, held: Any) -> Tensor | tuple[Tensor, ...]:
    """Return a tensor, or the tensors of a sequence."""
    kind = value.type
    if kind.HasField("sequence_type") and kind.sequence_type.elem_type.HasField("tensor_type"):
        number = kind.sequence_type.elem_type.tensor_type.elem_type
        return tuple(_tensor(number, each) for each in held)
    if not kind.HasField("tensor_type"):
        raise NoCase("not a tensor")
    return _tensor(kind.tensor_type.elem_type, held)


def _tensor(number: int, array: Any) -> Tensor:
    if number not in BY_ONNX_NUMBER:
        raise NoCase(f"element type {TensorProto.DataType.Name(number)}")
    dtype = BY_ONNX_NUMBER[number]
    held = numpy_helper.to_array(array) if isinstance(array, TensorProto) else np.asarray(array)
    array = _stored(dtype.storage, held)
    return Tensor(dtype.name, dtype.wrapped(array) if dtype.narrow else array)


def _stored(storage: str, array: Array) -> Array:
    if storage == "O":
        texts = np.empty(array.size, object)
        texts[:] = [
            each.decode() if isinstance(each, bytes) else str(each) for each in array.reshape(-1).tolist()
        ]
        return texts.reshape(array.shape)
    return array if array.dtype == storage else np.ascontiguousarray(array).view(storage).reshape(array.shape)


@pytest.mark.parametrize("operator", one_of(3, COLLECTED))
def test_formula_gives_what_onnx_expects(operator: str) -> None:
    cases = [each for each in collected()[0] if each.operator == operator and each.name not in ELSEWHERE]
    for case in cases:
        entry = COLLECTED[operator]
        assert entry.broken(case.call, case.inputs) in (None, OPEN.get(operator)), case.name
        expected = entry.oracle(case.call, case.inputs, "opencl")
        shapes = entry.family.output_shapes(entry, case.call)
        assert len(expected) == len(case.outputs), case.name
        for ours, shape, theirs in zip(expected, shapes, case.outputs, strict=False):
            assert all(known in (-1, extent) for known, extent in zip(shape, ours.shape, strict=True)), (
                case.name
            )
            if theirs is not None:
                assert compare(ours, theirs).diff is None, (case.name, compare(ours, theirs).diff)


def test_every_operator_has_a_case() -> None:
    found, left_out = collected()
    own = {name for name in COLLECTED if signature(name) is None}
    assert own - {case.operator for case in found} == WITHOUT, left_out


def test_what_is_left_out_has_a_reason() -> None:
    assert all(
        reason == "not a tensor" or reason.startswith("element type") for reason in collected()[1].values()
    )


def test_every_element_type_is_stored_as_the_harness_does() -> None:
    assert all(
        tensor.array.dtype == DTYPES[tensor.dtype].storage
        for case in collected()[0]
        for tensor in case.inputs.values()
    )
