"""The search: removes parts of a case while it keeps its validity, its rule and its signature.

Steps are tried in a fixed order and the first success is kept, so the same case on the same target always
gives the same result. Each success costs less than its predecessor (`Subject.cost`), so the search ends: when
every step of every kind has been tried on the result and none held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any, NamedTuple

from harness.compile.prepare import refusal, with_inputs
from harness.model.case import Case
from harness.model.onnx_schemas import is_graph
from harness.model.signature import Signature, place
from harness.model.verdict import conforms
from harness.run.probe import Probe, Probes
from harness.specs.graphs.plain import plain_graph
from harness.specs.reading.load import LoadedSpec
from harness.targets.execution import Prepared
from harness.triage.reduction.candidate import Candidate, Subject
from harness.triage.reduction.element_cost import ELEMENTWISE
from harness.triage.reduction.elements import plainer_elements
from harness.triage.reduction.graphs import smallest
from harness.triage.reduction.settings import (
    fewer_inputs,
    fewer_options,
    older_opsets,
    plainer_dtypes,
    smaller_attributes,
)
from harness.triage.reduction.shapes import smaller_shapes

STEPS: tuple[Callable[[Subject, Candidate], Iterator[Candidate]], ...] = (
    fewer_inputs,
    smaller_shapes,
    fewer_options,
    plainer_dtypes,
    smaller_attributes,
    plainer_elements,
    older_opsets,
)
REPEATS = 3


class Flaky(NamedTuple):
    """The case does not always do the same: a search among such outcomes would find anything. `what` is a
    line for people."""

    what: str


class ReducedCase(NamedTuple):
    """The smallest case, its failure, the number of tried cases, and the numbers of elements before and after;
    `finished` is False if the time ended the search. `spec` is the case's spec, for a graph the one without the
    removed nodes."""

    case: Case
    spec: LoadedSpec
    signature: Signature
    probes: int
    restarts: int
    before: int
    after: int
    finished: bool


class Reducer:
    """Reduces one failing case on one target; on a second one, if it is given, every case that is kept
    conforms.

    Without the second the search may end at a smaller case of another defect that fails in the same way.
    """

    def __init__(
        self,
        probes: Probes,
        prepared: Prepared,
        spec: LoadedSpec,
        progress: Callable[[int, int], None],
        conforming: Probes | None = None,
        seconds: float = float("inf"),
    ) -> None:
        """Take the case as it failed; `progress` receives the number of probes and the elements of the smallest
        case so far. After `seconds` the search ends with that."""
        self.subject = Subject(prepared, spec)
        self._prepared = prepared
        self._probes = probes
        self._conforming = conforming
        self._known: dict[tuple[Any, ...], bool] = {}
        self._progress = progress
        self._wanted: tuple[Signature, str] | None = None
        self._culprit: tuple[str, ...] = ()
        self._smallest = elements(self.subject.start)
        self._until = monotonic() + seconds

    def reduce(self) -> ReducedCase | Flaky:
        """Return the smallest case that fails like the given one."""
        subject = self.subject
        first = [self._probes.fresh(subject.origin), *self._probes.repeat(subject.origin, REPEATS - 1)]
        self._wanted = how(first[0])
        wanted = self._wanted[0]
        if any(how(probe) != self._wanted for probe in first):
            return Flaky(f"{subject.origin.id}: flaky on {self._probes.target.name}: {describe(first)}")
        self._culprit = self._probes.culprit(first[0])
        if is_graph(subject.origin.operator):
            subject = self.subject = self._of_smallest_graph()
        current = subject.start
        if not ((self._over and is_graph(subject.origin.operator)) or self._fails_alike(current)):
            return Flaky(f"{subject.origin.id}: {wanted}, but not with the same inputs written out")
        while not self._over:
            smaller = self._round(current)
            if smaller is current:
                break
            current = smaller
        return self._confirmed(current)

    @property
    def _over(self) -> bool:
        return monotonic() >= self._until

    def _round(self, current: Candidate) -> Candidate:
        """Go through all kinds of steps once, each as long as one of it holds."""
        for steps in STEPS:
            found: Candidate | None = current
            while found is not None:
                current = found
                self._smallest = elements(current)
                cost = self.subject.cost(current)
                cheaper = (step for step in steps(self.subject, current) if self.subject.cost(step) < cost)
                found = next(filter(self._fails_alike, filter(self.subject.keeps, cheaper)), None)
        return current

    def _fails_alike(self, candidate: Candidate) -> bool:
        key = candidate.key()
        known = self._known.get(key)
        if known is None:
            if self._over:
                return False
            case = self.subject.case(candidate)
            refused = refusal(case, self._probes.target.provider) is not None
            known = not refused and self._alike(self._probes.one(case))
            self._known[key] = known
            self._progress(self._probes.number, self._smallest)
        return known

    def _of_smallest_graph(self) -> Subject:
        """Return the case with as few nodes as fail alike, elements as they were."""
        origin = self.subject.origin
        graph = plain_graph(origin, self._prepared.inputs, self.subject.spec.opsets)
        name = f"{origin.operator}Reduced"

        def alike(case: Case) -> bool:
            if self._over:
                return False
            probe = self._probes.one(case)
            self._wanted = (wanted[0], how(probe)[1])  # the output has another place in a smaller graph
            return self._alike(probe)

        wanted = how(self._probes.one(origin))
        case, spec = smallest(graph, name, alike).known_as(name)
        self._wanted = how(self._probes.one(case))
        return Subject(with_inputs(case), spec, self.subject.name)

    def _alike(self, probe: Probe) -> bool:
        """Say whether a case fails as the first, by the same transformers, and conforms on the second target."""
        return (
            how(probe) == self._wanted
            and self._probes.culprit(probe) == self._culprit
            and self._conforms(probe.prepared.case)
        )

    def _conforms(self, case: Case) -> bool:
        """Say whether the case conforms on the second target; without one every case does."""
        return self._conforming is None or conforms(
            case.validity, self._conforming.one(case).judgement.outcome
        )

    def _confirmed(self, candidate: Candidate) -> ReducedCase | Flaky:
        """Run the result in fresh workers, so that nothing of the probes before it is part of the failure."""
        case = self._filled(candidate)
        found = [self._probes.fresh(case) for _ in range(REPEATS)]
        assert self._wanted is not None
        if any(how(probe) != self._wanted for probe in found) or not self._conforms(case):
            return Flaky(
                f"{self.subject.origin.id}: reduced to {case.id}, which is flaky in fresh workers: {describe(found)}"
            )
        return ReducedCase(
            case,
            self.subject.spec,
            self._wanted[0],
            self._probes.number,
            self._probes.restarts,
            before=elements(self.subject.start),
            after=elements(candidate),
            finished=not self._over,
        )

    def _filled(self, candidate: Candidate) -> Case:
        """Return the case with large tensors filled by a rule instead of written out, where that fails
        alike."""
        subject = self.subject
        fills: dict[int, str] = {}
        for position, tensor in enumerate(candidate.inputs):
            if tensor.array.size <= ELEMENTWISE:
                continue
            name = candidate.names[position]
            for kind in () if subject.decides(name) else subject.kinds(name) or ("random",):
                probe = self._probes.one(subject.case(candidate, {**fills, position: kind}))
                filled = candidate._replace(inputs=probe.prepared.inputs)
                if subject.broken(filled) == subject.rule and self._alike(probe):
                    fills[position] = kind
                    break
        return subject.case(candidate, fills)


def how(probe: Probe) -> tuple[Signature, str]:
    """Return how a case fails, and where an output differs: what keeps the search with one defect."""
    diff = probe.judgement.diff
    return probe.signature, "" if diff is None else place(diff)


def elements(candidate: Candidate) -> int:
    """Count the elements of all inputs."""
    return sum(tensor.array.size for tensor in candidate.inputs)


def describe(probes: Sequence[Probe]) -> str:
    """Write how often which outcome came: `crash at run (SIGSEGV) 2 of 3, pass 1 of 3`."""
    counts = Counter(str(probe.signature) for probe in probes)
    return ", ".join(f"{text} {number} of {len(probes)}" for text, number in counts.most_common())
