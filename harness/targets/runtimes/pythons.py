"""Finds the Pythons of this machine: this interpreter, what uv finds, and pyenv's."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from harness.model.errors import TargetUnavailable
from harness.targets.programs import captured

OLDEST = (3, 8)
"""What the worker needs."""


class Python(NamedTuple):
    """An interpreter: its version such as `3.11.7` and where it is."""

    version: str
    path: str

    @property
    def minor(self) -> str:
        """The version as wheels know it: `3.11`."""
        return ".".join(self.version.split(".")[:2])


@cache
def pythons() -> tuple[Python, ...]:
    """Return one CPython of each minor version that a worker can use: this interpreter first, then the newest
    first."""
    found = {(sys.version_info[0], sys.version_info[1]): Python(platform.python_version(), sys.executable)}
    done = run_uv(
        ["python", "list", "--only-installed", "--no-python-downloads", "--output-format", "json"],
        path=_search_path(),
    )
    rows = json.loads(done.stdout or "[]") if not done.returncode else []
    for row in sorted(rows, key=lambda row: tuple(row["version_parts"].values()), reverse=True):
        minor = (row["version_parts"]["major"], row["version_parts"]["minor"])
        stable = row["version"].replace(".", "").isdecimal()
        if row["implementation"] == "cpython" and row["variant"] == "default" and minor >= OLDEST and stable:
            found.setdefault(minor, Python(row["version"], row["path"]))
    return tuple(found.values())


def _search_path() -> str:
    """Return PATH with the Pythons of pyenv, whose own commands name only the chosen one."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return os.pathsep.join(
        [*map(str, sorted(root.glob("versions/3*/bin"))), os.environ.get("PATH", os.defpath)]
    )


INSTALL = "run `python -m pip install 'onnxruntime-conformance-harness[runtimes]'`"
"""The remedy where what installs other releases is missing."""


def run_uv(
    arguments: list[str], *, path: str | None = None, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run uv, which never asks, downloads no Python, and reads no project's settings; its output is
    captured."""
    try:
        import uv  # of the extra `runtimes`

        tool = uv.find_uv_bin()
    except (ImportError, FileNotFoundError) as exc:
        raise TargetUnavailable(
            f"uv, which makes environments for other releases, is missing: {INSTALL}"
        ) from exc
    variables = {**os.environ, **(environment or {}), "NO_COLOR": "1", "UV_PYTHON_DOWNLOADS": "never"}
    if path is not None:
        variables["PATH"] = path
    for name in ("VIRTUAL_ENV", "UV_PROJECT", "UV_SYSTEM_PYTHON", "UV_PROJECT_ENVIRONMENT", "UV_CONSTRAINT"):
        variables.pop(name, None)
    return captured([tool, *arguments], env=variables, cwd=Path.home().anchor)
