"""No seed turns a run of DirectML's own API red (see `tests/project/test_seeds.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import ROUND, harness

pytestmark = [pytest.mark.windows_runtime, pytest.mark.slow]


@pytest.mark.parametrize("seed", range(1, 4))
def test_round_of_directml_is_as_expected(tmp_path: Path, seed: int) -> None:
    ended = harness("run", ROUND, "-t", "directml", "--seed", str(seed), "-o", tmp_path / "r")
    assert ended.code == 0, ended.out[:2000]
