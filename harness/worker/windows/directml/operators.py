"""Builds an operator's description in memory from JSON: the structure of DirectML.h with its members.

The JSON contains the operator's number in DML_OPERATOR_TYPE and its members, in the order in which DirectML.h
declares them, so no table is needed here. A member is written `Axis:uint`, an array with the member that
counts it: `Axes:uint_array:AxisCount`.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from ctypes import addressof, c_float, c_int32, c_uint32, c_uint64, c_void_p
from functools import lru_cache, partial
from typing import Any, NamedTuple, Tuple

from ..device import FEATURE_LEVELS, TENSOR_DATA_TYPES, level_text
from .layouts import BufferTensorDesc, TypedDesc

BUFFER = 1
"""DML_TENSOR_TYPE_BUFFER and DML_BINDING_TYPE_BUFFER."""
OWNED_BY_DML = 1
"""DML_TENSOR_FLAG_OWNED_BY_DML."""
LEVELS = {level_text(value): value for value in FEATURE_LEVELS}
_UINT32, _UINT64 = 1 << 32, 1 << 64


_INT32 = 1 << 31
_SCALARS = {
    "float32": "f", "float16": "e", "float64": "d", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H",
    "uint32": "I", "uint64": "Q",
}  # fmt: skip
"""The members of DML_SCALAR_UNION, as `struct` names them."""
ITEMSIZES = {name: struct.calcsize(_SCALARS[name]) for name in TENSOR_DATA_TYPES if name in _SCALARS}
"""Bytes an element; the types of four bits have no case here."""


class Size2D(ctypes.Structure):
    """DML_SIZE_2D."""

    _fields_ = [("width", c_uint32), ("height", c_uint32)]


class ScaleBias(ctypes.Structure):
    """DML_SCALE_BIAS."""

    _fields_ = [("scale", c_float), ("bias", c_float)]


_FIELDS: dict[str, Any] = {
    "uint": c_uint32, "int": c_int32, "uint64": c_uint64, "float": c_float, "scalar_union": c_uint64, "size_2d": Size2D,
    **dict.fromkeys(
        ("input", "output", "inputs", "outputs", "scale_bias", "operator_desc", "operator_desc_array", "uint_array", "int_array",
         "float_array"), c_void_p,
    ),
}  # fmt: skip
"""How each type of member lies in the structure; what may be NULL and what an array is are addresses."""


class DescriptionError(ValueError):
    """A description that cannot be put into DirectML's structures at all: DirectML was never asked."""

    label = "CannotFeedError"


class NativeMember(NamedTuple):
    """A member of an operator's structure: its type, and for an array the member that counts it."""

    name: str
    type: str
    counter: str


class Layout(NamedTuple):
    """An operator's structure: its members, those that are tensors, the names of the others, and the
    structure itself."""

    members: Tuple[NativeMember, ...]
    tensors: Tuple[NativeMember, ...]
    attributes: Tuple[str, ...]
    structure: Any


@lru_cache(maxsize=None)
def layout_of(written: Tuple[str, ...]) -> Layout:
    """Return the structure of members that are written `Name:type` or `Name:type:count`; raises
    DescriptionError."""
    members = tuple(
        NativeMember(*(*each.split(":"), "")[:3]) for each in written if each.count(":") in (1, 2)
    )
    if len(members) != len(written) or not members:
        raise DescriptionError(f"members are written Name:type, and not {', '.join(written) or 'left out'}")
    for member in members:
        if member.type not in _FIELDS:
            raise DescriptionError(
                f"{member.name}: no type of member is called {member.type!r}; known: {', '.join(_FIELDS)}"
            )
    tensors = tuple(member for member in members if member.type in ("input", "output", "inputs", "outputs"))
    others = tuple(member.name for member in members if member not in tensors)
    fields = [(member.name, _FIELDS[member.type]) for member in members]
    return Layout(members, tensors, others, type("OperatorDesc", (ctypes.Structure,), {"_fields_": fields}))


class TensorView(NamedTuple):
    """The layout of a buffer for DirectML: element type, sizes, strides in elements (None: packed), bytes,
    alignment and flags."""

    dtype: str
    sizes: Sequence[int]
    strides: Sequence[int] | None
    bytes: int
    alignment: int
    flags: int

    def needed_bytes(self) -> int:
        """Return how many bytes the elements span, 0 for none."""
        if 0 in self.sizes:
            return 0
        if self.strides is None:
            return math.prod(self.sizes) * ITEMSIZES[self.dtype]
        last = sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides))
        return (last + 1) * ITEMSIZES[self.dtype]


class NativeDescription:
    """One operator's description: its tensors as `TensorView`, and the structures of DirectML.h that say the
    same.

    `tensors` holds those that are described; the ones of an array are named `InputTensors.0`,
    `InputTensors.1` and so on. `bound_inputs` and `bound_outputs` say for each binding which of `inputs` or
    `outputs` it is, None for an optional tensor that is left out.
    """

    def __init__(self, given: Any) -> None:
        """Take the JSON object of a unit apart; raise DescriptionError for what no structure could hold."""
        self.name = str(given.get("operator"))
        layout = layout_of(tuple(given.get("members", ())))
        number = _number("number", given.get("number"), _UINT32)
        tensors, attributes = given.get("tensors", {}), given.get("attributes", {})
        _require_same("tensors", tensors, [member.name for member in layout.tensors])
        _require_same("attributes", attributes, layout.attributes)
        self.tensors: dict[str, TensorView] = {}
        bound: dict[str, list[str | None]] = {"input": [], "output": []}
        for member in layout.tensors:
            bound[member.type.rstrip("s")] += self._views(member, tensors[member.name], attributes)
        self.inputs: list[str] = given["inputs"]
        self.outputs: list[str] = given["outputs"]
        self.in_place: str | None = given.get("in_place")
        self.bound_inputs = _places(self.inputs, bound["input"])
        self.bound_outputs = _places(self.outputs, bound["output"])
        if self.in_place is not None and self.in_place not in self.inputs:
            raise DescriptionError(f"{self.in_place!r} is bound and not described")
        self.output_shapes = [
            tuple(_number("output_shapes", size, _UINT32) for size in shape)
            for shape in given["output_shapes"]
        ]
        if len(self.output_shapes) != len(self.outputs):
            raise DescriptionError(f"{len(self.output_shapes)} output_shapes for {len(self.outputs)} outputs")
        self.flags = _number("flags", given.get("flags", 0), _UINT32)
        level = given.get("minimum_feature_level", "1_0")
        if level not in LEVELS:
            raise DescriptionError(f"unknown feature level {level!r}; known: {', '.join(LEVELS)}")
        self.level = LEVELS[level]
        self._kept: list[Any] = []
        self.desc = self._operator(number, layout, attributes, tensors)
        """DML_OPERATOR_DESC."""

    def _views(self, member: NativeMember, given: Any, attributes: Any) -> list[str | None]:
        """Read a tensor or an array of them into `tensors`; return the names of its bindings."""
        if member.type in ("input", "output"):
            if given is None:
                return [None]
            self.tensors[member.name] = _view(member.name, given)
            return [member.name]
        _require_counted(member, given, attributes)
        names = [f"{member.name}.{place}" for place in range(len(given or ()))]
        self.tensors.update((name, _view(name, each)) for name, each in zip(names, given or ()))
        return list(names)

    def _operator(self, number: int, layout: Layout, attributes: Any, tensors: Any) -> TypedDesc:
        """Return a DML_OPERATOR_DESC; tensors that are not given are NULL."""
        values = []
        for member in layout.members:
            if member.type in ("input", "output"):
                view = self.tensors[member.name] if tensors.get(member.name) is not None else None
                values.append(None if view is None else self._keep(self._tensor(view)))
            elif member.type in ("inputs", "outputs"):
                given = tensors.get(member.name)
                views = [
                    self._tensor(self.tensors[f"{member.name}.{place}"]) for place in range(len(given or ()))
                ]
                values.append(None if given is None else self._keep((TypedDesc * max(1, len(views)))(*views)))
            else:
                values.append(self._attribute(member, attributes[member.name], attributes))
        return TypedDesc(number, self._keep(layout.structure(*values)))

    def _keep(self, made: Any) -> int:
        """Keep a structure alive as long as the description; return its address."""
        self._kept.append(made)
        return addressof(made)

    def _attribute(self, member: NativeMember, value: Any, attributes: Any) -> Any:
        """Return what stands in the structure for a member that is no tensor."""
        name, kind = member.name, member.type
        if kind in _NUMBERS:
            return _NUMBERS[kind](name, value)
        if kind == "size_2d":
            _require_length(name, value, 2)
            return Size2D(*(_unsigned(name, each) for each in value))
        if value is None:
            return None
        if kind == "scale_bias":
            _require_length(name, value, 2)
            return self._keep(ScaleBias(*(_real(name, each) for each in value)))
        if kind == "operator_desc":
            return self._keep(self._nested(name, value))
        _require_counted(member, value, attributes)
        if kind == "operator_desc_array":
            return self._keep((TypedDesc * max(1, len(value)))(*(self._nested(name, each) for each in value)))
        element = kind[: -len("_array")]
        return self._keep(
            (_FIELDS[element] * max(1, len(value)))(*(_NUMBERS[element](name, each) for each in value))
        )

    def _nested(self, name: str, given: Any) -> TypedDesc:
        """Return the description of an activation, whose tensors are NULL: it is fused, or applied to a
        gate."""
        if not isinstance(given, dict):
            raise DescriptionError(
                f"{name}: an operator is described by number, members and attributes, and not by {given!r}"
            )
        layout, attributes = layout_of(tuple(given.get("members", ()))), given.get("attributes", {})
        _require_same(f"{name}.attributes", attributes, layout.attributes)
        return self._operator(_number(f"{name}.number", given.get("number"), _UINT32), layout, attributes, {})

    def _tensor(self, view: TensorView) -> TypedDesc:
        """Return a DML_TENSOR_DESC."""
        count = len(view.sizes)
        sizes = (c_uint32 * max(1, count))(*view.sizes)
        strides = None if view.strides is None else (c_uint32 * max(1, count))(*view.strides)
        buffer = BufferTensorDesc(
            TENSOR_DATA_TYPES[view.dtype],
            c_int32(view.flags).value,
            count,
            self._keep(sizes),
            None if strides is None else self._keep(strides),
            view.bytes,
            view.alignment,
        )
        return TypedDesc(BUFFER, self._keep(buffer))


def _view(name: str, given: Any) -> TensorView:
    if given["dtype"] not in ITEMSIZES:
        raise DescriptionError(
            f"{name}: DirectML has no element type {given['dtype']!r}; it has {', '.join(ITEMSIZES)}"
        )
    sizes, strides = given["sizes"], given.get("strides")
    for size in sizes:
        _number(f"{name}.sizes", size, _UINT32)
    if strides is not None:
        if len(strides) != len(sizes):
            raise DescriptionError(f"{name}: {len(strides)} strides for {len(sizes)} sizes")
        for stride in strides:
            _number(f"{name}.strides", stride, _UINT32)
    return TensorView(
        given["dtype"],
        sizes,
        strides,
        _number(f"{name}.bytes", given["bytes"], _UINT64),
        _number(f"{name}.alignment", given.get("alignment", 0), _UINT32),
        _number(f"{name}.flags", given.get("flags", 0), _UINT32),
    )


def _number(name: str, value: Any, limit: int) -> int:
    """Return a value that fits the unsigned field; ctypes would cut it off without a word."""
    if type(value) is not int or not 0 <= value < limit:
        raise DescriptionError(
            f"{name}: {value!r} does not fit an unsigned integer of {limit.bit_length() - 1} bits"
        )
    return value


_unsigned, _unsigned64 = (partial(_number, limit=limit) for limit in (_UINT32, _UINT64))


def _signed(name: str, value: Any) -> int:
    if type(value) is not int or not -_INT32 <= value < _INT32:
        raise DescriptionError(f"{name}: {value!r} does not fit a signed integer of 32 bits")
    return value


def _real(name: str, value: Any) -> float:
    """Return a number; JSON has none for what is not finite, which is written as text."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if value in ("inf", "-inf", "nan"):
        return float(value)
    raise DescriptionError(
        f"{name}: {value!r} is no number; one that is not finite is written inf, -inf or nan"
    )


def _scalar(name: str, value: Any) -> int:
    """Return the eight bytes of a DML_SCALAR_UNION, given as {"float32": 1.5}."""
    if not isinstance(value, dict) or len(value) != 1 or not set(value) <= set(_SCALARS):
        raise DescriptionError(
            f"{name}: a scalar is written {{type: number}} with one of {', '.join(_SCALARS)}, and not {value!r}"
        )
    ((dtype, number),) = value.items()
    try:
        packed = struct.pack(
            "<" + _SCALARS[dtype], _real(name, number) if dtype.startswith("float") else number
        )
    except (struct.error, OverflowError) as error:
        raise DescriptionError(f"{name}: {number!r} does not fit {dtype}") from error
    return int.from_bytes(packed, "little")


_NUMBERS: dict[str, Callable[[str, Any], Any]] = {
    "uint": _unsigned, "int": _signed, "uint64": _unsigned64, "float": _real, "scalar_union": _scalar,
}  # fmt: skip


def _require_length(name: str, value: Any, count: int) -> None:
    if not isinstance(value, list) or len(value) != count:
        raise DescriptionError(f"{name}: {count} numbers are needed, and not {value!r}")


def _require_counted(member: NativeMember, value: Any, attributes: Any) -> None:
    """Refuse an array that is shorter than the member that counts it says: DirectML would read beyond its
    end."""
    if value is None:
        return
    if not isinstance(value, list):
        raise DescriptionError(f"{member.name}: an array is needed, and not {value!r}")
    count = attributes.get(member.counter, 0)
    if type(count) is int and count > len(value):
        raise DescriptionError(f"{member.name} has {len(value)} elements where {member.counter} says {count}")


def _places(names: Sequence[str], bound: Sequence[str | None]) -> list[int | None]:
    """Return for each binding its place in `names`, None for what is left out there or has no tensor: it is
    bound to nothing.

    Raises DescriptionError for a name without a tensor.
    """
    for name in names:
        if name not in bound:
            raise DescriptionError(f"{name!r} is bound and not described")
    return [names.index(name) if name in names else None for name in bound]


def _require_same(what: str, given: Any, wanted: Sequence[str]) -> None:
    if set(given) != set(wanted):
        raise DescriptionError(
            f"{what} are {', '.join(sorted(given)) or 'none'} where the operator has {', '.join(wanted)}"
        )
