"""Exports cases as folders of ONNX backend tests, for another runtime's runner: model, inputs, and what the
oracle expects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from harness.compile.backend_folders import ExportedTest, write_test
from harness.compile.graphs import compile_case
from harness.model.case import Case, Tensor, Validity
from harness.model.caseid import CaseKey
from harness.model.errors import UsageError
from harness.run.oracle import OracleError, oracle
from harness.run.tolerances import NoTolerance, Tolerance, tolerance
from harness.specs.sweeps.calls import call_of, case_inputs
from harness.targets.execution import Graph, Prepared

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
    call = call_of(case)
    inputs = case_inputs(call, case, seed)
    prepared = Prepared(case, call, inputs)
    graph = compile_case(case, call, inputs)
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
    write_test(folder, ExportedTest(name, graph.model, _fed(graph, inputs), _outputs(graph, found), settings))
    done.tests.append({"test": name, **settings})
    return None


def _fed(graph: Graph, inputs: tuple[Tensor, ...]) -> list[tuple[str, Tensor]]:
    return [(name, inputs[position]) for position, (name, _) in zip(graph.fed, graph.inputs, strict=True)]


def _outputs(graph: Graph, found: Tolerance) -> list[tuple[str, Tensor]]:
    return [(name, tensor) for (name, _), tensor in zip(graph.outputs, found.tensors, strict=True)]


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
