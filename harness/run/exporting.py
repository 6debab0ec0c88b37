"""Exports cases as folders of ONNX backend tests, for another runtime's runner: model, inputs, and what the
oracle expects.

A `Tolerance` is an expected output as one tensor with the `rtol` and `atol` by which other test runners compare.

NumPy's `assert_allclose` accepts |actual - expected| <= atol + rtol * |expected|. Of the pairs that accept
whatever the oracle does, the one is taken that accepts least beyond it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from harness.compile.backend_folders import ExportedTest, write_test
from harness.compile.graphs import compile_case
from harness.compile.prepare import with_inputs
from harness.model.case import Case, Tensor, Validity
from harness.model.caseid import CaseKey
from harness.model.dtypes import DTYPES
from harness.model.errors import UsageError
from harness.model.expected import Approx, Exact, Expected, OfLaw, nearest
from harness.model.float_formats import FORMATS, Float64, decode
from harness.run.oracle import OracleError, oracle

_SLACK = 4
"""Roundings of the comparison itself, in the type of the output."""


class Tolerance(NamedTuple):
    """The tensors to expect and one tolerance for all of them; `looseness` is the largest ratio of the tolerance to
    the oracle's bound, 1 where both are equal."""

    tensors: tuple[Tensor, ...]
    rtol: float
    atol: float
    looseness: float


class NoTolerance(ValueError):
    """No `rtol` and `atol` accept what the oracle does; the message says why."""


def tolerance(expected: Sequence[Expected]) -> Tolerance:
    """Return the tolerance of all outputs of a case; raise NoTolerance."""
    tensors = tuple(map(nearest, expected))
    parts = [_needed(each, tensor) for each, tensor in zip(expected, tensors, strict=True)]
    sizes = np.concatenate([np.zeros(0), *(size for size, _ in parts)])
    needed = np.concatenate([np.zeros(0), *(need for _, need in parts)])
    if not needed.any():
        return Tolerance(tensors, 0.0, 0.0, 1.0)
    rtol, atol = _least(sizes, needed)
    bounded = needed > 0
    accepted = atol + rtol * sizes[bounded]
    return Tolerance(tensors, rtol, atol, float(np.max(accepted / needed[bounded])))


def _needed(expected: Expected, tensor: Tensor) -> tuple[Float64, Float64]:
    """Return the magnitudes of an output's elements and how far an actual one may lie from each."""
    if isinstance(expected, Exact):
        return np.zeros(0), np.zeros(0)
    if isinstance(expected, OfLaw):
        raise NoTolerance("the elements are drawn")
    if isinstance(expected, Approx):
        if not np.isfinite(expected.bound).all():
            raise NoTolerance("nothing is claimed of some elements")
        finite = np.isfinite(expected.value)
        if np.any(
            np.abs(expected.value[finite]) + expected.bound[finite] >= FORMATS[expected.dtype].overflow
        ):
            raise NoTolerance("an element may also be infinite")
        written = decode(expected.dtype, tensor.array)[finite]
        off = np.abs(written - expected.value[finite]) + expected.bound[finite]
        return np.abs(written), _widened(expected.dtype, off)
    if DTYPES[expected.dtype].is_float:
        written, *others = (decode(expected.dtype, each.array) for each in expected.candidates)
    elif DTYPES[expected.dtype].is_integer:
        written, *others = (each.array.astype(np.float64) for each in expected.candidates)
    else:
        raise NoTolerance("one of several results, which are no numbers")
    off = np.zeros(written.shape)
    for other in others:
        same = (other == written) | (np.isnan(other) & np.isnan(written))
        with np.errstate(invalid="ignore"):
            off = np.maximum(off, np.where(same, 0.0, np.abs(other - written)))
    if not np.isfinite(off).all():
        raise NoTolerance("one of several results, of which not all are finite")
    return np.abs(written[off > 0]).reshape(-1), _widened(expected.dtype, off[off > 0])


def _widened(dtype: str, off: Float64) -> Float64:
    """Return distances with room for the rounding of the comparison."""
    if dtype not in FORMATS:
        return off.reshape(-1)
    mantissa = DTYPES[dtype].mantissa
    assert mantissa is not None
    return np.asarray(off.reshape(-1) * (1 + _SLACK * 2.0**-mantissa))


def _least(sizes: Float64, needed: Float64) -> tuple[float, float]:
    """Return rtol, at most 1, and atol that accept least: what rtol leaves uncovered, atol takes."""
    ratios = np.divide(needed, sizes, out=np.zeros(sizes.shape), where=sizes >= needed)
    positive = needed > 0

    def accepted(rtol: float, atol: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.sum((atol + rtol * sizes[positive]) / needed[positive]))

    choices = np.unique([0.0, *np.quantile(ratios, np.linspace(0, 1, 65))])
    pairs = [(float(rtol), float(max(np.max(needed - rtol * sizes), 0.0))) for rtol in choices]
    return min(pairs, key=lambda pair: accepted(*pair))


MANIFEST = "manifest.json"
_HASHED = 8


@dataclass
class Export:
    """The exported tests: their entries in the manifest, and the number of cases left out by reason."""

    tests: list[dict[str, Any]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def check_folder(folder: Path, *, force: bool) -> None:
    """Raise UsageError for a folder that holds something, unless `force`."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file; name a folder")
    if not force and folder.is_dir() and any(folder.iterdir()):
        raise UsageError(
            f"{folder}: holds something already; --force writes into it, replacing tests of the same names"
        )


def export(
    cases: Iterable[Case],
    folder: Path,
    seed: int,
    *,
    most: int | None = None,
    tell: Callable[[int], None] = lambda _done: None,
) -> Export:
    """Write the cases that a backend test can express, `most` of them, and a manifest.

    Left out are cases that are not valid, and those whose results no tolerance expresses. Raises UsageError
    where the folder cannot be written.
    """
    done = Export()
    try:
        for case in cases:
            if most is not None and len(done.tests) >= most:
                break
            why = _refusal(case)
            if why is None:
                why = _export(case, folder, seed, done)
            if why is not None:
                done.left_out[why] += 1
            tell(len(done.tests))
        if done.tests:
            (folder / MANIFEST).write_bytes(
                msgspec.json.format(msgspec.json.encode(_manifest(done, seed))) + b"\n"
            )
    except OSError as error:
        raise UsageError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    return done


def _refusal(case: Case) -> str | None:
    if case.directml is not None:
        return "a call of DirectML's own API, which no ONNX graph expresses"
    if case.validity is not Validity.VALID:
        return f"{case.validity.value}: there is no output to expect"
    return "the output is bound over an input, which a model cannot say" if case.options.in_place else None


def _export(case: Case, folder: Path, seed: int, done: Export) -> str | None:
    """Write one case; return why it is left out, None if it is written."""
    prepared = with_inputs(case, seed)
    inputs = prepared.inputs
    graph = compile_case(case, prepared.call, inputs)
    if graph.maps or graph.optionals:
        return "files of test data hold no map" if graph.maps else "its inputs or outputs are optionals"
    try:
        expected = oracle(prepared, "")
        assert expected is not None  # the case is valid
        found = tolerance(expected)
    except OracleError:
        return "the formula gives no result"
    except NoTolerance as error:
        return f"no rtol and atol express what is expected: {error}"
    settings = _settings(case, found)
    name = folder_name(case)
    fed = [(name, inputs[position]) for position, (name, _) in zip(graph.fed, graph.inputs, strict=True)]
    gives = [(name, tensor) for (name, _), tensor in zip(graph.outputs, found.tensors, strict=True)]
    write_test(folder, ExportedTest(name, graph.model, fed, gives, settings))
    done.tests.append({"test": name, **settings})
    return None


def folder_name(case: Case) -> str:
    """Return the name of a case's test: operator, opset, entry, and a hash of the id, which tells the cases
    of a sweep apart."""
    key = CaseKey.of(case.id)
    entry = re.sub(r"[^a-z0-9_]", "_", key.origin.partition("=")[2])
    digest = sha256(case.id.encode()).hexdigest()[:_HASHED]
    return f"test_{case.operator.lower()}_{case.opset}_{entry}_{digest}"


def _settings(case: Case, found: Tolerance) -> dict[str, Any]:
    """Return the content of `data.json`: the tolerances, which ONNX's runner reads, and their sources."""
    exact = found.rtol == found.atol == 0
    note = (
        "exact: ONNX defines the result to the bit; NaN equals any NaN"
        if exact
        else f"bounded: the oracle's value; rtol and atol accept whatever is within its bound, at most {found.looseness:.3g} times as much"
    )
    settings: dict[str, Any] = {"rtol": found.rtol, "atol": found.atol, "case": case.id, "expected": note}
    if case.options.optimization != "off":
        settings["optimization"] = case.options.optimization
    if case.source is not None:
        settings["source"] = case.source
    return settings


def _manifest(done: Export, seed: int) -> dict[str, Any]:
    return {
        "producer": "onnxruntime-conformance-harness",
        "seed": seed,
        "tolerances": "|actual - expected| <= atol + rtol * |expected|, as numpy.testing.assert_allclose compares",
        "left_out": dict(sorted(done.left_out.items())),
        "tests": done.tests,
    }
