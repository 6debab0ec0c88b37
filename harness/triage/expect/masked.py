"""Proves that known deviations hide no others: plants other wrong outputs in the cases of entries, and counts
what no result would show as unexpected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from harness.compile.prepare import refusal
from harness.model.case import Case, Validity
from harness.model.expected import nearest
from harness.model.result import Memory
from harness.model.verdict import Outcome, unexpected
from harness.run.deviation import Given, remembers
from harness.run.judge import judge, verdict
from harness.run.oracle import OracleError, oracle
from harness.run.probe import Probe, Probes
from harness.run.target_info import target_info
from harness.specs.expectations.expectations import Expectations
from harness.specs.expectations.located import Located
from harness.specs.expectations.target_expectations import TargetExpectations
from harness.targets.target import Target
from harness.triage.expect.planted import Outputs, planted

TRIED = 40
"""Cases of an entry that run on a target."""
PLANTED = 6
"""Of these, deviating and conforming ones in which outputs are planted, each."""
LEAST_RED = 0.95
"""The part of the planted outputs that has to be unexpected."""
_STATED = (Outcome.MISMATCH, Outcome.ACCEPTED_INVALID, Outcome.REJECTED, Outcome.UNSUPPORTED)


_WRITTEN = Memory(unwritten=0, outside=0, unstable=0, total=0)
"""What becomes of elements that a target writes itself."""


class Masking(NamedTuple):
    """What was planted in the cases of an entry, by name, what of it stays green, and a case where it does."""

    located: Located
    planted: Counter[str]
    green: Counter[str]
    example: str


def maskings(
    target: Target, expectations: Expectations, cases: Iterable[Case], seed: int
) -> Iterator[Masking]:
    """Yield what is planted in the cases of each entry that states an outcome of its own and holds on a target.
    Raises TargetUnavailable."""
    with Probes(target, seed=seed) as probes:
        info = target_info(probes.target, probes.hello, probes.runtime)
        known = expectations.for_target(target.name, info)
        provider = probes.target.provider
        matched: dict[int, list[Case]] = {}
        for case in cases:
            for position in known.matching(case.id):
                entry = known.entries[position].entry
                if entry.expect in _STATED and not known.entries[position].general:
                    matched.setdefault(position, []).append(case)
        for position, found in sorted(matched.items()):
            expressible = [case for case in found if refusal(case, provider) is None]
            step = max(1, len(expressible) // TRIED)
            yield _masking(known, position, probes.run(expressible[::step][:TRIED]), provider)


def _masking(known: TargetExpectations, position: int, ran: Iterable[Probe], provider: str) -> Masking:
    located = known.entries[position]
    done, green = Counter[str](), Counter[str]()
    example = ""
    kept = Counter[bool]()
    for probe in ran:
        case, outcome = probe.prepared.case, probe.judgement.outcome
        if case.validity is Validity.UNSPECIFIED or outcome not in (*_STATED, Outcome.PASS):
            continue
        deviates = outcome is located.entry.expect
        if kept[deviates] >= PLANTED or known.entry(case.id, beyond=case.beyond, outcome=outcome) not in (
            located.entry,
            None,
        ):
            continue
        kept[deviates] += 1
        for name, outputs in _planted(probe, provider):
            red = _is_red(known, probe, outputs, provider)
            if red is None or (name != "another type" and _unjudged(located, case)):
                continue
            done[name] += 1
            if not red:
                green[name] += 1
                example = example or case.id
    return Masking(located, done, green, example)


def _unjudged(located: Located, case: Case) -> bool:
    """Say whether nothing is known of the elements: those of an invalid case that is accepted, without a
    formula."""
    return case.validity is Validity.INVALID and located.entry.gives is None


def _planted(probe: Probe, provider: str) -> Iterator[tuple[str, Outputs]]:
    """Plant in what a target gave, or in what is expected where it gave nothing."""
    expected = probe.judgement.expected
    outputs = probe.execution.outputs
    if outputs is None and probe.prepared.case.validity is Validity.VALID:
        try:
            expected = oracle(probe.prepared, provider)
        except OracleError:
            return
        outputs = None if expected is None else tuple(map(nearest, expected))
    if outputs is not None:
        yield from planted(outputs, expected)


def _is_red(known: TargetExpectations, probe: Probe, outputs: Outputs, provider: str) -> bool | None:
    """Say whether outputs would be unexpected of a case; None where they are right."""
    case = probe.prepared.case
    nodes = tuple((provider, operator) for operator in probe.graph.tested)
    execution = probe.execution._replace(outputs=outputs, error=None, stage="compare", nodes=nodes)
    judgement = judge(probe.prepared, probe.graph, execution, provider)
    if judgement.outcome is Outcome.PASS:
        return None
    given = Given(probe.prepared, outputs, judgement, provider)
    entry = known.entry(
        case.id,
        beyond=case.beyond,
        outcome=judgement.outcome,
        allows=lambda each: given.allows(each) and remembers(each, _WRITTEN, judgement.diff),
    )
    found = verdict(case.validity, judgement.outcome, None if entry is None else entry.expect)
    return unexpected(case.validity, judgement.outcome, found, baseline=False)
