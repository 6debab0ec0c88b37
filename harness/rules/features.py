"""Features of a case, read from its id alone: what a rule that separates failing from passing cases can speak of.

A feature is a column with an integer or a word: `opset`, `data` (an element type), `data.rank`, `axis`, `batch_sizes`. What ONNX
defaults to is filled in (`axis` and `batch_dims` of 0), and so are the options that an id leaves out. Columns without a tensor's name
(`dtype`, `rank`, `elements`) speak of the first input, so that a rule can hold for several operators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from math import prod

from harness.records import Options

Value = int | str
Shape = tuple[int, ...]
ABSENT = ""
"""A word column that a case does not have."""

FIRST_INPUT = frozenset(
    ("dtype", "kind", "bits", "rank", "elements", "shape", "multiple_of_4", "empty", "first", "last", "smallest", "largest", "has_extent_1")
)
"""The columns that speak of the first input, whatever it is called."""

_TENSOR = re.compile(r"([a-z]+)(\d*)\[([\d,]*)\]\Z")
_INTEGER = re.compile(r"-?\d{1,18}\Z|-9223372036854775808\Z")
_KINDS = {"int": "signed", "uint": "unsigned", "bfloat": "float"}
_BITS = {"bool": 8, "string": 0}


def split(case_id: str) -> tuple[str, str]:
    """Part an id into what shapes and integers say and what names say; each half is shared by many cases, and both give the features."""
    head, _, tail = case_id.partition(":")
    names, numbers = [head], [head.partition("@")[0]]
    for term in tail.split(";"):
        name, number = _halves(term)
        if name:
            names.append(name)
        if number:
            numbers.append(number)
    return ";".join(numbers), ";".join(names)


@cache
def _halves(term: str) -> tuple[str, str]:
    key, _, value = term.partition("=")
    tensor = _TENSOR.match(value)
    if tensor is not None:
        return f"{key}={tensor[1]}{tensor[2]}[]", f"{key}=[{tensor[3]}]"
    return ("", term) if _INTEGER.match(value) else (term, "")


def features(case_id: str) -> dict[str, Value]:
    """Return every feature of a case by column; a text that is no id has few."""
    numbers, names = split(case_id)
    return {**of_numbers(numbers), **of_names(names)}


def of_names(half: str) -> dict[str, Value]:
    """Features of the half of an id that holds names: operator, opset, element types, kinds of values, options."""
    head, *terms = half.split(";")
    operator, _, opset = head.partition("@")
    found: dict[str, Value] = {"operator": operator, "sweep": ABSENT, "case": ABSENT, **_defaults()}
    if opset.isdecimal():
        found["opset"] = int(opset)
    first = True
    for term in terms:
        key, _, value = term.partition("=")
        if not value.endswith("[]"):
            found[column_of(key)] = value
            continue
        dtype = value[:-2]
        for prefix, column in ((f"{key}.", key), *((("", "dtype"),) if first else ())):
            found[column] = dtype
            found[f"{prefix}kind"], found[f"{prefix}bits"] = _kind(dtype)
        first = False
    return found


def column_of(key: str) -> str:
    """The column of a term of an id: `operator=DML_OPERATOR_…` names DirectML's operator, not the case's."""
    return f"call.{key}" if key == "operator" else key


@cache
def _kind(dtype: str) -> tuple[str, int]:
    family = dtype.rstrip("0123456789")
    bits = dtype[len(family) :]
    return _KINDS.get(family, family), int(bits) if bits else _BITS.get(family, 0)


@cache
def _defaults() -> dict[str, str]:
    default = Options()
    return {name: _word(getattr(default, name)) for name in Options.__struct_fields__}


def _word(value: object) -> str:
    return {None: "none", True: "true", False: "false"}.get(value, str(value)) if value is None or isinstance(value, bool) else str(value)


def of_numbers(half: str) -> dict[str, Value]:
    """Features of the half of an id that holds shapes and integers: ranks, extents, attributes, and how these relate."""
    operator, *terms = half.split(";")
    found: dict[str, Value] = {}
    shapes: dict[str, Shape] = {}
    attributes: dict[str, int] = {}
    for term in terms:
        key, _, value = term.partition("=")
        if value.startswith("["):
            shape = tuple(int(size) for size in value[1:-1].split(",") if size)
            for prefix in (f"{key}.", *(() if shapes else ("",))):
                found.update((prefix + name, feature) for name, feature in _of_shape(shape).items())
            shapes[key] = shape
        else:
            attributes[key] = int(value)
    relate = _RELATIONS.get(operator)
    if relate is not None and {"data", "indices"} <= shapes.keys():
        found.update(relate(shapes["data"], shapes["indices"], attributes))
    found.update(attributes)
    return found


def _of_shape(shape: Shape) -> dict[str, Value]:
    found: dict[str, Value] = {"rank": len(shape), "elements": prod(shape), "shape": f"[{','.join(map(str, shape))}]"}
    found["multiple_of_4"] = _yes(found["elements"] != 0 and prod(shape) % 4 == 0)
    found["empty"] = _yes(0 in shape)
    if shape:
        found.update(first=shape[0], last=shape[-1], smallest=min(shape), largest=max(shape))
        found["has_extent_1"] = _yes(1 in shape)
    return found


def _yes(truth: bool) -> str:
    return "yes" if truth else "no"


def _order(size: int, other: int) -> str:
    return "same" if size == other else "fewer" if size < other else "more"


def _gather_elements(data: Shape, indices: Shape, attributes: Mapping[str, int]) -> dict[str, Value]:
    rank, axis = len(data), attributes.get("axis", 0)
    found: dict[str, Value] = {"axis": axis, "ranks": "equal" if rank == len(indices) else "differ"}
    found["axis_in_range"] = _yes(-rank <= axis < rank)
    if not -rank <= axis < rank:
        return found
    place = axis % rank
    found.update({"axis.normalised": place, "axis.last": _yes(place == rank - 1), "data.along_axis": data[place]})
    if rank == len(indices):
        off = {_order(i, d) for n, (i, d) in enumerate(zip(indices, data, strict=True)) if n != place} - {"same"}
        found["off_axis"] = "same" if not off else "both" if len(off) > 1 else off.pop()
        found["along_axis"] = _order(indices[place], data[place])
        found["indices.along_axis"] = indices[place]
    return found


def _gather_nd(data: Shape, indices: Shape, attributes: Mapping[str, int]) -> dict[str, Value]:
    batch, rank = attributes.get("batch_dims", 0), len(data)
    legal = 0 <= batch < min(rank, len(indices)) if indices else False
    found: dict[str, Value] = {"batch_dims": batch, "batch_dims_in_range": _yes(legal)}
    if indices:
        found["tuple"] = indices[-1]
        if legal:
            found["batch_sizes"] = "equal" if data[:batch] == indices[:batch] else "differ"
            left = rank - batch - indices[-1]
            found["slice_rank"] = left
            tuples, batches = prod(indices[:-1]), prod(data[:batch])
            found["tuples"] = tuples
            if batch:
                found["batches"] = batches
                found["tuples_to_batches"] = "fewer" if tuples < batches else "other" if tuples % max(batches, 1) else "multiple"
            if left >= 0:
                found["result_rank"] = len(indices) - 1 + left
    return found


_RELATIONS: dict[str, Callable[[Shape, Shape, Mapping[str, int]], dict[str, Value]]] = {
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
}
"""How the inputs of an operator relate; an operator without an entry has all other features."""
