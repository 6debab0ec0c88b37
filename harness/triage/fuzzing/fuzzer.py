"""The fuzzer: draws calls, runs them, sorts what fails into known deviations and findings, and shrinks the
latter, until its time is over or somebody stops it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic

from harness.compile.prepare import refusal, with_inputs
from harness.model.case import Case
from harness.model.onnx_schemas import is_graph
from harness.model.verdict import Outcome, conforms
from harness.operators import OPERATORS
from harness.operators.base import Undefined
from harness.run.deviation import Given
from harness.run.oracle import OracleError, oracle
from harness.run.probe import Probe, Probes
from harness.specs.expectations.target_expectations import WITHOUT_KERNEL, Located, TargetExpectations
from harness.specs.graphs.deployments import graph_cases
from harness.specs.graphs.pattern import Pattern, Unfit
from harness.specs.graphs.plain import plain_graph
from harness.targets.execution import Prepared
from harness.triage.fuzzing.findings import FuzzFinding, FuzzFindings, kind_of
from harness.triage.fuzzing.random_calls import Drawn
from harness.triage.reduction.reducer import Flaky, Reducer

_BATCH = 48
_FACES = 48
"""Cases of a known deviation that are asked for their culprit."""
_SEEN_REFUSED = 4
"""Known refusals of the same element types at one opset, after which such calls are no longer run."""
_LONGEST = 120.0
"""Seconds in which a call is shrunk."""
_LEAST_OVERTIME, _MOST_OVERTIME = 10.0, 60.0
"""Seconds beyond its time in which a call that failed within it may still be shrunk: half of its time between
these."""


@dataclass
class FuzzCounts:
    """The counts of a run: calls that ran, that passed, that failed by a known entry (by its place), and
    inconclusive ones by reason."""

    ran: int = 0
    passed: int = 0
    known: Counter[str] = field(default_factory=Counter)
    aside: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    stopped: bool = False


class Fuzzer:
    """Fuzzes one operator, or graphs, on one target; `findings` and `done` are whole at any time."""

    def __init__(
        self,
        drawing: Iterable[Drawn],
        probes: Probes,
        expectations: TargetExpectations,
        tell: Callable[[FuzzCounts, int], None] = lambda _done, _findings: None,
        found: Callable[[FuzzFinding], None] = lambda _finding: None,
    ) -> None:
        """Take the source of calls, the probes and the known deviations; `tell` is called after every batch, `found`
        for every new finding."""
        self.drawing = drawing
        self.probes = probes
        self.expectations = expectations
        self.findings = FuzzFindings()
        self.done = FuzzCounts()
        self._tell = tell
        self._found = found
        self._end = self._overtime = 0.0
        self._refused: Counter[tuple[int, tuple[str, ...]]] = Counter()
        self._plain = Outcome.PASS
        """The outcome of the graph that is judged, without optimisation."""

    def run(self, seconds: float) -> None:
        """Fuzz until the seconds are over, or until Ctrl-C."""
        start = monotonic()
        self._end = start + seconds
        self._overtime = min(max(_LEAST_OVERTIME, seconds / 2), _MOST_OVERTIME)
        calls = iter(self.drawing)
        try:
            while monotonic() < self._end:
                self._batch(list(islice(calls, _BATCH)))
                self.done.seconds = monotonic() - start
                self._tell(self.done, len(self.findings.new))
        except KeyboardInterrupt:
            self.done.stopped = True
        self.done.seconds = monotonic() - start

    def _batch(self, drawn: list[Drawn]) -> None:
        asked = []
        for each in drawn:
            if self._refused[_types(each.case)] >= _SEEN_REFUSED:
                self.done.aside["element types that the target is known to refuse"] += 1
            elif refusal(each.case, self.probes.target.provider) is not None:
                self.done.aside["not expressible on the target"] += 1
            else:
                asked.append(each)
        for each, probe in zip(asked, self.probes.run(each.case for each in asked), strict=True):
            self._judge(each, probe)

    def _judge(self, drawn: Drawn, probe: Probe) -> None:
        outcome = probe.judgement.outcome
        if drawn.case.options.optimization == "off":
            self._plain = outcome
        why = None if outcome is Outcome.PASS else self._aside(drawn.case, probe)
        if why is not None:
            self.done.aside[why] += 1
            return
        self.done.ran += 1
        number = self.findings.ran(drawn.aliases[0], drawn.case.levels.get("directml", "beyond"))
        if conforms(drawn.case.validity, outcome):
            self.done.passed += 1
            self.findings.passed(number)
            return
        known = self._known(drawn, probe)
        if known is not None:
            self.done.known[known] += 1
            self._refused[_types(drawn.case)] += outcome in WITHOUT_KERNEL and not probe.graph.composed
            return
        found = _finding(drawn, probe, self.probes.culprit(probe))
        kind = kind_of(drawn.case, found.signature, found.culprit)
        settled = self.findings.settled(kind)
        if settled is not None:
            settled.calls.append(number)
            self._count(settled)
            return
        try:
            self._shrink(found, drawn, probe.prepared)
        except KeyboardInterrupt:
            found.remark = "not shrunk: stopped"
            self.findings.add(kind, number, found)
            raise
        found.like = self._like_known(found)
        new = self.findings.add(kind, number, found)
        self._count(found)
        if new is not None and not new.kernels:
            self._found(new)

    def _count(self, finding: FuzzFinding) -> None:
        if finding.kernels:
            self.done.known[finding.kernels] += 1

    def _aside(self, case: Case, probe: Probe) -> str | None:
        """Return the reason why the outcome of a call is inconclusive; None if it is conclusive."""
        if probe.judgement.outcome is Outcome.NOT_RUN:
            return "what the release cannot be asked"
        if probe.judgement.outcome is Outcome.NOT_PLACED and case.options.optimization != "off":
            return "optimised away"
        if probe.graph.composed:
            if case.options.optimization != "off" and self._plain in (
                Outcome.MISMATCH,
                probe.judgement.outcome,
            ):
                return "wrong without optimisation too"
            if case.options.optimization == "off" and self._plain in WITHOUT_KERNEL:
                return "refused without optimisation"
        return "a result that ONNX leaves open" if self._undefined(case) else None

    def _undefined(self, case: Case) -> bool:
        try:
            oracle(with_inputs(case), self.probes.target.provider)
        except OracleError as error:
            return isinstance(error.__cause__, (Undefined, Unfit))
        return False

    def _known(self, drawn: Drawn, probe: Probe) -> str | None:
        """Return the place of the entry that expects what the target gave, None where none does. That no kernel is
        needed says that a graph runs without optimisation."""
        outcome = probe.judgement.outcome
        given = Given(probe.prepared, probe.execution.outputs, probe.judgement, self.probes.target.provider)
        for case_id in (drawn.case.id, *drawn.aliases):
            known = self.expectations.record(
                case_id, outcome, conforms=False, beyond=drawn.case.beyond, allows=given.allows
            )
            if known is not None and known.expect is outcome:
                located = self.expectations.entries[self.expectations.numbers.index(known.number)]
                if not (probe.graph.optimization != "off" and probe.graph.composed and located.general):
                    return located.file.where(located.position)
        return None

    def _shrink(self, found: FuzzFinding, drawn: Drawn, prepared: Prepared) -> None:
        """Put the smallest call that fails alike in the place of a failing one, with a remark where it is not that."""
        left = min(self._end + self._overtime - monotonic(), _LONGEST)
        if left <= 0:
            found.remark = "not shrunk: the time was over"
            return
        reduced = Reducer(
            self.probes, prepared, drawn.spec, lambda _number, _left: None, seconds=left
        ).reduce()
        if isinstance(reduced, Flaky):
            found.remark = f"not shrunk: {reduced.what.partition(': ')[2]}"
        elif self._undefined(reduced.case):
            found.remark = "not shrunk: what is left would be open in ONNX"
        else:
            found.case, found.spec = reduced.case, reduced.spec
            found.remark = "" if reduced.finished else "not shrunk to the end: the time was over"

    def _like_known(self, finding: FuzzFinding) -> list[str]:
        """Return the places and titles of known deviations with this outcome, of which the finding may be another
        form. For a graph they are those of its operators, or of a pattern that has them and fails by the same
        transformers."""
        graph = finding.spec.graph
        nodes = {node.operator for node in graph.spec.nodes} if graph else {finding.case.operator}
        return [
            f"{located.file.where(located.position)} ({located.stated().name})"
            for located in self.expectations.entries
            if located.entry.expect is finding.signature.outcome
            and not located.general
            and (
                self._fails_by(located, finding.culprit, nodes)
                if finding.culprit
                else any(query.operator in nodes for query in located.queries)
            )
        ]

    def _fails_by(self, located: Located, culprit: tuple[str, ...], nodes: set[str]) -> bool:
        """Say whether an entry covers a case of a pattern with these operators that fails by the transformers."""
        for query in located.queries:
            pattern = OPERATORS[query.operator or ""].options if is_graph(query.operator or "") else None
            if isinstance(pattern, Pattern) and nodes <= pattern.operators:
                known = (case for case in graph_cases(pattern, Counter()) if located.matches(case.id))
                for probe in self.probes.run(islice(known, _FACES)):
                    if (
                        probe.judgement.outcome is located.entry.expect
                        and self.probes.culprit(probe) == culprit
                    ):
                        return True
        return False


def _finding(drawn: Drawn, probe: Probe, culprit: tuple[str, ...]) -> FuzzFinding:
    """Return a failing call as a finding that is not shrunk, a graph without parameters."""
    case, spec = drawn.case, drawn.spec
    if spec.graph is not None:
        case, spec = plain_graph(case, probe.prepared.inputs, spec.opsets).known_as(f"{case.operator}Plain")
    return FuzzFinding(case, spec, probe.signature, culprit=culprit)


def _types(case: Case) -> tuple[int, tuple[str, ...]]:
    return case.opset, tuple(spec.dtype for spec in case.inputs)
