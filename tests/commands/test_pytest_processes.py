"""Cases that the pytest plugin runs in several processes: the same results in the same order, and nothing left
behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import junitparser
import pytest

from harness.commands.pytest_plugin.execution import ItemRuns, Wanted
from harness.model.errors import HarnessFault
from harness.model.verdict import Outcome
from harness.run.processes import coordinator
from harness.specs.expand import expand
from harness.specs.expectations.expectations import load_expectations
from harness.specs.reading.load import load_specs
from harness.specs.selection import Selection
from harness.targets.registry import parse_targets
from tests.commands.test_pytest_plugin import SPEC, WRONG, suite
from tests.processes import descendants, gone
from tests.running import script_of

__all__ = ["suite"]
pytest_plugins = ["pytester"]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")


@pytest.fixture(autouse=True)
def forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let three cases be many, and return the processes that are forked."""
    monkeypatch.setattr(coordinator, "CASES", 3)
    forked: list[int] = []

    class Noted(coordinator.ForkedProcess):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            forked.append(self.pid)

    monkeypatch.setattr(coordinator, "ForkedProcess", Noted)
    return forked


@pytest.fixture(autouse=True)
def nothing_stays() -> object:
    before = descendants(os.getpid())
    yield
    assert gone(descendants(os.getpid()) - before)


def test_the_same_as_in_one_process(suite: pytest.Pytester, forks: list[int]) -> None:
    alone = suite.runpytest_inprocess("--harness-jobs=1", "-v")
    assert forks == []
    shared = suite.runpytest_inprocess("--harness-jobs=2", "-v", "--junitxml=junit.xml")
    assert len(forks) == 2
    said = [[line for line in ended.outlines if "Round.yaml::" in line] for ended in (alone, shared)]
    assert said[0] == said[1]
    shared.assert_outcomes(passed=7, failed=1)
    shared.stdout.fnmatch_lines(["regression: mismatch · *"])
    (found,) = junitparser.JUnitXml.fromfile(str(suite.path / "junit.xml"))
    assert (found.tests, found.failures, found.errors, found.skipped) == (8, 1, 0, 0)


def test_a_crash_costs_one_case(suite: pytest.Pytester, forks: list[int]) -> None:
    script_of(suite.path, [(WRONG, "crash")])
    suite.runpytest_inprocess("--harness-jobs=2").assert_outcomes(passed=7, failed=1)
    assert len(forks) == 2


@pytest.mark.slow
def test_x_and_lf(suite: pytest.Pytester, forks: list[int]) -> None:
    suite.runpytest_inprocess("--harness-jobs=2", "-x").assert_outcomes(passed=5, failed=1)
    assert len(forks) == 2
    suite.runpytest_inprocess("--harness-jobs=2", "--lf").assert_outcomes(failed=1)
    assert len(forks) == 2


@pytest.mark.slow
def test_two_targets_one_after_the_other(suite: pytest.Pytester, forks: list[int]) -> None:
    ended = suite.runpytest_inprocess(
        "--harness-jobs=2", "--harness-target=fake", "--harness-target=fake,script=script.yaml"
    )
    ended.assert_outcomes(passed=14, failed=1)
    assert len(forks) == 4


def execution(folder: Path, target: str) -> tuple[ItemRuns, list[Wanted]]:
    (folder / "Round.yaml").write_text(SPEC, encoding="utf-8")
    cases = Selection(expand(load_specs([folder / "Round.yaml"])))
    wanted = [Wanted(case, target) for case in cases]
    known = load_expectations([])
    return ItemRuns(parse_targets([target]), wanted, known, timeout=30, jobs=2, blocks=False), wanted


@pytest.mark.slow
def test_in_any_order_and_again(tmp_path: Path, forks: list[int]) -> None:
    runs, wanted = execution(tmp_path, "fake")
    try:
        for each in (*reversed(wanted), wanted[0], wanted[0]):
            result, _ = runs.result(each)
            assert (result.case, result.outcome) == (each.case.id, Outcome.PASS)
    finally:
        runs.close()
    assert len(forks) == 2


def test_processes_that_are_not_asked_to_the_end_leave_nothing(tmp_path: Path, forks: list[int]) -> None:
    runs, wanted = execution(tmp_path, "fake")
    runs.result(wanted[0])
    runs.close()
    runs.close()
    assert len(forks) == 2
    assert gone(forks)


def test_a_process_that_is_killed_ends_the_run(tmp_path: Path, forks: list[int]) -> None:
    script = script_of(tmp_path, [("Round", "hang")])
    runs, wanted = execution(tmp_path, f"fake,script={script}")
    runs.open(wanted[0].target)
    try:
        runs._begin(runs._batch[wanted[0].target, wanted[0].case.id], [each.case for each in wanted])
        os.kill(forks[0], 9)
        with pytest.raises(HarnessFault, match=r"a process of the run ended \(SIGKILL\)"):
            runs.result(wanted[0])
    finally:
        runs.close()
