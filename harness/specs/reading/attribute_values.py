"""Interprets values under `attributes:` by the type that ONNX gives the attribute, and lists the alternatives
of a sweep.

An input that decides shapes is listed there as well: at older opsets most are attributes. A list is one value
if the type is a list; a list of lists gives alternatives. A tensor is written `{dtype: float32, values:
[1.5]}`, with `shape` where no nesting tells it, a sparse one `{dtype: float32, shape: [9], values: [1.5], indices: [4]}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.model.case import TensorValue, Value
from harness.model.dtypes import DTYPES
from harness.model.onnx_schemas import dtypes_of
from harness.specs.reading.literals import LiteralError, to_array
from harness.specs.reading.source import shown

LISTS = {"INTS": "INT", "FLOATS": "FLOAT", "STRINGS": "STRING", "NUMBERS": "NUMBER"}
NUMBERS = ("NUMBER", "NUMBERS", "NUMBER_OR_NUMBERS")
"""The types of an input that decides shapes, by its rank: one number, or a list of them; the last where it may
be either (a rank of -1)."""
_INT64 = 2**63


class WrongValue(ValueError):
    """A value has the wrong type for its attribute; the message names the right type."""


def typed(kind: str, given: Any) -> Value:
    """Return a value of an attribute's type; raise WrongValue."""
    if kind in LISTS:
        if not isinstance(given, tuple):
            raise WrongValue(f"should be a list, not {shown(given)}")
        element = _ELEMENTS[LISTS[kind]]
        return tuple(element(each) for each in given)
    if kind == "NUMBER_OR_NUMBERS":
        return typed("NUMBERS" if isinstance(given, tuple) else "NUMBER", given)
    if kind == "TENSOR":
        return _tensor(given)
    if kind == "SPARSE_TENSOR":
        return _sparse(given)
    if kind not in _ELEMENTS:
        raise WrongValue(f"attributes of the type {kind} cannot be written in a spec")
    value: Value = _ELEMENTS[kind](given)
    return value


def alternatives(kind: str, given: Any) -> tuple[Value | None, ...]:
    """Return the alternatives that a sweep lists for an attribute; null leaves it out. Raises WrongValue."""
    several = isinstance(given, tuple)
    if several and kind in LISTS:
        several = any(each is None or isinstance(each, tuple) for each in given)
    listed = given if several else (given,)
    if not listed:
        raise WrongValue("must not be empty")
    found = tuple(None if each is None else typed(kind, each) for each in listed)
    for position, each in enumerate(found):
        if each in found[:position]:
            raise WrongValue(f"{list(each) if isinstance(each, tuple) else each!r} is listed twice")
    return found


def _integer(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise WrongValue(f"should be an integer, not {shown(given)}")
    if given < -_INT64:
        raise WrongValue(f"{given} is below the least allowed, {-_INT64}")
    if given >= _INT64:
        raise WrongValue(f"{given} is above the greatest allowed, {_INT64 - 1}")
    return given


def _float(given: Any) -> float:
    if isinstance(given, str) and given in ("inf", "-inf", "nan", "-0.0"):
        return float(given)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise WrongValue(f"should be a number, not {shown(given)}")
    return float(given)


def _number(given: Any) -> int | float | bool:
    return given if isinstance(given, (bool, int)) else _float(given)


def _type(given: Any) -> str:
    inner = given[len("seq(") : -1] if str(given).startswith("seq(") else given
    if not isinstance(inner, str) or not dtypes_of([inner]):
        raise WrongValue(f"should be a type such as tensor(float) or seq(tensor(int64)), not {shown(given)}")
    return str(given)


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise WrongValue(f"should be text, not {shown(given)}")
    return given


_ELEMENTS: Mapping[str, Callable[[Any], Any]] = {
    "INT": _integer,
    "FLOAT": _float,
    "STRING": _text,
    "TYPE_PROTO": _type,
    "NUMBER": _number,
}


_TENSOR = ({"dtype", "values"}, {"dtype", "values", "shape"})


def _tensor(given: Any) -> TensorValue:
    if not isinstance(given, dict) or set(given) not in _TENSOR or given["dtype"] not in DTYPES:
        raise WrongValue(f"should be a tensor such as {{dtype: float32, values: [1.5]}}, not {shown(given)}")
    try:
        array = to_array(given["dtype"], given["values"], given.get("shape"))
        return TensorValue(given["dtype"], array.shape, tuple(array.reshape(-1).tolist()))
    except LiteralError as error:
        raise WrongValue(error.problems[0][1]) from error


def _sparse(given: Any) -> TensorValue:
    if not isinstance(given, dict) or set(given) != {"dtype", "shape", "values", "indices"}:
        raise WrongValue(
            f"should be a sparse tensor such as {{dtype: float32, shape: [9], values: [1.5], indices: [4]}}, not {shown(given)}"
        )
    values = _tensor({"dtype": given["dtype"], "values": given["values"]})
    indices = _tensor({"dtype": "int64", "values": given["indices"]})
    return TensorValue(values.dtype, typed("INTS", given["shape"]), values.elements, indices)  # type: ignore[arg-type] # integers
