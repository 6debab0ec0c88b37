"""A bug that a later release does not have: reduced and reproduced on the old release, and told as fixed by
the new one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bare import bare_environment, run_script
from tests.running import SPECS, harness
from tests.runtimes.conftest import RELEASE

pytestmark = [pytest.mark.releases, pytest.mark.skipif(sys.platform == "win32", reason="links")]

CASE = "GatherND@13:case=index_into_an_empty_dimension"
"""An index into a dimension of size 0, which ONNX Runtime accepted before 1.26."""


def test_the_old_release_says_1_and_the_new_one_0(with_release: Path, tmp_path: Path) -> None:
    spec = ("--spec", SPECS / "GatherND.yaml")
    small, folder = tmp_path / "small.yaml", tmp_path / "repro"
    ended = harness("reduce", CASE, "-t", f"cpu@ort-{RELEASE}", *spec, "-o", small)
    assert ended.code == 0, ended.err
    assert harness("reduce", CASE, "-t", "cpu", *spec).code == 4
    ended = harness("repro", "--case", small, "-t", f"cpu@ort-{RELEASE}", "-o", folder)
    assert ended.code == 0, ended.err
    old = run_script(with_release / "bin" / "python", folder / "repro.py")
    assert old.returncode == 1, old.stdout + old.stderr
    assert f"versions:  onnxruntime {RELEASE}," in old.stdout
    new = run_script(bare_environment(tmp_path / "bare"), folder / "repro.py")
    assert new.returncode == 0, new.stdout + new.stderr
    assert "FIXED: it does what is expected" in new.stdout
    assert (
        subprocess.run(
            [sys.executable, folder / "repro.py", "--help"], capture_output=True, timeout=60
        ).returncode
        == 0
    )


@pytest.mark.skipif(sys.version_info < (3, 11), reason="onnxruntime 1.26 needs Python 3.11 or later")
def test_the_release_that_mended_a_failure_is_named(tmp_path: Path) -> None:
    small = tmp_path / "small.yaml"
    evidence = SPECS.parent / "docs" / "evidence" / "index_into_an_empty_dimension.yaml"
    small.write_text(evidence.read_text(encoding="utf-8"), encoding="utf-8")
    options = ("--case", small, "-t", "cpu@ort-1.25.1", "-o", tmp_path / "repro", "--newest")
    ended = harness("repro", *options)
    assert ended.code == 0, ended.err
    text = (tmp_path / "repro" / "issue.md").read_text(encoding="utf-8")
    assert text.partition("\n")[0].endswith("(mended in 1.26.0)")
    assert "environment with onnxruntime 1.25.1" in text
    assert str(tmp_path) not in text
