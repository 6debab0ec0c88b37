"""Operators from folders named in HARNESS_OPERATORS: a formula and a spec are enough to run them; a formula
that fails costs its case."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.running import results_of

FORMULAS = """\
import numpy as np

from harness.operators.base import Family, Operator
from harness.operators.formulas import decided


def absolute(X):
    if X.shape == (3,):
        raise ValueError("not of three")
    return X.astype(np.float64) if X.shape == (4,) else np.abs(X)[:1] if X.shape == (5,) else np.abs(X)


OPERATORS = (Operator("Abs", Family(), decided(absolute)), Operator("NobodyElses", Family(), decided(np.negative)))
"""
SPEC = """\
operator: Abs
opsets: [13]
sweeps:
  - {name: sizes, X: {dtype: [float32, int32], shape: [[2], [3], [4], [5], [6]]}}
"""


def test_a_folder_of_operators_is_loaded_and_what_fails_costs_its_case(tmp_path: Path) -> None:
    (tmp_path / "operators").mkdir()
    (tmp_path / "operators" / "signs.py").write_text(FORMULAS, encoding="utf-8")
    (tmp_path / "Abs.yaml").write_text(SPEC, encoding="utf-8")
    environment = {**os.environ, "HARNESS_OPERATORS": str(tmp_path / "operators")}
    command = [sys.executable, "-m", "harness", "run", "Abs.yaml", "-t", "cpu", "-o", "run"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    found = {case.partition("X=")[2]: result for case, result in results_of(tmp_path / "run").items()}
    assert {name: result["outcome"] for name, result in found.items()} == {
        **{f"{dtype}[{size}]": "pass" for dtype in ("float32", "int32") for size in (2, 6)},
        **{f"{dtype}[{size}]": "oracle_error" for dtype in ("float32", "int32") for size in (3, 4, 5)},
    }
    error = found["float32[3]"]["error"]
    assert (error["class"], error["message"]) == ("OracleError", "Abs: ValueError: not of three")
    assert (
        found["int32[4]"]["error"]["message"]
        == "Abs: FormulaError: the formula gives float64 where the output is int32"
    )
    assert (
        found["int32[5]"]["error"]["message"] == "Abs: output 0 of the formula has shape [1], inferred is [5]"
    )
    assert {result["operator"] for result in found.values()} == {"Abs"}


def test_without_the_variable_they_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "signs.py").write_text(FORMULAS, encoding="utf-8")
    command = [
        sys.executable,
        "-c",
        "from harness.operators import OPERATORS; print('NobodyElses' in OPERATORS, len(OPERATORS))",
    ]
    found = []
    for folders in ("", str(tmp_path), os.pathsep.join([str(tmp_path / "absent"), str(tmp_path)])):
        done = subprocess.run(
            command,
            env={**os.environ, "HARNESS_OPERATORS": folders},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(done.stdout.split())
    assert [there for there, _ in found] == ["False", "True", "True"]
    assert int(found[1][1]) > int(found[0][1])
