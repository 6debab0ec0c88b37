"""The tensor element types of ONNX, with their names in NumPy and DirectML.

bfloat16 has no NumPy type: its tensors are uint16 arrays of the same bits. Code that must know the difference
asks the `DType`, never the array. Numbers: onnx.proto `TensorProto.DataType`; `DML_TENSOR_DATA_TYPE` in
DirectML.h.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


@cache
def _itemsize(storage: str) -> int:
    return 0 if storage == "O" else int(np.dtype(storage).itemsize)


class DType(NamedTuple):
    """One element type.

    `storage` is the NumPy dtype that carries its bits; `mantissa` the number of explicit significand bits of
    a binary float (None for anything else); `directml` the DirectML type that carries it, or None.
    """

    name: str
    onnx: int
    storage: str
    directml: str | None
    mantissa: int | None = None

    @property
    def itemsize(self) -> int:
        """Bytes per element; 0 for strings, whose length varies."""
        return _itemsize(self.storage)

    @property
    def is_float(self) -> bool:
        return self.mantissa is not None

    @property
    def is_integer(self) -> bool:
        return self.storage[0] in "iu" and self.mantissa is None


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
    )
}

BY_ONNX_NUMBER: dict[int, DType] = {d.onnx: d for d in DTYPES.values()}

Array = NDArray[Any]
"""A tensor's elements in the storage dtype of its `DType`; strings as an object array of `str`."""
