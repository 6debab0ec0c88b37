"""A failure of the DirectML provider reduced, and its repro run in the Windows runtime by
onnxruntime-directml alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import SPECS, complaint, harness

pytestmark = pytest.mark.windows_runtime


def windows_python(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", "windows", "python", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)


@pytest.mark.slow
def test_a_failure_of_directml_is_reduced_and_reproduced(tmp_path: Path) -> None:
    """The provider keeps the low 32 bits of axis before it looks whether axis is in range."""
    spec = ("--spec", SPECS / "GatherElements.yaml")
    ended = harness(
        "reduce", "GatherElements@13:case=axis_far_above", "-t", "dml", *spec, "-o", tmp_path / "small.yaml"
    )
    assert ended.code == 0, ended.err
    assert ended.out.endswith(
        "GatherElements@11:case=axis_far_above_reduced;data=float32[1];indices=int64[1];axis=4294967295\n"
    )
    ended = harness("repro", "--case", tmp_path / "small.yaml", "-t", "dml", "-o", tmp_path / "repro")
    assert ended.code == 0, ended.err
    issue = (tmp_path / "repro" / "issue.md").read_text(encoding="utf-8")
    assert "pip install onnxruntime-directml==" in issue
    for fact in (
        "Version\n\nDirectML ",
        "| adapter | ",
        "| maximum feature level | ",
        "seen under Wine on Linux",
    ):
        assert fact in issue
    done = windows_python(tmp_path / "repro" / "repro.py")
    assert done.returncode == 1, done.stderr
    assert "ran on:    DmlExecutionProvider" in done.stdout
    assert "BUG: it is still there" in done.stdout
    here = subprocess.run(
        [sys.executable, tmp_path / "repro" / "repro.py"], capture_output=True, encoding="utf-8", timeout=120
    )
    assert here.returncode == 3, here.stdout  # the onnxruntime of this interpreter has no such provider
    assert "not DmlExecutionProvider" in here.stdout
    script = (tmp_path / "repro" / "repro.py").read_text(encoding="utf-8")
    fixed = script.replace("EXPECTED = None", "EXPECTED = [{'any': [np.zeros(1, 'f4')]}]")
    (tmp_path / "fixed.py").write_text(fixed, encoding="utf-8")
    for arguments in ((), ("--in-process",)):
        assert windows_python(tmp_path / "fixed.py", *arguments).returncode == 0


@pytest.mark.slow
def test_a_call_of_directml_itself_is_reduced_and_reproduced(tmp_path: Path) -> None:
    """RoundingMode 2 makes -0.0 into 0.0: a call that no graph of ONNX expresses."""
    case = "Round@22:sweep=api_modes;X=float32[24];values=specials;variant=halves_away_from_zero;api=directml;in_place=InputTensor"
    spec = ("--spec", SPECS / "Round.yaml")
    ended = harness("reduce", case, "-t", "directml", *spec, "-o", tmp_path / "small.yaml")
    assert ended.code == 0, ended.err
    assert "X=float32[];variant=halves_away_from_zero;api=directml" in ended.out
    assert "(DirectML " in (tmp_path / "small.yaml").read_text(encoding="utf-8").partition("\n")[0]
    ended = harness("repro", "--case", tmp_path / "small.yaml", "-t", "directml", "-o", tmp_path / "repro")
    assert ended.code == 0, ended.err
    done = windows_python(tmp_path / "repro" / "repro.py")
    assert done.returncode == 1, done.stderr
    assert "actual:    float32[] 0. (bits 00000000)" in done.stdout
    script = (tmp_path / "repro" / "repro.py").read_text(encoding="utf-8")
    (tmp_path / "fixed.py").write_text(
        script.replace("{'any': [np.array(-0.0", "{'any': [np.array(0.0"), encoding="utf-8"
    )
    assert windows_python(tmp_path / "fixed.py").returncode == 0
    ended = harness("run", tmp_path / "repro" / "case.yaml", "-t", "directml", "-o", tmp_path / "again")
    assert ended.code == 1, ended.err


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    ended = harness("windows", "python", tmp_path / "absent.py")
    assert ended.code == 2
    assert "absent.py: cannot be read" in complaint(ended)
