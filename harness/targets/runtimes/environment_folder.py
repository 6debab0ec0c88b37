"""Where the environments are in the user's cache.

<cache>/runtimes/onnxruntime-1.22.1/     a virtual environment and its stamp
<cache>/runtimes/onnxruntime-ggml-0.2.0/ one with a plugin, and the onnxruntime that it asks for
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from packaging.version import Version

from harness.model.cache_folder import cache_folder
from harness.targets import components
from harness.targets.runtimes.projects import Project


def cache_dir() -> Path:
    """Return the folder of all environments."""
    return cache_folder("runtimes")


def retire(folder: Path) -> None:
    """Delete an environment; it is never seen half deleted."""
    if folder.exists():
        old = folder.with_name(f"{folder.name}.{os.getpid()}{components.PARTIAL}")
        folder.rename(old)
        components.remove_tree(old)


def folder_of(version: Version, project: Project) -> Path:
    """Return where the environment for a release is, or would be."""
    return cache_dir() / f"{project.name}-{version}"


def executable(folder: Path) -> Path:
    """Return the interpreter of an environment."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
