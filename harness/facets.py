"""What a case id says that tables group by."""

from __future__ import annotations

import re
from typing import NamedTuple

DTYPE_ORDER = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "string",
)  # fmt: skip
"""Element types in the order of rows: kind, then width."""

_MEMORY = 50_000
_known: dict[str, Facets] = {}
_VARIANT = ";variant="
_TENSOR = re.compile(r"[:;](\w+)=([a-z]+\d*)\[([\d,]*)\](?=;|\Z)")


class Facets(NamedTuple):
    """`rank` is -1 and the element types are empty where the id does not say."""

    operator: str
    opset: int
    dtype: str
    rank: int
    index_dtype: str
    variant: str
    """What is computed in place of the operator alone, such as another rounding mode; empty for the operator itself."""


def facets(case_id: str) -> Facets:
    """Read the facets of a case from its id: the first tensor gives `dtype` and `rank`, the one named `indices` gives `index_dtype`.

    Costs a fraction of `caseid.parse`, because every result of a run passes through here; a text that is no id has few facets and no error.
    """
    told = case_id[: case_id.rfind("]") + 1] or case_id
    known = _known.get(told)
    if known is None:
        known = _read(told)
        if len(_known) >= _MEMORY:
            _known.clear()
        _known[told] = known
    if _VARIANT in case_id:
        return known._replace(variant=case_id.partition(_VARIANT)[2].partition(";")[0])
    return known


def _read(told: str) -> Facets:
    """Read what stands up to the last tensor, which many cases share."""
    operator, _, rest = told.partition("@")
    number = rest.partition(":")[0]
    dtype, rank, index_dtype = "", -1, ""
    for name, kind, shape in _TENSOR.findall(told):
        if name == "indices":
            index_dtype = kind
        elif not dtype:
            dtype, rank = kind, shape.count(",") + 1 if shape else 0
    return Facets(operator, int(number) if number.isdecimal() else 0, dtype, rank, index_dtype, "")


def dtype_key(dtype: str) -> tuple[int, str]:
    """Sort key of an element type; unknown ones come last, by name."""
    return (DTYPE_ORDER.index(dtype) if dtype in DTYPE_ORDER else len(DTYPE_ORDER), dtype)
