"""A clock that jumps: results, durations and what a run leaves are those of any other."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path

import pytest

from tests.running import ROUND, harness, lines_of, results_of, script_of, without_time

DAY = 86_400.0


@pytest.mark.parametrize("jump", [DAY, -DAY])
@pytest.mark.slow
def test_a_run_while_the_clock_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    """It jumps whenever it is read."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    run = (
        *("run", ROUND, "-k", "Round@22:case=*", "-j", "1"),
        *("-t", f"fake,script={script_of(tmp_path, [('Round', 'ulp')])}"),
    )
    assert harness(*run, "-o", tmp_path / "calm").code == 1
    clock, offsets = time.time, itertools.count(jump, jump)
    monkeypatch.setattr(time, "time", lambda: clock() + next(offsets))
    assert harness(*run, "-o", tmp_path / "jumped").code == 1
    assert without_time(results_of(tmp_path / "jumped")) == without_time(results_of(tmp_path / "calm"))
    end = lines_of(tmp_path / "jumped")[-1]
    assert 0 <= end["seconds"] < DAY / 2
    assert not list(tmp_path.glob("harness-*"))
    ended = harness("compare", tmp_path / "calm", tmp_path / "jumped", "--format", "json")
    assert ended.code == 0
    assert json.loads(ended.out)
