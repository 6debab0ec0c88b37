"""Steps that simplify everything but the tensors: omitted inputs, options, element types, attributes, opset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from harness.model.case import DirectmlOptions, Options, Tensor, TensorValue, Value
from harness.model.dtypes import DTYPES
from harness.operators.binary_floats import decode_bfloat16
from harness.triage.reduction.candidate import DTYPE_ORDER, Candidate, Subject, changed_options
from harness.triage.reduction.element_cost import plain
from harness.triage.reduction.elements import nearer_integers, simpler_elements


def fewer_options(subject: Subject, candidate: Candidate) -> Iterator[Candidate]:
    """Yield candidates with all options, then one, at their defaults, and with a lower level of
    optimisation."""
    yield from _asking_less(candidate)
    options, default = candidate.options, Options()
    yield candidate._replace(options=default)
    for name in changed_options(options):
        usual = msgspec.structs.replace(options, **{name: getattr(default, name)})
        yield candidate._replace(options=usual)
    for level in ("basic", "extended"):
        yield candidate._replace(options=msgspec.structs.replace(options, optimization=level))


def _asking_less(candidate: Candidate) -> Iterator[Candidate]:
    """Yield candidates that ask for one thing less of DirectML's own API."""
    asked = candidate.directml
    if asked is None:
        return
    for name in DirectmlOptions.__struct_fields__:
        value = getattr(asked, name)
        less: list[Any] = []
        if isinstance(value, tuple):
            less = [value[:place] + value[place + 1 :] for place in range(len(value))]
        elif value is not None:
            less = [None]
        for each in less:
            yield candidate._replace(directml=msgspec.structs.replace(asked, **{name: each}))


def fewer_inputs(subject: Subject, candidate: Candidate) -> Iterator[Candidate]:
    """Yield candidates without one of the inputs that are optional or several."""
    for position in reversed(range(len(candidate.inputs))):
        yield candidate.without_input(position)


def plainer_dtypes(subject: Subject, candidate: Candidate) -> Iterator[Candidate]:
    """Yield candidates with another element type on the inputs that share one, with the same values or plain
    ones."""
    for positions in subject.alike(candidate) or ():
        for dtype in DTYPE_ORDER[: max(DTYPE_ORDER.index(candidate.inputs[n].dtype) for n in positions)]:
            for keep in (True, False):
                changed: Candidate | None = candidate
                for n in positions:
                    tensor = _as(candidate.inputs[n], dtype) if keep else None
                    if not keep:
                        array = plain(dtype, candidate.shapes[n], payload=subject.payload(candidate.names[n]))
                        tensor = Tensor(dtype, array)
                    changed = None if changed is None or tensor is None else changed.with_input(n, tensor)
                if changed is not None:
                    yield changed


def _as(tensor: Tensor, dtype: str) -> Tensor | None:
    """Return the tensor with its values in another numeric type, None where one of them is not exact
    there."""
    source, target = DTYPES[tensor.dtype], DTYPES[dtype]
    if (
        "string" in (tensor.dtype, dtype)
        or dtype == "bfloat16"
        or source.storage[0] == "c"
        or source.narrow
        or target.narrow
    ):
        return None
    wide = decode_bfloat16(tensor.array) if tensor.dtype == "bfloat16" else tensor.array
    with np.errstate(invalid="ignore", over="ignore"):
        array = wide.astype(target.storage)
        back = array.astype(wide.dtype)
    same = (back == wide) & (np.signbit(back) == np.signbit(wide)) if source.is_float else back == wide
    return Tensor(dtype, array) if bool(np.all(same | (back != back) & (wide != wide))) else None


def smaller_attributes(subject: Subject, candidate: Candidate) -> Iterator[Candidate]:
    """Yield candidates without an attribute, or with one that is nearer to zero or shorter; a text is
    kept."""
    for number, (name, value) in enumerate(candidate.attributes):
        before, after = candidate.attributes[:number], candidate.attributes[number + 1 :]
        yield candidate._replace(attributes=(*before, *after))
        for smaller in smaller_values(value):
            yield candidate._replace(attributes=(*before, (name, smaller), *after))


def smaller_values(value: Value) -> Iterator[Value]:
    """Yield smaller values of the same type: numbers nearer to zero, lists without an element or with a
    smaller one."""
    if isinstance(value, int):
        yield from (each for each in nearer_integers(value) if each != value)
    elif isinstance(value, float):
        yield from (float(each) for each in simpler_elements("float64", np.float64(value)))
    elif isinstance(value, tuple) and not isinstance(value, TensorValue):
        elements: tuple[Any, ...] = value
        for number in range(len(elements)):
            yield elements[:number] + elements[number + 1 :]
        for number, element in enumerate(elements):
            for smaller in smaller_values(element):
                yield (*elements[:number], smaller, *elements[number + 1 :])


def older_opsets(subject: Subject, candidate: Candidate) -> Iterator[Candidate]:
    """Yield candidates at older opsets of the spec, oldest first: the older, the more releases can run it. A call of
    DirectML's own API has none."""
    if candidate.directml is not None:
        return
    for opset in subject.spec.opsets:
        if opset < candidate.opset:
            yield candidate._replace(opset=opset)
