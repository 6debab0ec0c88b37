"""What must be the same on every machine that has part in a run: the harness with its releases of onnx and NumPy."""

from __future__ import annotations

import platform
import socket
import sys
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx

from harness.model.header import ClusterNode
from harness.model.target_info import TargetInfo
from harness.operators import OWN_MODULES
from harness.run.hashes import hash_files

_PACKAGE = Path(__file__).resolve().parent.parent.parent
_SUFFIXES = (".py", ".json", ".yaml")


class Identity(NamedTuple):
    """Versions by which a plan and its results follow from the specs; `code` is a digest of the package's files and of
    the modules of HARNESS_OPERATORS."""

    harness: str
    code: str
    onnx: str
    numpy: str

    def against(self, first: Sequence[str]) -> str | None:
        """Say in what this machine differs from the one where a run was started, None if in nothing."""
        names = ("harness", "harness of code", "onnx", "numpy")
        for name, mine, theirs in zip(names, self, first, strict=True):
            if mine != theirs:
                return f"it has {name} {mine}, and {theirs} started the run"
        return None


def identity() -> Identity:
    """Return what this machine has."""
    return Identity(version("onnxruntime-conformance-harness"), _code(), onnx.__version__, np.__version__)


def node_here(name: str, targets: dict[str, TargetInfo]) -> ClusterNode:
    """Describe this machine for the run file."""
    mine = identity()
    return ClusterNode(
        name=name,
        host=socket.gethostname(),
        harness=mine.harness,
        python=".".join(map(str, sys.version_info[:3])),
        numpy=mine.numpy,
        onnx=mine.onnx,
        platform=platform.platform(),
        targets=targets,
    )


@cache
def _code() -> str:
    total = sha256()
    for path in sorted(_PACKAGE.rglob("*")):
        name = path.relative_to(_PACKAGE).as_posix()
        # an installed wheel has the specs inside the package; those that a run is of are compared by themselves
        if path.suffix in _SUFFIXES and not name.startswith("_specs/"):
            total.update(f"{name}\0".encode() + path.read_bytes().replace(b"\r\n", b"\n"))
    total.update(hash_files(OWN_MODULES).encode() if OWN_MODULES else b"")
    return total.hexdigest()[:12]
