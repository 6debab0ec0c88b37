"""The description of one DirectML operator that crosses the pipe to the worker as canonical JSON: a graph's bytes for `directml`.

`sizes` and `strides` count elements, `bytes` and `alignment` bytes; dtypes are named as in `dtypes.py`. `inputs` says in which order the
buffers follow, `in_place` which input's buffer the output is bound to, and `output_shape` how the output is reported.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from harness.dtypes import DTYPES


class BufferTensor(msgspec.Struct, frozen=True):
    """A DML_BUFFER_TENSOR_DESC."""

    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None
    bytes: int
    flags: int = 0
    alignment: int = 0


class Description(msgspec.Struct, frozen=True):
    """One operator of DirectML with its tensors and other members."""

    operator: str
    tensors: dict[str, BufferTensor]
    attributes: dict[str, int]
    inputs: tuple[str, ...]
    output: str
    in_place: str | None
    output_shape: tuple[int, ...]
    flags: int = 0
    minimum_feature_level: str = "1_0"

    def encode(self) -> bytes:
        """Return the canonical JSON: UTF-8, keys sorted, no spaces."""
        return msgspec.json.encode(self, order="sorted")

    def call(self) -> str:
        """Write what the published tables speak of, data types and DimensionCounts: `GATHER_ND1 InputTensor=FLOAT32[4] …`."""
        terms = [f"{name}={DTYPES[self.tensors[name].dtype].directml}[{len(self.tensors[name].sizes)}]" for name in self._names()]
        return " ".join([self.operator.removeprefix("DML_OPERATOR_"), *terms])

    def _names(self) -> tuple[str, ...]:
        return (*self.inputs, self.output)


@lru_cache(maxsize=1024)
def call_of(model: bytes) -> str:
    """Return `Description.call` of encoded bytes."""
    return decode(model).call()


def decode(model: bytes) -> Description:
    """Read a description; msgspec.MsgspecError for bytes that are none."""
    return msgspec.json.decode(model, type=Description)
