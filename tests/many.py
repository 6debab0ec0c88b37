"""A synthetic run of many operators, some of which have results with a bound: what reports of every operator
of ONNX have to bear."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from msgspec import UNSET

from harness.model.case import BEYOND, Validity
from harness.model.caseid import tensor_term
from harness.model.result import (
    Accuracy,
    Diff,
    Error,
    Result,
)
from harness.model.verdict import Outcome, Verdict
from tests.synthetic import CPU, DML, DTYPES, write_results

OPERATORS = 150
CASES = 300
TARGETS = {"cpu": CPU, "dml": DML, "dml@ort-1.20.1": DML}


def results(operators: int = OPERATORS, cases: int = CASES, *, seed: int = 3) -> Iterator[Result]:
    """Yield results by target; every third operator has bounds, every tenth something unexpected, every
    seventh a second element type."""
    for target in TARGETS:
        rng = random.Random(f"{seed} {target}")
        for number in range(operators):
            name = f"Operator{number:03}"
            for place in range(cases):
                yield _result(rng, name, number, place, target)


def _result(rng: random.Random, name: str, number: int, place: int, target: str) -> Result:
    numeric = DTYPES[:-1]  # without strings
    dtype, rank, opset = numeric[place % len(numeric)], place % 7, (7, 13, 21)[place % 3]
    shape = tuple(2 + (place + axis) % 4 for axis in range(rank))
    other = ("int32", "int64")[place % 2] if number % 7 == 0 else dtype
    tensors = ";".join((tensor_term("first", dtype, shape), tensor_term("second", other, shape[-1:])))
    case = f"{name}@{opset}:sweep=shapes;{tensors};values=kind{place // 77}"
    validity = Validity.INVALID if place % 29 == 28 else Validity.VALID
    level = BEYOND if dtype == "bfloat16" or rank > 5 else ("2_1", "3_0", "4_1", "5_0")[place % 4]
    outcome, verdict = Outcome.REJECTED if validity is Validity.INVALID else Outcome.PASS, Verdict.EXPECTED
    accuracy = (
        Accuracy(rng.random() * 0.9, rng.random() * 3, 0, 12)
        if number % 3 == 0 and "float" in dtype
        else None
    )
    diff = None
    if level == BEYOND and target != "cpu" and validity is Validity.VALID:
        outcome, accuracy = Outcome.UNSUPPORTED, None
    elif validity is Validity.VALID and number % 10 == 4 and place % 50 == 7:
        outcome, verdict = Outcome.MISMATCH, Verdict.REGRESSION
        diff = (
            Diff(4, 1, 12, (0,) * rank, "0.5 ± 0.001", "0.503", 0.003, 0.001)
            if accuracy
            else Diff(None, 1, 12, (0,) * rank, "1", "2")
        )
        accuracy = Accuracy(3.0, 4.0, 0, 12) if accuracy else None
    elif accuracy and place % 60 == 0:
        accuracy = Accuracy(0.0, 0.0, 12, 12)
    error = (
        Error("InvalidArgument", f"shape mismatch in input {place % 5}")
        if outcome in (Outcome.REJECTED, Outcome.UNSUPPORTED)
        else None
    )
    placed = TARGETS[target].provider if error is None else None
    return Result(
        case,
        name,
        target,
        validity,
        {"directml": level},
        outcome,
        verdict,
        "compare",
        placed,
        error,
        diff,
        place / 1e6,
        accuracy=UNSET if accuracy is None else accuracy,
    )


def write_run(path: Path, operators: int = OPERATORS, cases: int = CASES) -> Path:
    """Write the run file."""
    return write_results(path, list(results(operators, cases)), TARGETS)
