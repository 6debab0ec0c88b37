"""Many specs without a plan are planned by several processes; what these lose is planned again."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.model.cache_folder import CACHE_ENV
from harness.model.file_lock import claim
from harness.specs import expand
from harness.specs.cache import planning
from harness.specs.reading.load import LoadedSpec, default_folder, load_specs
from tests.running import raising

NAMES = ("Abs", "Ceil", "Floor", "Neg", "Not", "Sign", "Sqrt", "Size", "IsNaN")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[LoadedSpec]:
    monkeypatch.setenv(CACHE_ENV, str(tmp_path))
    monkeypatch.setattr(planning, "_processors", lambda: 2)
    return load_specs([default_folder() / f"{name}.yaml" for name in NAMES])


def _ids(specs: list[LoadedSpec], tell: Callable[[int, int], None] = lambda _done, _total: None) -> list[str]:
    return [case.id for case in expand.expand(specs, tell=tell)]


def test_the_plans_are_kept_by_other_processes_and_are_the_same(
    specs: list[LoadedSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    before = os.times()
    ids = _ids(specs, lambda done, _total: told.append(done))
    assert os.times().children_user > before.children_user
    assert len(list((tmp_path / "plans").glob("*.pickle"))) == len(NAMES)
    assert told == sorted(told)
    assert told[-1] == len(NAMES)
    monkeypatch.setattr(planning, "os", None)  # nothing is missing now: no process is started
    assert _ids(specs) == ids
    monkeypatch.setenv(CACHE_ENV, str(tmp_path / "absent" / "none"))
    monkeypatch.setattr(planning, "LEAST", 100)
    assert _ids(specs) == ids


@pytest.mark.slow
def test_a_process_that_ends_early_costs_time_alone(
    specs: list[LoadedSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = os.getpid()
    planned = expand._planned

    def dying(spec: LoadedSpec, *arguments: object, **options: bool) -> object:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return planned(spec, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(expand, "_planned", dying)
    assert {id.partition("@")[0] for id in _ids(specs)} == set(NAMES)


@pytest.fixture
def other(tmp_path: Path) -> int:
    """Return the lock that another command which plans holds."""
    (tmp_path / "plans").mkdir()
    descriptor = os.open(tmp_path / "plans", os.O_RDONLY)
    assert claim(descriptor)
    return descriptor


def test_what_another_command_plans_meanwhile_is_not_planned_again(
    specs: list[LoadedSpec], other: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan_and_end(_: float) -> None:
        with monkeypatch.context() as of_the_other:
            of_the_other.setattr(planning, "LEAST", 100)
            _ids(specs)
        os.close(other)

    monkeypatch.setattr(planning.time, "sleep", plan_and_end)
    monkeypatch.setattr(planning, "_fork", lambda *_: pytest.fail("planned again"))
    assert {id.partition("@")[0] for id in _ids(specs)} == set(NAMES)


def test_another_command_that_stands_still_is_not_waited_for(
    specs: list[LoadedSpec], other: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_PATIENCE", 0.1)
    monkeypatch.setattr(planning, "_NAP", 0.05)
    assert {id.partition("@")[0] for id in _ids(specs)} == set(NAMES)
    os.close(other)


def test_an_interruption_ends_all_of_them(specs: list[LoadedSpec], started: Callable[[], set[int]]) -> None:
    with pytest.raises(KeyboardInterrupt):
        _ids(specs, raising(KeyboardInterrupt))
    assert not started()
