"""Tensors of failing cases, kept beside the run file: `artifacts/<name>.npz` with `input_<name>`, `expected` and `actual`."""

from __future__ import annotations

import contextlib
from hashlib import sha256
from pathlib import Path

import numpy as np

from harness.errors import HarnessFault
from harness.execution import Execution, Prepared
from harness.judge import Judgement

LIMIT_BYTES = 64 << 20
_LIMIT_CASES = 2000
_LIMIT_EXPECTED = 200
"""Of deviations that are expected, so that a run full of known ones leaves room for the unexpected."""


def artifact_name(case_id: str, target: str) -> str:
    """Return the file name of a result's tensors."""
    return sha256(f"{case_id}|{target}".encode()).hexdigest()[:24] + ".npz"


class Artifacts:
    """Writes tensors until the limit is reached; strings are left out, since they could only be stored as pickles."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bytes = 0
        self._cases = 0
        self._expected = 0

    def keep(self, target: str, prepared: Prepared, execution: Execution, judgement: Judgement, *, expected: bool) -> None:
        """Keep the tensors of one result, if there is room."""
        if expected and self._expected >= _LIMIT_EXPECTED:
            return
        arrays = {f"input_{spec.name}": tensor.array for spec, tensor in zip(prepared.case.inputs, prepared.inputs, strict=True)}
        if judgement.expected is not None:
            arrays["expected"] = judgement.expected.array
        if execution.output is not None:
            arrays["actual"] = execution.output.array
        arrays = {name: array for name, array in arrays.items() if array.dtype != object}
        size = sum(array.nbytes for array in arrays.values())
        if self._bytes + size > LIMIT_BYTES or self._cases >= _LIMIT_CASES or not arrays:
            return
        self._bytes += size
        self._cases += 1
        self._expected += expected
        path = self._folder / artifact_name(prepared.case.id, target)
        try:
            self._folder.mkdir(exist_ok=True)
            np.savez(path, **arrays)  # type: ignore[arg-type] # numpy types savez's keywords as its flag
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink()
            raise HarnessFault(f"{path}: {error.strerror}; the results so far are kept: make room, then continue with --resume") from error
