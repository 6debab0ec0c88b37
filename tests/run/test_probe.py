"""Probes: made-up cases on a target, with workers that outlive a probe and crashes that cost one case."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.model.case import Case, Validity
from harness.model.errors import TargetUnavailable
from harness.model.verdict import Outcome
from harness.run.probe import Probes
from harness.targets.registry import parse_target
from tests.needs import MISBEHAVING
from tests.plans import selected
from tests.prepared import prepare
from tests.processes import gone, table
from tests.running import planted, script_of

pytestmark = MISBEHAVING


def chosen(query: str, *, valid: bool = True) -> list[Case]:
    return list(selected(query).cases(valid=valid))


def test_a_made_up_case_runs_without_a_spec() -> None:
    """The case of no spec that a reducer makes: its inputs are written out, its id is its own."""
    made = prepare("GatherND", "float32").case
    with Probes(parse_target("cpu")) as probes:
        probe = probes.one(made)
    assert (probe.judgement.outcome, probe.judgement.placed_on) == (Outcome.PASS, "CPUExecutionProvider")
    assert probe.execution.outputs is not None
    assert [output.array.tolist() for output in probe.execution.outputs] == [[0.0, 5.0, 1.0, 3.0]]


def test_answers_come_in_the_order_of_the_cases_whatever_crashes(tmp_path: Path) -> None:
    cases = chosen("Round@22:sweep=sizes;X=float16;values=ordinary")
    assert len(cases) > 4
    with Probes(
        parse_target(planted(tmp_path, (cases[1].id, "crash"), (cases[3].id, "ulp"))), jobs=2
    ) as probes:
        found = probes.run(reversed(cases))
        assert probes.number == len(cases)
        assert probes.restarts == 1
    assert [probe.prepared.case.id for probe in found] == [case.id for case in reversed(cases)]
    wrong = {
        probe.prepared.case.id: probe.judgement.outcome
        for probe in found
        if probe.judgement.outcome is not Outcome.PASS
    }
    assert wrong == {cases[1].id: Outcome.CRASH, cases[3].id: Outcome.MISMATCH}


def test_a_worker_outlives_probes_and_only_a_crash_replaces_it(
    tmp_path: Path, started: Callable[[], set[int]]
) -> None:
    cases = chosen("Round@22:sweep=sizes;X=float16;values=ordinary")[:3]
    with Probes(parse_target(planted(tmp_path, (cases[1].id, "crash")))) as probes:
        first = started()
        assert probes.one(cases[0]).judgement.outcome is Outcome.PASS
        assert probes.one(cases[2]).judgement.outcome is Outcome.PASS
        assert started() == first
        assert [probe.judgement.outcome for probe in probes.repeat(cases[1], 2)] == [Outcome.CRASH] * 2
        assert probes.one(cases[0]).judgement.outcome is Outcome.PASS
        assert probes.restarts == 2
        assert not first <= started()


def below(pids: set[int]) -> set[int]:
    """Return the processes that are no children of this one: workers, which another one forked."""
    parents = table()
    return {pid for pid in pids if parents[pid] != os.getpid()}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are children of this process")
def test_a_fresh_worker_shares_nothing(started: Callable[[], set[int]]) -> None:
    """It is forked from a process in which nothing ran either."""
    made = prepare("Round", "float32").case
    with Probes(parse_target("cpu")) as probes:
        first = below(started())
        assert len(first) == 1
        assert probes.fresh(made).judgement.outcome is Outcome.PASS
        assert gone(first)
        assert not below(started())


@pytest.mark.slow
def test_apart_each_case_has_a_session_of_its_own(tmp_path: Path) -> None:
    """A crash at load is that of one session: together it is everyone's after the second, apart each case has
    its own."""
    cases = chosen("Round@22:sweep=sizes;X=float16;values=ordinary")[:4]
    target = parse_target(planted(tmp_path, *((case.id, "crash_at_load") for case in cases[:3])))
    with Probes(target) as probes:
        outcomes = [probe.judgement.outcome for probe in probes.run(cases, apart=True)]
    assert outcomes == [Outcome.CRASH] * 3 + [Outcome.PASS]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are children of this process")
def test_valid_and_other_cases_share_no_worker(started: Callable[[], set[int]]) -> None:
    invalid = msgspec.structs.replace(
        prepare("GatherND", "float32").case,
        validity=Validity.INVALID,
        rule="index values within [-s, s-1]",
        literals=(np.zeros((2, 3), "f4"), np.array([[0, 0], [1, -1], [0, 3], [-1, 0]])),
    )
    valid = prepare("GatherND", "float32").case
    with Probes(parse_target("cpu")) as probes:
        first = below(started())
        assert len(first) == 1
        found = probes.run([invalid, valid])
        assert gone(first)
    assert [probe.judgement.outcome for probe in found] == [Outcome.REJECTED, Outcome.PASS]


def test_a_target_whose_workers_do_not_start_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(TargetUnavailable, match="exit code 3"):
        Probes(parse_target(f"fake,script={script_of(tmp_path, (), startup='exit')}"))
