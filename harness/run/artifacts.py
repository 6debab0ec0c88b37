"""Keeps tensors of failing cases beside the run file: `artifacts/<name>.npz` with `input_<name>`, `expected`
and `actual`.

Further outputs are `expected.1`, `actual.1` and so on. If the expected result has a bound, `expected` and
`bound` are float64, whatever the output's type; of several admissible tensors the first is `expected` and the
others `expected_2` and so on.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.errors import HarnessFault
from harness.model.expected import Approx, Exact, Expected, OfLaw, OneOf
from harness.model.result import Result
from harness.model.result_key import artifact_name
from harness.model.verdict import Verdict
from harness.results.npz import load_arrays
from harness.run.judge import Judgement
from harness.run.numbers import LocalNumbers
from harness.targets.execution import Execution, Prepared

LIMIT_BYTES = 64 << 20
_LIMIT_CASES = 2000
_LIMIT_EXPECTED = 200
"""Of deviations that are expected, so that a run full of known ones leaves room for the unexpected."""


def _numbered(name: str, position: int) -> str:
    """Return the name of an output's array: those of the first carry no number."""
    return f"{name}.{position}" if position else name


def expected_arrays(expected: Expected | Tensor) -> dict[str, Array]:
    """Return the stored tensors of an expected result, by name."""
    if isinstance(expected, Approx):
        return {"expected": expected.value, "bound": expected.bound}
    if isinstance(expected, OneOf):
        return {
            f"expected_{n}" if n > 1 else "expected": tensor.array
            for n, tensor in enumerate(expected.candidates, 1)
        }
    if isinstance(expected, OfLaw):
        return {}
    return {"expected": (expected.tensor if isinstance(expected, Exact) else expected).array}


class Kept:
    """What the results of an interrupted run keep already, as the limits count it: bytes, cases and expected
    cases of each target."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._there = {path.name for path in folder.glob("*.npz")}
        self._used: dict[str, tuple[int, int, int]] = {}

    def add(self, result: Result) -> None:
        """Count the tensors of one result, if they are there."""
        name = artifact_name(result.case, result.target) if self._there else ""
        if name in self._there:
            held, cases, known = self.used(result.target)
            size = _size(self._folder / name)
            self._used[result.target] = held + size, cases + 1, known + (result.verdict is Verdict.EXPECTED)

    def used(self, target: str) -> tuple[int, int, int]:
        """Return how much of the limits a target has used."""
        return self._used.get(target, (0, 0, 0))


def _size(path: Path) -> int:
    """Return the bytes of the arrays in a file; of a damaged one its own size."""
    arrays = load_arrays(path)
    if arrays is not None:
        return sum(array.nbytes for array in arrays.values())
    try:
        return path.stat().st_size
    except OSError:
        return 0


class TensorFile(NamedTuple):
    """A file of tensors: its bytes, those of its arrays, and whether the result is expected."""

    name: str
    data: bytes
    size: int
    expected: bool


class Artifacts:
    """Writes tensors until the limit is reached; strings are left out, since they could only be stored as
    pickles."""

    def __init__(self, folder: Path, used: LocalNumbers | None = None) -> None:
        """Write to `folder`; `used` are bytes, cases and expected cases so far, shared by all who write there
        for one target."""
        self._folder = folder
        self._used = used or LocalNumbers(3)

    def keep(
        self, target: str, prepared: Prepared, execution: Execution, judgement: Judgement, *, expected: bool
    ) -> None:
        """Keep the tensors of one result, if there is room."""
        arrays = {
            f"input_{spec.name}": tensor.array
            for spec, tensor in zip(prepared.case.inputs, prepared.inputs, strict=True)
        }
        for position, wanted in enumerate(judgement.expected or ()):
            arrays |= {_numbered(name, position): array for name, array in expected_arrays(wanted).items()}
        for position, output in enumerate(execution.outputs or ()):
            arrays[_numbered("actual", position)] = output.array
        arrays = {name: array for name, array in arrays.items() if array.dtype != object}
        size = sum(array.nbytes for array in arrays.values())
        if arrays and self._room(size, expected=expected):
            file = io.BytesIO()
            np.savez(file, **arrays)  # type: ignore[arg-type] # numpy types savez's keywords as its flag
            self._save(TensorFile(artifact_name(prepared.case.id, target), file.getvalue(), size, expected))

    def room(self) -> int:
        """Return for how many expected results there is room."""
        held, cases, known = self._used.take()
        self._used.put(held, cases, known)
        return 0 if held >= LIMIT_BYTES else max(0, min(_LIMIT_CASES - cases, _LIMIT_EXPECTED - known))

    def keep_file(self, file: TensorFile) -> None:
        """Keep tensors of another machine, if there is room."""
        if self._room(file.size, expected=file.expected):
            self._save(file)

    def _save(self, file: TensorFile) -> None:
        path = self._folder / file.name
        try:
            self._folder.mkdir(exist_ok=True)
            path.write_bytes(file.data)
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink()
            raise HarnessFault(f"{path}: {error.strerror}; make room") from error

    def _room(self, size: int, *, expected: bool) -> bool:
        """Reserve room for a case's tensors, if there is any left."""
        held, cases, known = self._used.take()
        fits = (
            held + size <= LIMIT_BYTES
            and cases < _LIMIT_CASES
            and not (expected and known >= _LIMIT_EXPECTED)
        )
        if fits:
            held, cases, known = held + size, cases + 1, known + expected
        self._used.put(held, cases, known)
        return fits
