"""The tensor element types of ONNX, with their names in NumPy and DirectML.

bfloat16 has no NumPy type: its tensors are uint16 arrays of the same bits. Nor have the narrow types, of at most 8
bits: their tensors are arrays of bytes, one for each element, in whose low bits it lies. Files and runtimes pack
those of 4 and 2 bits (`worker.packed`). Code that must know the difference asks the `DType`, never the array.
Numbers: onnx.proto `TensorProto.DataType`; `DML_TENSOR_DATA_TYPE` in DirectML.h.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""A tensor's elements in the storage dtype of its `DType`; strings as an object array of `str`."""


@cache
def _itemsize(storage: str) -> int:
    return 0 if storage == "O" else int(np.dtype(storage).itemsize)


class Limits(NamedTuple):
    """The least and the greatest integer of a type, and its bits."""

    min: int
    max: int
    bits: int


class DType(NamedTuple):
    """One element type.

    `storage` is the NumPy dtype that carries its bits; `mantissa` the number of explicit significand bits of
    a binary float (None for anything else); `directml` the DirectML type that carries it, or None; `narrow` the
    bits of a type that NumPy lacks and sweeps have where they name it alone, 0 of any other.
    """

    name: str
    onnx: int
    storage: str
    directml: str | None
    mantissa: int | None = None
    narrow: int = 0

    @property
    def itemsize(self) -> int:
        """Bytes per element; 0 for strings, whose length varies."""
        return _itemsize(self.storage)

    @property
    def width(self) -> int:
        """Bits per element; 0 for strings."""
        return self.narrow or 8 * self.itemsize

    @property
    def is_float(self) -> bool:
        return self.mantissa is not None

    @property
    def is_integer(self) -> bool:
        return self.storage[0] in "iu" and self.mantissa is None and not self.is_minifloat

    @property
    def is_minifloat(self) -> bool:
        """Whether it is a float of at most 8 bits, whose layout is its own: `float_formats.MINIFLOATS`."""
        return self.narrow > 0 and self.name.startswith("float")

    @property
    def limits(self) -> Limits:
        """The range of an integer type."""
        if not self.narrow:
            info = np.iinfo(self.storage)
            return Limits(int(info.min), int(info.max), info.bits)
        signed = self.storage[0] == "i"
        most = 1 << self.narrow - signed
        return Limits(-most if signed else 0, most - 1, self.narrow)

    def wrapped(self, integers: Array) -> Array:
        """Return the lowest bits of integers as elements of an integer type."""
        if not self.narrow:
            return integers.astype(self.storage)
        low = integers.astype(np.int64) & ((1 << self.narrow) - 1)
        return np.where(low > self.limits.max, low - (1 << self.narrow), low).astype(self.storage)


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        DType("float32", 1, "f4", "FLOAT32", 23),
        DType("uint8", 2, "u1", "UINT8"),
        DType("int8", 3, "i1", "INT8"),
        DType("uint16", 4, "u2", "UINT16"),
        DType("int16", 5, "i2", "INT16"),
        DType("int32", 6, "i4", "INT32"),
        DType("int64", 7, "i8", "INT64"),
        DType("string", 8, "O", None),
        DType("bool", 9, "b1", "UINT8"),  # ONNX Runtime's DirectML provider passes bool as UINT8
        DType("float16", 10, "f2", "FLOAT16", 10),
        DType("float64", 11, "f8", "FLOAT64", 52),
        DType("uint32", 12, "u4", "UINT32"),
        DType("uint64", 13, "u8", "UINT64"),
        DType("complex64", 14, "c8", None),
        DType("complex128", 15, "c16", None),
        DType("bfloat16", 16, "u2", None, 7),
        DType("float8e4m3fn", 17, "u1", None, narrow=8),
        DType("float8e4m3fnuz", 18, "u1", None, narrow=8),
        DType("float8e5m2", 19, "u1", None, narrow=8),
        DType("float8e5m2fnuz", 20, "u1", None, narrow=8),
        DType("uint4", 21, "u1", None, narrow=4),
        DType("int4", 22, "i1", None, narrow=4),
        DType("float4e2m1", 23, "u1", None, narrow=4),
        DType("float8e8m0", 24, "u1", None, narrow=8),
        DType("uint2", 25, "u1", None, narrow=2),
        DType("int2", 26, "i1", None, narrow=2),
    )
}

BY_ONNX_NUMBER: dict[int, DType] = {d.onnx: d for d in DTYPES.values()}
FLOATS_BY_NUMBER = {d.onnx: d.name for d in DTYPES.values() if d.is_float}


def type_of_number(number: Any) -> str | None:
    """Return the name of the type that a number of TensorProto.DataType stands for; None for any other value."""
    found = BY_ONNX_NUMBER.get(number)
    return None if found is None else found.name
