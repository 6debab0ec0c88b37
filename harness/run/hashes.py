"""Hashes that say whether two runs are comparable: specs, oracle, graph compiler, expectations."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import onnx
from msgspec import UNSET, UnsetType

from harness.model.case import Tensor
from harness.operators import OWN_MODULES
from harness.specs.expectations.expectations import Expectations
from harness.targets.frames import tensor_bytes

_PACKAGE = Path(__file__).resolve().parent.parent


def hash_files(paths: Iterable[Path], salt: str = "") -> str:
    """Return the SHA-256 over the names and contents of files, independent of the line endings of a
    checkout."""
    total = sha256(salt.encode())
    for path in sorted(paths, key=lambda p: p.name):
        total.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return total.hexdigest()


def output_hash(outputs: tuple[Tensor, ...] | None) -> str | UnsetType:
    """Return 16 hexadecimal digits of the SHA-256 of the outputs' element types, shapes and bytes; UNSET for
    none."""
    if outputs is None:
        return UNSET
    total = sha256()
    for output in outputs:
        total.update(f"{output.dtype}{list(output.array.shape)}".encode())
        total.update(tensor_bytes(output))
    return total.hexdigest()[:16]


def run_hashes(specs: Iterable[Path], expectations: Expectations) -> dict[str, str]:
    """Return the hashes of a run's header."""
    oracle = [
        file
        for file in (_PACKAGE / "operators").rglob("*.py")
        if not file.is_relative_to(_PACKAGE / "operators" / "deviations")
    ]
    oracle += [*OWN_MODULES, _PACKAGE / "specs" / "sweeps" / "calls.py"]
    oracle += [_PACKAGE / "specs" / "graphs" / name for name in ("composition.py", "pattern.py")]
    oracle += [
        _PACKAGE / "model" / name
        for name in ("diff.py", "expected.py", "float_formats.py", "data/arithmetics.yaml")
    ]
    compiled = [_PACKAGE / "compile" / name for name in ("graphs.py", "composed.py", "directml.py")]
    return {
        "specs": hash_files(specs),
        "oracle": hash_files(oracle),
        "graphs": hash_files(
            [*compiled, *(_PACKAGE / "operators" / "directml").glob("*.py")], onnx.__version__
        ),
        "expectations": hash_files(
            {
                *(entry.file.path for entry in expectations.entries),
                *(_PACKAGE / "operators" / "deviations").glob("*.py"),
            }
        ),
    }
