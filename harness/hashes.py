"""Hashes that say whether two runs are comparable: specs, oracle, graph compiler, expectations."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import onnx

from harness.expectations import Expectations

_PACKAGE = Path(__file__).resolve().parent


def hash_files(paths: Iterable[Path], salt: str = "") -> str:
    """Return the SHA-256 over the names and contents of files, whatever line endings a checkout gave them."""
    total = sha256(salt.encode())
    for path in sorted(paths, key=lambda p: p.name):
        total.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return total.hexdigest()


def run_hashes(specs: Iterable[Path], expectations: Expectations) -> dict[str, str]:
    """Return the hashes of a run's header."""
    oracle = [*(_PACKAGE / "operators").glob("*.py"), _PACKAGE / "values.py", _PACKAGE / "diff.py"]
    return {
        "specs": hash_files(specs),
        "oracle": hash_files(oracle),
        "graphs": hash_files([_PACKAGE / "graphs.py"], onnx.__version__),
        "expectations": hash_files({entry.file.path for entry in expectations.entries}),
    }
