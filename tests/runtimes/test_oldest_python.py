"""The harness in the oldest Python that it supports, with the releases of NumPy and onnxruntime that there are for it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from harness.model.cache_folder import CACHE_ENV
from harness.targets.runtimes.pythons import pythons, run_uv
from tests.needs import need
from tests.plans import OF_EACH_FAMILY
from tests.running import harness

ROOT = Path(__file__).resolve().parents[2]
OF_OTHER_DOMAINS = ("ai.onnx.ml.LabelEncoder", "com.microsoft.MatMulNBits")
OF_GRAPHS = ("LayerNorm", "QdqConv")
OLDEST = re.search(r'requires-python = ">=([0-9.]+),', (ROOT / "pyproject.toml").read_text())


@pytest.mark.releases
def test_specs_of_each_family_are_planned_and_operators_run_in_the_oldest_python(tmp_path: Path) -> None:
    assert OLDEST is not None
    found = next((each for each in pythons() if each.minor == OLDEST[1]), None)
    need("pythons", None if found else f"no Python {OLDEST[1]} is installed")
    assert found is not None
    folder = tmp_path / "venv"
    for arguments in (
        ["venv", "--python", found.path, str(folder)],
        ["pip", "install", "--python", str(folder), str(ROOT)],
    ):
        done = run_uv(arguments)
        assert done.returncode == 0, done.stderr
    environment = {**os.environ, CACHE_ENV: str(tmp_path / "cache")}
    environment.pop("PIP_CONSTRAINT", None)

    def ran(*arguments: str) -> str:
        command = [str(folder / "bin" / "harness"), *arguments]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    chosen = [
        word for operator in (*OF_EACH_FAMILY, *OF_OTHER_DOMAINS, *OF_GRAPHS) for word in ("-k", operator)
    ]
    assert ran("list", "--count", *chosen) == harness("list", "--count", *chosen).out
    ran("run", "-t", "cpu", "-k", "Where", "-k", "Round", "-k", "Softmax", "-o", "run")
