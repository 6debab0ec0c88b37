"""Elements that change while they are moved: mistakes of GatherElements and GatherND."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from harness.model.dtypes import Array
from tests.mutants import Mutant
from tests.mutants.moving import altered, elements, flush, of_sizes, of_state

NOT_ON_DML = ("string", "bfloat16")


def of_elements(operator: str) -> Iterator[Mutant]:
    """Elements that change on the way."""
    changes: dict[str, tuple[str, Callable[[Array], Array]]] = {
        "float32 subnormals are flushed": ("float32", flush("u4", 23)),
        "float16 subnormals are flushed": ("float16", flush("u2", 10)),
        "float64 subnormals are flushed": ("float64", flush("u8", 52)),
        "bfloat16 subnormals are flushed": ("bfloat16", flush("u2", 7)),
        "float32 loses the sign of zero": ("float32", lambda x: x + np.float32(0)),
        "float16 loses the sign of zero": ("float16", lambda x: x + np.float16(0)),
        "float64 loses the sign of zero": ("float64", lambda x: x + 0.0),
        "float16 passes through bfloat16": (
            "float16",
            lambda x: (x.astype("f4").view("u4") & 0xFFFF0000).view("f4").astype("f2"),
        ),
        "float32 passes through float16": ("float32", lambda x: x.astype("f2").astype("f4")),
        "float64 passes through float32": ("float64", lambda x: x.astype("f4").astype("f8")),
        "float32 infinities become the largest number": (
            "float32",
            lambda x: np.where(np.isinf(x), np.copysign(np.finfo("f4").max, x), x),
        ),
        "float16 infinities become the largest number": (
            "float16",
            lambda x: np.where(np.isinf(x), np.copysign(np.float16(65504), x), x),
        ),
        "float32 NaN becomes 0": ("float32", lambda x: np.where(np.isnan(x), np.float32(0), x)),
        "float16 NaN becomes infinity": ("float16", lambda x: np.where(np.isnan(x), np.float16(np.inf), x)),
        "int32 passes through float32": (
            "int32",
            lambda x: x.astype("f4").astype("f8").astype("i8").astype("i4"),
        ),
        "int64 passes through float64": ("int64", lambda x: x.astype("f8").astype("i8")),
        "int64 loses its high word": ("int64", lambda x: x.astype("i4").astype("i8")),
        "int64 high words are those of the first": (
            "int64",
            lambda x: (x & 0xFFFFFFFF) | (x.reshape(-1)[:1] >> 32 << 32) if x.size else x,
        ),
        "uint64 passes through int64": ("uint64", lambda x: np.minimum(x, 2**63 - 1)),
        "uint32 passes through int32": ("uint32", lambda x: np.minimum(x, 2**31 - 1)),
        "uint64 loses its high word": ("uint64", lambda x: x.astype("u4").astype("u8")),
        "int8 is taken as unsigned and held at 127": (
            "int8",
            lambda x: np.minimum(x.view("u1"), 127).view("i1"),
        ),
        "uint8 is held at 127": ("uint8", lambda x: np.minimum(x, 127)),
        "int16 passes through int8": ("int16", lambda x: x.astype("i1").astype("i2")),
        "uint16 is held at 32767": ("uint16", lambda x: np.minimum(x, 32767)),
        "bool is always true": ("bool", lambda x: x | True),
        "bool is inverted": ("bool", lambda x: ~x),
        "strings lose blanks": (
            "string",
            lambda x: np.vectorize(str.strip, otypes=[object])(x) if x.size else x,
        ),
        "strings are cut after 15 bytes": (
            "string",
            lambda x: np.vectorize(lambda t: t[:15], otypes=[object])(x) if x.size else x,
        ),
        "strings are ASCII": (
            "string",
            lambda x: (
                np.vectorize(lambda t: t.encode("ascii", "replace").decode(), otypes=[object])(x)
                if x.size
                else x
            ),
        ),
        "strings are UCS-2": (
            "string",
            lambda x: (
                np.vectorize(lambda t: "".join(c for c in t if ord(c) < 65536), otypes=[object])(x)
                if x.size
                else x
            ),
        ),
        "empty strings are a blank": (
            "string",
            lambda x: np.vectorize(lambda t: t or " ", otypes=[object])(x) if x.size else x,
        ),
        "strings end at a zero": (
            "string",
            lambda x: np.vectorize(lambda t: t.split("\0")[0], otypes=[object])(x) if x.size else x,
        ),
        "strings are lower case": (
            "string",
            lambda x: np.vectorize(str.lower, otypes=[object])(x) if x.size else x,
        ),
    }
    for name, (dtype, change) in changes.items():
        yield altered(name, operator, elements(dtype, change), 2, ("dml",) if dtype in NOT_ON_DML else ())


def of_moving(operator: str) -> Iterator[Mutant]:
    """Yield all mistakes that an operator can make which moves elements by their indices."""
    yield from of_elements(operator)
    yield from of_sizes(
        operator, (4, 16, 64, 256, 1024, 4096, 32767, 65535, 65536), (2, 4, 8, 16, 32, 64, 256, 1024)
    )
    yield from of_state(operator)
