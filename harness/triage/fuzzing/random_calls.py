"""Draws random valid calls: a case of the spec, changed in one to some places beyond what the sweeps list.

Extents, ranks, element types, attributes, constants, options, opset and omitted inputs change at random, and
what breaks a rule of the operator is thrown away. Elements are chosen by kinds that valid cases of the spec
combine for these element types at this opset, also mixed element by element, so that a call stays within
what the specification defines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from random import Random
from typing import Any, NamedTuple

import numpy as np

from harness.compile.prepare import with_inputs
from harness.model.case import Case, Tensor, TensorSpec
from harness.model.caseid import input_term, option_terms, value_text
from harness.model.dtypes import DTYPES, Array
from harness.operators.base import UNKNOWN, Call, Shape
from harness.operators.elements import ELEMENT_KINDS
from harness.specs.reading.load import LoadedSpec
from harness.specs.sweeps.calls import random_tensor
from harness.triage.fuzzing.changes import CHANGES, LARGEST, Draft
from harness.triage.fuzzing.seeds import Kinds, Seeds, types_of
from harness.triage.reduction.candidate import Candidate, Subject

NAME = "fuzz"
_TRIES, _CHANGES, _VARIANTS = 12, 5, 4
_MIXED = 0.3
_ALONE = frozenset(kind.name for kind in ELEMENT_KINDS)
"""Kinds that choose each element whatever the others are, so that they can be mixed."""


class Drawn(NamedTuple):
    """A random call: its case with all elements written out, the ids by which expectations may know it, as if it
    stood in the sweep that it began as, and the spec that it began as a case of."""

    case: Case
    aliases: tuple[str, ...]
    spec: LoadedSpec


class Drawing:
    """Draws calls of one operator; the same seed draws the same calls."""

    def __init__(self, seeds: Seeds, seed: int) -> None:
        """Take the material; there is at least one case."""
        self.seeds = seeds
        self.random = Random(f"{seeds.operator.name}:{seed}")
        prepared = with_inputs(seeds.cases[0], self.random.getrandbits(32))
        self.subject = Subject(prepared, seeds.spec, NAME)

    def __iter__(self) -> Iterator[Drawn]:
        """Yield calls without end; some that follow each other have the same graph."""
        while True:
            yield from self._some()

    def _some(self) -> Iterator[Drawn]:
        seed = self.random.choice(self.seeds.cases)
        start = Candidate.of(seed, with_inputs(seed, self.random.getrandbits(32)).inputs)
        draft = Draft(start, self.seeds, self.subject, self.random)
        for _ in range(1 + min(self.random.getrandbits(3), _CHANGES)):
            draft = self._changed(draft)
        for _ in range(_VARIANTS):
            kinds = self._kinds(draft.candidate)
            found = self._filled(draft.candidate, kinds, keep=draft.candidate.inputs is start.inputs)
            if found is not None:
                yield Drawn(self.subject.case(found), self._aliases(found, seed, kinds), self.seeds.spec)

    def _changed(self, draft: Draft) -> Draft:
        """Return the draft after one change that breaks no rule, or as it is."""
        for _ in range(_TRIES):
            change: Callable[[Draft], Candidate | None] = self.random.choice(CHANGES)
            found = change(draft)
            if found is not None and found is not draft.candidate and self._fits(found):
                return Draft(found, draft.seeds, draft.subject, draft.random)
        return draft

    def _fits(self, candidate: Candidate) -> bool:
        """Say whether a call is valid as far as no elements decide, and of a size that can be computed."""
        if any(tensor.array.size > LARGEST for tensor in candidate.inputs):
            return False
        if candidate.options.initializer is not None and len(candidate.names) < 2:
            return False  # folded away
        schema = self.subject.spec.schema(candidate.opset)
        if (candidate.options.outputs or 1) > len(schema.outputs) and not schema.outputs[-1].variadic:
            return False
        if not self.subject.formed(candidate) or self.subject.broken(candidate, by_values=False) is not None:
            return False
        if not self.subject.follows(candidate):
            return False
        try:
            shapes = self.seeds.operator.family.output_shapes(
                self.seeds.operator, self.subject.call(candidate)
            )
        except MemoryError:  # the shape is that of what the formula makes
            return False
        return all(
            prod(max(extent, 1) for extent in shape if extent != UNKNOWN) <= LARGEST for shape in shapes
        )

    # elements

    def _kinds(self, candidate: Candidate) -> tuple[Kinds, Kinds] | None:
        """Return two ways to choose the elements of all inputs, equal where they are not to be mixed."""
        types = types_of(
            (name, tensor.dtype) for name, tensor in zip(candidate.names, candidate.inputs, strict=True)
        )
        known = self.seeds.kinds.get((candidate.opset, types), [])
        if not known:
            return None
        first = self.random.choice(known)
        return first, self.random.choice(known) if self.random.random() < _MIXED else first

    def _filled(
        self, candidate: Candidate, kinds: tuple[Kinds, Kinds] | None, *, keep: bool
    ) -> Candidate | None:
        """Return the candidate with elements chosen anew; None where the call cannot have such ones."""
        if kinds is None:
            return candidate if keep and self.subject.keeps(candidate) else None
        call = self.subject.call(candidate)
        first, other = dict(kinds[0]), dict(kinds[1])
        for position, name in enumerate(candidate.names):
            formal = name.partition(".")[0]
            if self.subject.decides(name) or formal not in first:
                continue  # its elements are written out in the seed
            one = self._elements(name, first[formal], call)
            two = one
            if {first.get(formal), other.get(formal)} <= _ALONE and first != other:
                two = self._elements(name, other[formal], call)
            if one is None or two is None:
                return None
            mask = np.frombuffer(self.random.randbytes(one.size), np.uint8).reshape(one.shape) & 1
            array = one if two is one else np.asarray(np.where(mask, one, two), one.dtype)
            candidate = candidate.with_input(position, Tensor(candidate.inputs[position].dtype, array))
        return candidate if self.subject.keeps(candidate) else None

    def _elements(self, name: str, kind: str, call: Call) -> Array | None:
        operator = self.seeds.operator
        dtype, shape = call.inputs[name]
        count = prod(shape)
        entropy = self.random.randbytes(max(4, DTYPES[dtype].itemsize) * count)
        if not operator.chooses(name, kind):
            return np.array(random_tensor(dtype, shape, count, memoryview(entropy)))
        if not operator.family.applies(operator, kind, name, call):
            return None
        return np.array(operator.family.generate(operator, kind, name, call, entropy)).reshape(shape)

    # what expectations know

    def _aliases(
        self, candidate: Candidate, seed: Case, kinds: tuple[Kinds, Kinds] | None
    ) -> tuple[str, ...]:
        origin = seed.id.partition(":")[2].partition(";")[0]
        specs = [self._spec(*each) for each in zip(candidate.names, candidate.inputs, strict=True)]
        head = f"{self.seeds.operator.name}@{candidate.opset}:{origin}"
        terms = [
            *map(input_term, specs),
            *(f"{name}={value_text(value)}" for name, value in candidate.attributes),
        ]
        stem = ";".join([head, *terms])
        found = []
        for each in dict.fromkeys(kinds or ((),)):
            values = [f";values={each[0][1]}"] if each and "values" not in candidate.names else []
            values += [f";{name}.values={kind}" for name, kind in each]
            found.append(stem + "".join(values) + option_terms(candidate.options))
        return tuple(found)

    def _spec(self, name: str, tensor: Tensor) -> TensorSpec:
        elements: Any = None
        if self.subject.decides(name) and tensor.dtype != "string" and tensor.dtype != "bfloat16":
            elements = tuple(tensor.array.reshape(-1).tolist())
        shape: Shape = tensor.array.shape
        return TensorSpec(name, tensor.dtype, shape, "literal", elements)
