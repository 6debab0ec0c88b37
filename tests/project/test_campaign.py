"""The short form of the campaign (`python -m tests.campaign`), and that it finds what it is there to find."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.targets import components
from tests.campaign import faults, kinds, mutations
from tests.campaign.faults import Place, Strike, fault_campaign
from tests.campaign.inputs import input_campaign
from tests.campaign.kinds import KINDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes by /proc, and forks")


@pytest.mark.slow
def test_struck_runs_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    found = fault_campaign(3, 1, tmp_path)
    assert found.problems == []
    assert sum(count for what, count in found.counts.items() if " to " in what) <= 3
    assert found.counts["rounds"] >= 1


@pytest.mark.slow
def test_damaged_files_are_answered(tmp_path: Path) -> None:
    found = input_campaign(240, 1, tmp_path, 60.0)
    assert found.problems == []
    assert found.counts.total() == 240
    assert found.counts.keys() == KINDS.keys()


@pytest.mark.parametrize(
    ("defect", "said"),
    [
        (lambda _: 1 // 0, "ZeroDivisionError: integer division or modulo by zero\n"),
        (lambda _: os._exit(9), "the process that read it ended"),
        (lambda _: time.sleep(60), "not read within 0.5 s"),
    ],
    ids=["traceback", "crash", "hang"],
)
def test_a_defect_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: Callable[[Path], object], said: str
) -> None:
    monkeypatch.setattr(components, "stamp_of", defect)
    found = input_campaign(2, 1, tmp_path, 0.5, ["stamp"])
    assert [problem.partition(": ")[0] for problem in found.problems] == [
        "input 0 (stamp, seed 1)",
        "input 1 (stamp, seed 1)",
    ]
    assert all(problem.endswith(said) for problem in found.problems)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input-0", "input-1"]


def test_a_kind_without_files_ends_the_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "model", KINDS["model"]._replace(whole=lambda _: []))
    with pytest.raises(RuntimeError, match="ended before file 0"):
        input_campaign(1, 1, tmp_path, 60.0, ["model"])


def test_what_a_round_must_not_leave(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path / "script.yaml", 1)
    (tmp_path / "tmp" / "harness-scratch-1").mkdir(parents=True)
    place.run.parent.mkdir()
    (place.run.parent / "report.md.part").touch()
    assert faults._left(place) == [
        "temporary folders are left: harness-scratch-1",
        "files are left beside the run: report.md.part",
    ]


def test_results_that_differ_are_told(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path / "script.yaml", 1)
    place.run.parent.mkdir()
    lines = [
        '{"type":"run"}',
        *(
            f'{{"type":"result","case":"{case}","outcome":"{how}"}}'
            for case, how in (("a", "pass"), ("b", "crash"))
        ),
    ]
    place.run.write_text("\n".join([*lines, '{"type":"end"}']), encoding="utf-8")
    whole = {case: {"type": "result", "case": case, "outcome": "pass"} for case in "abc"}
    assert faults._differences(place, whole, []) == [
        "1 results are missing, 0 are too many",
        "1 cases are lost with 0 strikes at 1 workers",
    ]
    del whole["c"]
    assert faults._differences(place, whole, [Strike(signal.SIGKILL, "worker")]) == []


def test_the_same_seed_damages_the_same(tmp_path: Path) -> None:
    data = kinds.ROUND.encode()
    for mutate in {*mutations.TEXT, *mutations.LINES}:
        assert mutate(data, random.Random(3)) == mutate(data, random.Random(3))
    assert len({mutations.reworded(data, random.Random(seed)) for seed in range(50)}) > 40
