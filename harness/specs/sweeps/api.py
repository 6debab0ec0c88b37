"""Spec entries for DirectML's own API: the values of `directml:`, and the errors in them for an operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from harness.model.case import DirectmlOptions, DirectmlTensor, Options
from harness.model.dtypes import DTYPES
from harness.model.reference.directml import directml_operator
from harness.operators.base import Call, CallTensor, Operator
from harness.specs.reading.entry_schema import (
    CaseDirectml,
    LayoutName,
    LiteralCase,
    Sweep,
    SweepDirectml,
    SweepOptions,
    TensorName,
)
from harness.specs.reading.load import LoadedSpec
from harness.specs.reading.source import KeyPath, shown

_UINT = 1 << 32
DTYPES_OF_DIRECTML = tuple(
    name for name, entry in DTYPES.items() if entry.directml is not None and name != "bool"
)
"""What `dtype: all` means to DirectML: one element type for each DML_TENSOR_DATA_TYPE."""


def opsets(entry: LiteralCase | Sweep, spec: LoadedSpec) -> tuple[int, ...]:
    """Return the opsets of an entry; a call of DirectML's API has none, and stands once, at the newest."""
    given = entry.opsets or spec.opsets
    return given if entry.directml is None else given[-1:]


def literal_options(given: CaseDirectml | None) -> DirectmlOptions | None:
    """Return the requests of a literal case."""
    if given is None:
        return None
    return DirectmlOptions(
        given.operator,
        given.dimension_count,
        given.in_place,
        _layouts(given.layout),
        tuple(sorted(given.attributes.items())),
        tuple(sorted((name, DirectmlTensor(**dict(members))) for name, members in given.tensors.items())),
    )


def sweep_options(given: SweepDirectml | None) -> Iterator[DirectmlOptions | None]:
    """Yield every combination of a sweep's requests."""
    if given is None:
        yield None
        return
    for operator, count, in_place in product(given.operator, given.dimension_count, given.in_place):
        for layouts in product(*given.layout.values()):
            yield DirectmlOptions(
                operator, count, in_place, _layouts(dict(zip(given.layout, layouts, strict=True)))
            )


def _layouts(layout: Mapping[TensorName, LayoutName]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((tensor, name) for tensor, name in layout.items() if name != "packed"))


def problems(
    spec: LoadedSpec,
    operator: Operator,
    graph: Options,
    given: CaseDirectml | SweepDirectml | None,
    asked: DirectmlOptions | None,
    at: KeyPath,
) -> Iterator[str]:
    """Yield the problems of `directml:` for an operator, in each `given` value and in their combination, beside the
    options of a graph."""
    if given is None or asked is None:
        return
    for name in SweepOptions.model_fields:
        if name not in ("variant", "outputs") and getattr(graph, name) != getattr(Options(), name):
            yield spec.problem(
                (*at, "options", name),
                f"{name} is an option of a graph, and a call of DirectML's API has none",
            )
    lowers_to = spec.directml
    if asked.operator is not None and asked.operator not in lowers_to:
        what = f"{spec.model.operator} does not lower to {asked.operator!r}"
        yield spec.problem((*at, "directml", "operator"), what, given=asked.operator, allowed=lowers_to)
        return
    members = {
        member.name: member
        for name in ((asked.operator,) if asked.operator else lowers_to)
        for member in directml_operator(name).members
    }
    if not members:
        yield spec.problem(
            (*at, "directml"), f"the harness does not know how {spec.model.operator} is lowered"
        )
        return
    tensors = tuple(name for name, member in members.items() if member.is_tensor)
    inputs = tuple(name for name in tensors if members[name].type == "input")
    others = tuple(name for name in members if name not in tensors)
    named = [("layout", name) for name in given.layout] + [("tensors", name) for name, _ in asked.tensors]
    for key, name in named:
        if name not in tensors:
            yield spec.problem(
                (*at, "directml", key, name), f"the operator has no {name}", given=name, allowed=tensors
            )
    for name, changed in asked.tensors:
        if changed.dtype is not None and changed.dtype not in DTYPES_OF_DIRECTML:
            what = f"DML_TENSOR_DATA_TYPE has no {changed.dtype}"
            yield spec.problem(
                (*at, "directml", "tensors", name, "dtype"),
                what,
                given=changed.dtype,
                allowed=DTYPES_OF_DIRECTML,
            )
    if asked.in_place is not None and asked.in_place not in inputs:
        yield spec.problem(
            (*at, "directml", "in_place"), f"the operator has no {asked.in_place}", allowed=inputs
        )
    for name, value in asked.attributes:
        at_member = (*at, "directml", "attributes", name)
        if name not in others:
            what = f"the operator's description has no member {name!r}"
            yield spec.problem(at_member, what, given=name, allowed=others)
        elif members[name].type == "uint" and (wrong := _no_uint(value)):
            yield spec.problem(at_member, wrong)


def _no_uint(value: object) -> str | None:
    """Say why a value is no UINT."""
    if isinstance(value, bool) or not isinstance(value, int):
        return f"should be an integer, not {shown(value)}"
    if value < 0:
        return f"{value} is below the least allowed, 0"
    return f"{value} is above the greatest allowed, {_UINT - 1}" if value >= _UINT else None


def unfit(operator: Operator, asked: DirectmlOptions | None, call: Call) -> str | None:
    """Return the reason why tensors of these shapes do not fit the requested DimensionCount; None if they
    do."""
    if asked is None or asked.dimension_count is None:
        return None
    made = operator.family.directml(operator, asked.operator, call)
    if made is None:
        return "DirectML's operator cannot express it"
    needed = max(
        made.dimension_count,
        *(len(each.sizes) for each in made.tensors.values() if isinstance(each, CallTensor)),
    )
    if needed > asked.dimension_count:
        return f"more dimensions than dimension_count {asked.dimension_count}"
    return None
