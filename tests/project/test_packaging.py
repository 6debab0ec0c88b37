"""The package as users get it: what belongs together, and a wheel that works outside a checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from harness.operators import COLLECTED
from harness.specs.reading.load import load_specs

_ROOT = Path(__file__).parents[2]


def test_every_operator_has_a_spec_and_every_spec_an_operator() -> None:
    specs = {spec.model.operator for spec in load_specs() if spec.graph is None}
    assert specs == set(COLLECTED)


def test_no_module_hides_one_of_the_standard_library() -> None:
    """The worker runs as a script, with the folder it lies in first on its path: a `bisect` there would be
    that of `random`."""
    assert not {path.stem for path in (_ROOT / "harness").iterdir()} & sys.stdlib_module_names


def test_the_lock_pins_every_requirement_with_hashes_and_names_no_host() -> None:
    text = (_ROOT / ".ci" / "requirements.lock").read_text(encoding="utf-8")
    pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert pins
    assert all("==" in line and line.endswith("\\") for line in pins)
    assert text.count("--hash=sha256:") >= len(pins)
    assert "://" not in text
    required = re.findall(
        r'^  "([a-zA-Z0-9_.-]+)[><=]', (_ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    locked = {re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in pins}
    assert {re.sub(r"[-_.]+", "-", name).lower() for name in required} <= locked | {"hatchling"}


@pytest.mark.slow
def test_a_wheel_carries_the_specs_and_runs_outside_a_checkout(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(_ROOT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    for wanted in (
        "_specs/Round.yaml",
        "_specs/expectations/cpu.yaml",
        "model/data/directml.yaml",
        "model/data/directml_operators.json",
        "worker/worker.py",
    ):
        assert f"harness/{wanted}" in names
    command = [sys.executable, "-m", "harness", "run", "-t", "cpu", "-k", "Round@22:case=documented_onnx"]
    ended = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site"), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "reports" / "latest" / "report.html").is_file()


@pytest.mark.skipif(
    not (_ROOT / ".git").exists() or shutil.which("git") is None, reason="needs git, and a clone"
)
def test_nothing_lies_at_the_top_by_accident() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--", ":(top,glob)*"], cwd=_ROOT, capture_output=True, text=True, check=True
    )
    assert sorted(listed.stdout.split()) == [
        ".gitattributes", ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md",
        "SECURITY.md", "mkdocs.yml", "noxfile.py", "pyproject.toml",
    ]  # fmt: skip
