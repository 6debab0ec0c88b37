"""Mistakes that a kernel of any operator can make, found from its spec and ONNX's schema alone.

`readings` are kernels that take a call for another and are right for that: an attribute ignored, an input
read in another order. `conditions` are kernels that are right but where one condition holds: an element type,
a version, an option of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from harness.model.case import Case, Tensor, Validity
from harness.model.dtypes import Array
from harness.model.expected import Expected
from harness.operators import OPERATORS
from harness.operators.base import Call
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs, own_spec
from harness.specs.sweeps.calls import call_of, case_inputs

MOST = 4_000
"""Cases with more elements are left out: what is wrong shows in smaller ones."""


@dataclass
class Sample:
    """A valid case with what its formula needs and gives, made when first asked for."""

    case: Case
    call: Call

    @cached_property
    def inputs(self) -> dict[str, Tensor]:
        tensors = case_inputs(self.call, self.case, 0)
        return {spec.name: tensor for spec, tensor in zip(self.case.inputs, tensors, strict=True)}

    @property
    def arrays(self) -> dict[str, Array]:
        return {name: tensor.array for name, tensor in self.inputs.items()}

    @cached_property
    def expected(self) -> tuple[Expected, ...]:
        with np.errstate(all="ignore"):
            return OPERATORS[self.case.operator].oracle(self.call, self.inputs, "opencl")


class AnyMistake(Protocol):
    """A mistake in a kernel of an operator."""

    @property
    def name(self) -> str: ...

    def concerns(self, sample: Sample) -> bool:
        """Say, without computing anything, whether it can show in a case."""
        ...

    def shows(self, sample: Sample) -> bool:
        """Say whether a case turns red."""
        ...


def samples(name: str, most: int = MOST) -> list[Sample]:
    """Return the valid cases of an operator's own spec, those whose inputs have at most so many elements."""
    plan = expand(load_specs((own_spec(name),)))
    return [
        Sample(case, call_of(case))
        for case in plan.cases(valid=True)
        if case.validity is Validity.VALID
        and case.directml is None
        and sum(int(np.prod(spec.shape)) for spec in case.inputs) <= most
    ]


def red(mistake: AnyMistake, cases: Sequence[Sample]) -> Iterator[str]:
    """Yield the cases that turn red."""
    for sample in cases:
        if mistake.concerns(sample) and mistake.shows(sample):
            yield sample.case.id


def survives(mistake: AnyMistake, cases: Sequence[Sample]) -> bool:
    """Say whether fewer than two cases turn red."""
    found = red(mistake, cases)
    return next(found, None) is None or next(found, None) is None
