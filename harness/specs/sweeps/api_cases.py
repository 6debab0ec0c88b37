"""Generates the cases of DirectML's own API that follow from an operator's document: both sides of each
constraint, table and buffer rule.

They derive from one base call, the first that can be lowered and that a published table allows: the
documented literal cases, the other valid literal ones (within each kind, those at the newest opset first),
the cases of the sweeps (the smallest of several float32 at the newest opset first). A case that a spec writes
out under the same name replaces the generated one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from math import prod
from typing import NamedTuple, Protocol

import msgspec

from harness.model.case import BEYOND, Case, DirectmlOptions, Options, Validity
from harness.model.caseid import CaseKey
from harness.model.reference.directml import directml_operator
from harness.operators import OPERATORS
from harness.operators.base import DirectmlCall
from harness.operators.directml.changes import CallChange, buffer_changes, changes, is_paddable
from harness.operators.directml.description import Description
from harness.operators.directml.levels import levels_of, lowered_to
from harness.operators.directml.lowering import NotExpressible, directml_call, lower
from harness.specs.reading.literal_cases import identified
from harness.specs.reading.load import LoadedSpec
from harness.specs.sweeps.calls import call_of

_TRIED = 1000
"""Cases of a sweep that are looked at for a base."""
_MOST_ELEMENTS = 64
_SEVERAL = 2
_USUAL = "float32"
"""The element type that a sweep's case should have: a result of fewer bits may deviate by rounding."""


class _Sweep(Protocol):
    def cases(self, left_out: Counter[str]) -> Iterator[Case]: ...


class Base(NamedTuple):
    """A call that others are derived from: the case, its name, and the DirectML call that it lowers to."""

    case: Case
    entry: str
    made: DirectmlCall
    description: Description


def api_cases(spec: LoadedSpec, literals: Sequence[Case], sweeps: Sequence[_Sweep]) -> Iterator[Case]:
    """Yield the generated cases of a spec; none where no call of its is lowered."""
    base = base_of(spec, literals, sweeps)
    if base is None:
        return
    written = {entry.name for entry in spec.model.cases}
    yield from (case_of(base, change) for change in _changes(base) if change.name not in written)


def _changes(base: Base) -> Iterator[CallChange]:
    known = directml_operator(base.made.operator)
    yield from changes(
        known, base.description, is_paddable(known, (*base.made.axes, *base.made.per_dimension))
    )
    yield from buffer_changes(base.description)


def base_of(spec: LoadedSpec, literals: Sequence[Case], sweeps: Sequence[_Sweep]) -> Base | None:
    """Return the call that a spec's cases of the API are made of, None where none can be lowered."""
    if not spec.directml:
        return None
    newest = spec.opsets[-1]
    listed = sorted(literals, key=lambda case: (case.documented is None, case.opset != newest))
    bases = (_base(case) for case in listed)
    found = next((base for base in bases if base is not None), None)
    if found is not None:
        return found
    tried = [case for sweep in sweeps for case in islice(sweep.cases(Counter()), _TRIED)]
    tried.sort(key=lambda case: (case.opset != newest, case.inputs[0].dtype != _USUAL, *_sizes(case)))
    return next((base for base in map(_base, tried) if base is not None), None)


def _base(case: Case) -> Base | None:
    """Return a case as a base, None where it cannot be one."""
    if (
        case.validity is not Validity.VALID
        or case.directml is not None
        or case.options.neighbours
        or case.options.in_place
    ):
        return None
    plain = msgspec.structs.replace(
        case, options=Options(variant=case.options.variant, outputs=case.options.outputs), documented=None
    )
    call = call_of(plain)
    try:
        made = directml_call(plain, call)
        if lowered_to(OPERATORS[case.operator], None, call) is None:
            plain = msgspec.structs.replace(plain, directml=DirectmlOptions(made.operator))
        description = lower(plain, call)
    except NotExpressible:
        return None
    if levels_of(plain, call)["directml"] == BEYOND or _elements(description) > _MOST_ELEMENTS:
        return None
    return Base(plain, CaseKey.of(case.id).origin, made, description)


def _sizes(case: Case) -> tuple[bool, int]:
    """Return whether an input has a single element or none, and how many all have."""
    sizes = [prod(each.shape) for each in case.inputs]
    return min(sizes) < _SEVERAL, sum(sizes)


def _elements(description: Description) -> int:
    return max(prod(tensor.sizes) for _, tensor in description.views())


def case_of(base: Base, change: CallChange) -> Case:
    """Return the base with a change."""
    operator = base.case.directml.operator if base.case.directml is not None else None
    asked = DirectmlOptions(operator, change.dimension_count, tensors=tuple(sorted(change.tensors.items())))
    case, page = base.case, change.document or document_name(base.made.operator)
    changed = msgspec.structs.replace(
        case,
        id=change.name,
        validity=change.validity,
        rule=change.rule,
        source=f"{page}, {change.section}; generated from {base.entry}",
        directml=asked,
    )
    changed = identified(changed)
    return msgspec.structs.replace(changed, levels=levels_of(changed, call_of(changed)))


def document_name(operator: str) -> str:
    """Return the name of the structure that an operator's page documents: `DML_JOIN_OPERATOR_DESC`."""
    page = directml_operator(operator).document.partition("/ns-directml-")[2].partition(".md")[0]
    return page.upper()
