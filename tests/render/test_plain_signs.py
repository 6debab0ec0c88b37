"""Output in an encoding that lacks signs: it is ASCII, and no command fails at it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests import synthetic
from tests.running import HARNESS
from tests.synthetic import CPU


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_comparison_in_a_small_encoding(tmp_path: Path, encoding: str) -> None:
    run = synthetic.write_run(tmp_path / "run.jsonl", 300, {"cpu": CPU}, faults=0.1)
    ended = subprocess.run(
        [*HARNESS, "compare", run, run],
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        capture_output=True,
        check=False,
    )
    text = ended.stdout.decode(encoding)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert text.startswith("OK ")
    assert "\\u" not in text
    assert ["cpu", "300", "300"] in [row.split()[:3] for row in text.splitlines()]
