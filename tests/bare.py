"""An environment in which the harness is not: Python with onnxruntime, numpy and what these need, made of
links to what is installed."""

from __future__ import annotations

import os
import subprocess
import venv
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement


def bare_environment(folder: Path) -> Path:
    """Make the environment and return its interpreter."""
    venv.EnvBuilder(with_pip=False, symlinks=os.name != "nt").create(folder)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    purelib = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    for name in closure("onnxruntime", "numpy"):
        files = distribution(name).files or []
        for top in sorted({file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}):
            source = Path(str(distribution(name).locate_file(top)))
            target = Path(purelib) / top
            if source.exists() and not target.exists():
                target.symlink_to(source, target_is_directory=source.is_dir())
    return python


def closure(*names: str) -> set[str]:
    """Return the distributions that some need, with themselves."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            needed = [Requirement(text) for text in distribution(name).requires or ()]
            waiting += [
                one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})
            ]
    return found


def run_script(python: Path, script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script there, from another folder and without what this process was told about modules."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [python, str(script), *arguments],
        capture_output=True,
        encoding="utf-8",
        cwd=script.parent.parent,
        env=environment,
        timeout=180,
    )


def has_harness(python: Path) -> bool:
    """Say whether the harness, or onnx, can be imported there."""
    code = "import importlib.util as u, sys; sys.exit(any(u.find_spec(n) for n in ('harness', 'onnx', 'msgspec', 'click')))"
    return (
        subprocess.run([python, "-c", code], cwd="/", env={"PATH": os.environ.get("PATH", "")}).returncode
        != 0
    )
