"""Replaces the numbers of a failing case by random ones, so that a bug report has none of a user's.

Floats are drawn from the normal distribution of the same mean and deviation, within the same range; integers evenly
from their range. Inputs that decide shapes keep their elements, and so does each input without whose numbers the case
fails otherwise or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from harness.model.case import Case, Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.float_formats import FORMATS, decode, encode
from harness.model.onnx_schemas import is_graph
from harness.run.probe import Probes
from harness.specs.graphs.plain import plain_graph
from harness.specs.reading.load import LoadedSpec
from harness.specs.sweeps.calls import call_of
from harness.targets.execution import Prepared
from harness.triage.reduction.candidate import Subject

_FEW = 1
"""Elements up to which a constant of a graph says what is computed, not a user's numbers."""
_SOURCE = "a model, numbers drawn anew"
"""Stands for the source of a case, which may name a user's model and its nodes."""


class RedrawnCase(NamedTuple):
    """The case with its spec; `kept` are the tensors whose numbers are as they were, in their order."""

    case: Case
    spec: LoadedSpec
    kept: tuple[str, ...]


def redrawn(probes: Probes, case: Case, spec: LoadedSpec) -> RedrawnCase:
    """Return a case that fails in the same way with as few of its own numbers as possible: first none of
    them, then tensor by tensor."""
    first = probes.fresh(case)
    wanted = first.signature
    tensors, make = _tensors(first.prepared.inputs, case, spec)
    generator = np.random.default_rng(probes.seed)
    drawn = {name: _like(tensor, generator) for name, tensor in tensors.items()}

    def alike(changed: Mapping[str, Tensor]) -> bool:
        made = make(changed)
        return made is not None and probes.fresh(made[0]).signature == wanted

    changed = drawn
    if not alike(drawn):
        changed = {}
        for name, tensor in drawn.items():
            if alike({**changed, name: tensor}):
                changed[name] = tensor
    made = make(changed)
    if made is None or not changed:
        return RedrawnCase(case, spec, tuple(tensors))
    return RedrawnCase(*made, tuple(name for name in tensors if name not in changed))


_Make = Callable[[Mapping[str, Tensor]], tuple[Case, LoadedSpec] | None]


def _tensors(inputs: tuple[Tensor, ...], case: Case, spec: LoadedSpec) -> tuple[dict[str, Tensor], _Make]:
    """Return the tensors of a case that can be redrawn, by name, and what makes the case with others in their place: None
    where that is no case of the same validity."""
    if is_graph(case.operator):
        graph = plain_graph(case, inputs, spec.opsets)
        held = {
            name: tensor
            for name, tensor in graph.constants.items()
            if tensor.array.size > _FEW and tensor.dtype in FORMATS
        }

        def of_graph(changed: Mapping[str, Tensor]) -> tuple[Case, LoadedSpec] | None:
            other = graph._replace(
                inputs={name: changed.get(name, tensor) for name, tensor in graph.inputs.items()},
                constants={name: changed.get(name, tensor) for name, tensor in graph.constants.items()},
                source=_SOURCE,
            )
            return other.known_as(f"{case.operator}Redrawn")

        return {**graph.inputs, **held}, of_graph
    subject = Subject(Prepared(case, call_of(case), inputs), spec)
    start = subject.start

    def of_operator(changed: Mapping[str, Tensor]) -> tuple[Case, LoadedSpec] | None:
        other = start._replace(
            inputs=tuple(
                changed.get(name, tensor) for name, tensor in zip(start.names, start.inputs, strict=True)
            )
        )
        if not subject.keeps(other):
            return None
        return msgspec.structs.replace(subject.case(other), source=_SOURCE), spec

    named = zip(start.names, start.inputs, strict=True)
    return {name: tensor for name, tensor in named if not subject.decides(name)}, of_operator


def _like(tensor: Tensor, generator: np.random.Generator) -> Tensor:
    """Draw a tensor of the same type, shape, mean, deviation and range."""
    dtype, array = tensor
    if not array.size:
        return tensor
    if dtype == "string":
        return Tensor(dtype, np.full(array.shape, "text", object))
    if dtype == "bool":
        return Tensor(dtype, generator.random(array.shape) < array.mean())
    if dtype not in FORMATS:
        if not DTYPES[dtype].is_integer:
            return tensor
        drawn = generator.integers(array.min(), array.max(), array.shape, array.dtype, endpoint=True)
        return Tensor(dtype, np.asarray(drawn))
    values = decode(dtype, array)
    finite = values[np.isfinite(values)]
    if not finite.size:
        return tensor
    low, high, deviation = finite.min(), finite.max(), finite.std()
    if low == high:  # a scale, or a tensor of one number: another of the same size
        return Tensor(dtype, encode(dtype, np.asarray(values * generator.uniform(0.5, 1.5))))
    found: Array = generator.normal(finite.mean(), deviation, array.shape)
    return Tensor(dtype, encode(dtype, np.clip(found, low, high)))
