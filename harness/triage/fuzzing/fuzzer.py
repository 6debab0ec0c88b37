"""The fuzzer: draws calls, runs them, sorts what fails into known deviations and findings, and shrinks the
latter, until its time is over or somebody stops it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic

from harness.compile.prepare import refusal
from harness.model.case import Case
from harness.model.signature import Signature
from harness.model.verdict import Outcome, conforms
from harness.operators.base import Undefined
from harness.run.oracle import OracleError, oracle
from harness.run.probe import Probe, Probes
from harness.specs.calls import call_of
from harness.specs.located import WITHOUT_KERNEL
from harness.specs.target_expectations import TargetExpectations
from harness.specs.values import case_inputs
from harness.targets.execution import Prepared
from harness.triage.fuzzing.draw import Drawing, Drawn
from harness.triage.fuzzing.findings import FuzzFinding, FuzzFindings, kind_of
from harness.triage.reduction.reducer import Flaky, Reducer
from harness.triage.signature import signature

_BATCH = 48
_SEEN_REFUSED = 4
"""Known refusals of the same element types at one opset, after which such calls are no longer run."""
_LEAST_OVERTIME, _MOST_OVERTIME = 10.0, 60.0
"""Seconds beyond its time in which a call that failed within it may still be shrunk: half of its time between
these."""


@dataclass
class FuzzCounts:
    """What was done: the numbers of calls that ran, that passed, that failed in a known way by the place of
    its entry, and that say nothing, by reason."""

    ran: int = 0
    passed: int = 0
    known: Counter[str] = field(default_factory=Counter)
    aside: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    stopped: bool = False


class _TimeOver(Exception):
    """Shrinking takes too long."""


class Fuzzer:
    """Fuzzes one operator on one target; `findings` and `done` are whole at any time."""

    def __init__(
        self,
        drawing: Drawing,
        probes: Probes,
        expectations: TargetExpectations,
        tell: Callable[[FuzzCounts, int], None] = lambda _done, _findings: None,
        found: Callable[[FuzzFinding], None] = lambda _finding: None,
    ) -> None:
        """Take what to draw from, what to run on and what is known; `tell` hears of every batch, `found` of
        every new finding."""
        self.drawing = drawing
        self.probes = probes
        self.expectations = expectations
        self.findings = FuzzFindings()
        self.done = FuzzCounts()
        self._tell = tell
        self._found = found
        self._end = self._overtime = 0.0
        self._refused: Counter[tuple[int, tuple[str, ...]]] = Counter()

    def run(self, seconds: float) -> None:
        """Fuzz for so many seconds, or until Ctrl-C."""
        start = monotonic()
        self._end = start + seconds
        self._overtime = min(max(_LEAST_OVERTIME, seconds / 2), _MOST_OVERTIME)
        calls = iter(self.drawing)
        try:
            while monotonic() < self._end:
                self._batch(list(islice(calls, _BATCH)))
                self.done.seconds = monotonic() - start
                self._tell(self.done, len(self.findings.found))
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
        known = self._known(drawn, outcome)
        if known is not None:
            self.done.known[known] += 1
            self._refused[_types(drawn.case)] += outcome in WITHOUT_KERNEL
            return
        found = signature(probe.judgement, probe.execution)
        kind = kind_of(drawn.case, found)
        settled = self.findings.settled(kind)
        if settled is not None:
            settled.calls.append(number)
            return
        try:
            case, remark = self._shrunk(drawn.case, found)
        except KeyboardInterrupt:
            self.findings.add(kind, number, drawn.case, found, "not shrunk: stopped")
            raise
        new = self.findings.add(kind, number, case, found, remark)
        if new is not None:
            self._found(new)

    def _aside(self, case: Case, probe: Probe) -> str | None:
        """Say why what a call did says nothing of the target; None if it does."""
        if probe.judgement.outcome is Outcome.NOT_RUN:
            return "what the release cannot be asked"
        if probe.judgement.outcome is Outcome.NOT_PLACED and case.options.optimization != "off":
            return "optimised away"
        return "a result that ONNX leaves open" if self._undefined(case) else None

    def _undefined(self, case: Case) -> bool:
        call = call_of(case)
        try:
            oracle(Prepared(case, call, case_inputs(call, case, 0)), self.probes.target.provider)
        except OracleError as error:
            return isinstance(error.__cause__, Undefined)
        return False

    def _known(self, drawn: Drawn, outcome: Outcome) -> str | None:
        """Return the place of the entry that expects the outcome, None where none does."""
        for case_id in (drawn.case.id, *drawn.aliases):
            known = self.expectations.record(case_id, outcome, conforms=False, beyond=drawn.case.beyond)
            if known is not None and known.expect is outcome:
                located = self.expectations.entries[self.expectations.numbers.index(known.number)]
                return located.file.where(located.position)
        return None

    def _shrunk(self, case: Case, found: Signature) -> tuple[Case, str]:
        """Return the smallest call that fails alike, and a remark where it is not that."""

        def progress(_number: int, _left: int) -> None:
            if monotonic() > self._end + self._overtime:
                raise _TimeOver

        call = call_of(case)
        prepared = Prepared(case, call, case_inputs(call, case, 0))
        try:
            reduced = Reducer(self.probes, prepared, self.drawing.seeds.spec, progress).reduce()
        except _TimeOver:
            return case, "not shrunk: the time was over"
        if isinstance(reduced, Flaky):
            return case, f"not shrunk: {reduced.what.partition(': ')[2]}"
        if self._undefined(reduced.case):
            return case, "not shrunk: what is left would be open in ONNX"
        return reduced.case, ""


def _types(case: Case) -> tuple[int, tuple[str, ...]]:
    return case.opset, tuple(spec.dtype for spec in case.inputs)


def like_known(expectations: TargetExpectations, operator: str, outcome: Outcome) -> list[str]:
    """Return the places and titles of known deviations of an operator with this outcome: what a finding may
    be another face of."""
    return [
        f"{located.file.where(located.position)} ({located.stated().name})"
        for located in expectations.entries
        if located.entry.expect is outcome
        and not located.general
        and any(query.operator == operator for query in located.queries)
    ]
