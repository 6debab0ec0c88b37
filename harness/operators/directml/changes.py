"""Calls beside a base call of DirectML's API, each on one side of a sentence of the operator's document.

They follow from the document's tables and constraints (`harness.model.reference.directml`) and from the
description of the base, which keeps them all. One that breaks a sentence changes one tensor, or, for a data
type that a table lacks, all that must have the same one, so that no other sentence decides. Pure: no DLL, no
device, no array.

`buffer_changes` change the buffer of a tensor of any operator, on each side of the sentences of DML_BUFFER_TENSOR_DESC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.model.case import DirectmlTensor, Validity
from harness.model.dtypes import DTYPES
from harness.model.reference.directml import Constraint, DirectmlOperator, Table
from harness.operators.directml.description import BufferTensor, Description
from harness.operators.directml.layout import elements

MOST = 9
"""One DimensionCount more than any document allows."""
_WORDS = {"dtype": "DataType", "dimension_count": "DimensionCount", "sizes": "Sizes"}
_REPRESENTATIVES = (("float64", "float32", "float16"), ("int64", "int32", "uint8"))
"""Data types that a table may lack: one of each row is tried."""
_PER_DIMENSION = frozenset({"uint_array", "int_array", "float_array"})


class CallChange(NamedTuple):
    """The difference of a case from its base: members of tensors by name, or a DimensionCount for all of them.

    `rule` is the sentence that it breaks (None for a valid one), `section` the part of the document that has
    it; `document` names another page than the operator's.
    """

    name: str
    section: str
    rule: str | None = None
    tensors: Mapping[str, DirectmlTensor] = {}
    dimension_count: int | None = None
    document: str | None = None
    validity: Validity = Validity.INVALID


def changes(operator: DirectmlOperator, base: Description, paddable: bool) -> Iterator[CallChange]:
    """Yield both sides of each constraint and table; `paddable` says that leading dimensions of 1 leave the
    meaning of the call alone."""
    tables = operator.tables_for(base.attributes)
    yield CallChange("api_base", "tensor support and constraints", validity=Validity.VALID)
    yield from _unlike(operator, base, tables)
    yield from _dimension_counts(base, tables, paddable)
    yield from _undocumented(operator, base, tables)


def broken(operator: DirectmlOperator, call: Description) -> Iterator[tuple[str, Constraint]]:
    """Yield the constraints that a call breaks, each after `dtype`, `dimension_count` or `sizes`."""
    for constraint in operator.constraints:
        tensors = [tensor for _, tensor in _named(call, constraint.of)]
        for what in constraint.same:
            if len({_said(what, tensor) for tensor in tensors}) > 1:
                yield what, constraint


def _said(what: str, tensor: BufferTensor) -> object:
    return {"dtype": tensor.dtype, "dimension_count": len(tensor.sizes), "sizes": tensor.sizes}[what]


def _named(call: Description, members: Sequence[str]) -> list[tuple[str, BufferTensor]]:
    """Return the tensors of some members, those of arrays one by one, in the order of the structure."""
    return [(name, tensor) for name, tensor in call.views() if name.partition(".")[0] in members]


def _unlike(operator: DirectmlOperator, base: Description, tables: dict[str, Table]) -> Iterator[CallChange]:
    """Yield for each thing that tensors have in common, and each of them but the first, the call in which it
    has another."""
    wrong = list(broken(operator, base))
    done = set()
    for constraint in operator.constraints:
        for what in constraint.same:
            if (what, constraint) in wrong:
                continue  # the base shows that this is not what the document means
            for name, tensor in _named(base, constraint.of)[1:]:
                changed = _other(what, tensor, _dtypes(tables, name))
                if changed is not None and (what, name) not in done:
                    done.add((what, name))
                    rule = f"{_listed(constraint.of)} must have the same {_WORDS[what]}"
                    yield CallChange(
                        f"api_unlike_{what}_{snake(name)}", "tensor constraints", rule, {name: changed}
                    )


def _other(what: str, tensor: BufferTensor, dtypes: Sequence[str]) -> DirectmlTensor | None:
    if what == "dtype":
        narrow_first = sorted(
            dtypes, key=lambda dtype: DTYPES[dtype].itemsize == 8
        )  # 64 bits are of late levels
        other = next((dtype for dtype in narrow_first if dtype != tensor.dtype), None)
        return None if other is None else DirectmlTensor(dtype=other)
    if what == "dimension_count":
        return DirectmlTensor(
            sizes=(1, *tensor.sizes), strides=None if tensor.strides is None else (0, *tensor.strides)
        )
    return DirectmlTensor(sizes=(*tensor.sizes[:-1], tensor.sizes[-1] + 1))


def _dtypes(tables: dict[str, Table], name: str) -> list[str]:
    """Return the element types that the newest table has for a tensor, in its order."""
    support = _newest(tables).get(name.partition(".")[0])
    by_name = {entry.directml: each for each, entry in DTYPES.items() if each != "bool"}
    return [] if support is None else [by_name[dtype] for dtype in support.dtypes if dtype in by_name]


def _dimension_counts(base: Description, tables: dict[str, Table], paddable: bool) -> Iterator[CallChange]:
    """Yield one dimension more and the most that a table has for all tensors, and one more than any has."""
    used = {name.partition(".")[0] for name, _ in base.views()}
    limits = [
        max((table[name].dims[1] for table in tables.values() if name in table), default=0) for name in used
    ]
    most, now = min(limits, default=0), max((len(tensor.sizes) for _, tensor in base.views()), default=MOST)
    if paddable:
        for count in sorted({now + 1, most}):
            if now < count <= most:
                yield CallChange(
                    f"api_dimension_count_{count}",
                    "tensor support",
                    dimension_count=count,
                    validity=Validity.VALID,
                )
    if now <= most < MOST:
        rule = f"a tensor has at most {most} dimensions"
        yield CallChange("api_too_many_dimensions", "tensor support", rule, dimension_count=most + 1)


def _undocumented(
    operator: DirectmlOperator, base: Description, tables: dict[str, Table]
) -> Iterator[CallChange]:
    """Yield for tensors that must have one data type the calls with one that no table has for any of them."""
    done: set[str] = set()
    for member in (each.name for each in operator.tensors):
        alike = _alike(operator, member)
        present = _named(base, tuple(alike))
        if member in done or not _named(base, (member,)):
            continue
        done |= alike
        printed = [table[each].dtypes for table in tables.values() for each in alike if each in table]
        if not printed or not all(printed):
            continue
        documented = {dtype for dtypes in printed for dtype in dtypes}
        for row in _REPRESENTATIVES:
            dtype = next((each for each in row if DTYPES[each].directml not in documented), None)
            if dtype is not None:
                rule = f"{_listed(tuple(sorted({name.partition('.')[0] for name, _ in present})))} cannot be {DTYPES[dtype].directml}"
                tensors = {name: DirectmlTensor(dtype=dtype) for name, _ in present}
                yield CallChange(f"api_undocumented_{dtype}_{snake(member)}", "tensor support", rule, tensors)


def _alike(operator: DirectmlOperator, member: str) -> set[str]:
    """Return the tensors that must have the data type of one."""
    found = {member}
    constraints = [set(each.of) for each in operator.constraints if "dtype" in each.same]
    while more := {name for each in constraints if each & found for name in each} - found:
        found |= more
    return found


def is_paddable(operator: DirectmlOperator, moved: Sequence[str]) -> bool:
    """Say whether leading dimensions of 1 leave the meaning of a call alone.

    They do not where the document names dimensions from the first on, nor where an array speaks of dimensions
    and is not `moved` with them.
    """
    shapes = [
        support.shape
        for tables in operator.all_tables()
        for support in _newest(tables).values()
        if support.shape is not None
    ]
    by_dimension = [
        each.name for each in operator.members if each.type in _PER_DIMENSION or each.name == "Axis"
    ]
    return all(shape.startswith("[") or "[]" in shape for shape in shapes) and all(
        name in moved for name in by_dimension
    )


def snake(name: str) -> str:
    """Write a tensor's name as names of cases are: `OutputTensors.1` as `output_tensors_1`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_").replace(".", "_")


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _newest(tables: dict[str, Table]) -> Table:
    return next(reversed(tables.values()), {})  # they are listed from the lowest level on


DOCUMENT = "DML_BUFFER_TENSOR_DESC"
_SIZE, _ALIGNMENT = "TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment"
_LARGE_ENOUGH = f"{_SIZE} must be at least as large as the minimum implied size"
_UNIT = 4
"""Bytes that a size is rounded up to (DMLCalcBufferTensorSize in DirectML's helper functions)."""
_SPARE = 64
_ALIGNED = 16
"""The least alignment in bytes that a buffer tensor has, whatever its description says."""


def buffer_changes(base: Description) -> Iterator[CallChange]:
    """Yield the calls with other sizes and alignments of the first input's and the first output's buffer."""
    output = base.outputs[0]
    first = base.inputs[0] if base.inputs else output
    input_tensor = base.view(first)
    width, output_width = (DTYPES[base.view(name).dtype].itemsize for name in (first, output))

    def valid(name: str, section: str, **tensors: DirectmlTensor) -> CallChange:
        return CallChange(name, section, None, tensors, None, DOCUMENT, Validity.VALID)

    def invalid(name: str, section: str, rule: str, tensor: str, changed: DirectmlTensor) -> CallChange:
        return CallChange(name, section, rule, {tensor: changed}, None, DOCUMENT)

    larger = {name: DirectmlTensor(bytes=tensor.bytes + _SPARE) for name, tensor in base.views()}
    yield valid("api_larger_buffer", _SIZE, **larger)
    for way, names in (("input", base.inputs[:1]), ("output", base.outputs[:1])):
        for name in names:
            smaller = DirectmlTensor(bytes=base.view(name).bytes - _UNIT)
            yield invalid(f"api_smaller_{way}_buffer", _SIZE, _LARGE_ENOUGH, name, smaller)
    exact = {name: DirectmlTensor(bytes=_unrounded(base.view(name))) for name in (first, output)}
    if any(changed.bytes != base.view(name).bytes for name, changed in exact.items()):
        rule = f"whether {_SIZE} is rounded up to {_UNIT} bytes"
        yield CallChange("api_bytes_not_rounded", _SIZE, rule, exact, None, DOCUMENT, Validity.UNSPECIFIED)
    half, own, three, most, other, twice = (
        DirectmlTensor(alignment=each) for each in (width // 2, width, 3, 64, _ALIGNED, 2 * output_width)
    )
    yield valid("api_aligned", _ALIGNMENT, **{output: other, first: most})
    yield valid("api_alignment_of_the_element", _ALIGNMENT, **{first: own})
    if 2 * output_width < _ALIGNED:
        yield valid("api_alignment_of_twice_the_element", _ALIGNMENT, **{output: twice})
    rule = f"{_ALIGNMENT} must be a power of two"
    yield invalid("api_alignment_of_3", _ALIGNMENT, rule, first, three)
    if width > 1:
        rule = f"{_ALIGNMENT} must be at least as large as the element size"
        yield invalid("api_alignment_below_the_element", _ALIGNMENT, rule, first, half)
    rule = "a size of zero in any dimension is invalid, and will result in an error"
    empty = DirectmlTensor(sizes=(0, *input_tensor.sizes[1:]), bytes=input_tensor.bytes)
    yield invalid("api_size_of_zero", "Sizes", rule, first, empty)


def _unrounded(tensor: BufferTensor) -> int:
    return elements(tensor.sizes, tensor.strides) * DTYPES[tensor.dtype].itemsize
