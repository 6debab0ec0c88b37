"""The description of one DirectML operator that crosses the pipe to the worker as canonical JSON: a graph's
bytes for `directml`.

`sizes` and `strides` count elements, `bytes` and `alignment` bytes; dtypes are named as in `dtypes.py`.
`inputs` says in which order the buffers follow, `outputs` in which order results are returned, each with its
shape in `output_shapes`, and `in_place` which input's buffer the first output is bound to. `number` and
`members` say what the operator's structure is, so that the worker needs no table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import msgspec

from harness.model.dtypes import DTYPES
from harness.model.reference.directml import directml_operator


class BufferTensor(msgspec.Struct, frozen=True):
    """A DML_BUFFER_TENSOR_DESC."""

    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None
    bytes: int
    flags: int = 0
    alignment: int = 0


class Description(msgspec.Struct, frozen=True):
    """One operator of DirectML with its tensors and other members.

    `tensors` holds a tensor, an array of them or None (left out) for each tensor of the structure. The
    tensors of an array are named `InputTensors.0`, `InputTensors.1` and so on in `inputs` and `outputs`.
    `attributes` holds the other members as `attribute` writes them.
    """

    operator: str
    number: int
    members: tuple[str, ...]
    tensors: dict[str, BufferTensor | tuple[BufferTensor, ...] | None]
    attributes: dict[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    in_place: str | None
    output_shapes: tuple[tuple[int, ...], ...]
    flags: int = 0
    minimum_feature_level: str = "1_0"

    def encode(self) -> bytes:
        """Return the canonical JSON: UTF-8, keys sorted, no spaces."""
        return msgspec.json.encode(self, order="sorted")

    def views(self) -> Iterator[tuple[str, BufferTensor]]:
        """Yield every tensor that is described, those of arrays one by one."""
        for name, tensor in self.tensors.items():
            if isinstance(tensor, BufferTensor):
                yield name, tensor
            else:
                yield from ((f"{name}.{place}", each) for place, each in enumerate(tensor or ()))

    def view(self, name: str) -> BufferTensor:
        """Return the tensor of a name in `inputs` or `outputs`; KeyError for one that is not described."""
        return dict(self.views())[name]

    def call(self) -> str:
        """Write what the published tables speak of, data types and DimensionCounts: `GATHER_ND1
        InputTensor=FLOAT32[4] …`."""
        views = dict(self.views())
        terms = [
            f"{name}={DTYPES[views[name].dtype].directml}[{len(views[name].sizes)}]"
            for name in (*self.inputs, *self.outputs)
        ]
        return " ".join([self.operator.removeprefix("DML_OPERATOR_"), *terms])


@cache
def structure(operator: str) -> tuple[int, tuple[str, ...]]:
    """Return (number in DML_OPERATOR_TYPE, members as a description names them); KeyError for an operator
    without a document."""
    known = directml_operator(operator)
    return known.number, tuple(
        f"{each.name}:{each.type}" + (f":{each.count}" if each.count else "") for each in known.members
    )


def attribute(value: Any) -> Any:
    """Write a member's value as JSON has it: a number that is not finite as `inf`, `-inf` or `nan`, and so
    within an array."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return [attribute(each) for each in value] if isinstance(value, (tuple, list)) else value


@lru_cache(maxsize=1024)
def call_of(model: bytes) -> str:
    """Return `Description.call` of encoded bytes."""
    return decode(model).call()


def decode(model: bytes) -> Description:
    """Read a description; msgspec.MsgspecError for bytes that are none."""
    return msgspec.json.decode(model, type=Description)
