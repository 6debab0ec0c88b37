"""Synthetic runs for the tests of tables and reports: seeded, made of ids and results such as a real run
writes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from harness.model.case import BEYOND, Validity
from harness.model.caseid import tensor_term
from harness.model.header import End, Expectation, Header
from harness.model.result import Diff, Error, Result, inexpressible
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict, conforms
from harness.results.runfile import RunWriter
from harness.results.tables import Tables, tabulate

CPU = TargetInfo(
    "CPUExecutionProvider",
    onnxruntime="1.23.0",
    python="3.11.7",
    numpy="2.2.1",
    platform="Linux x86_64",
    artifact_limit_bytes=1 << 20,
)
DML = TargetInfo(
    "DmlExecutionProvider",
    runtime="windows",
    onnxruntime="1.22.0",
    python="3.11.9",
    numpy="2.2.1",
    platform="Windows 11",
    directml="1.15.4",
    directml_sha256="5f" * 32,
    adapter="Radeon 780M",
    vendor="AMD",
    driver="32.0.12",
    max_feature_level="6_4",
    device_dtypes=("float64", "int64", "uint64"),
    options={"device_id": "0"},
)
PROVIDERS = {"dml": DML.provider, "directml": "DirectML"}
ABSENT = TargetInfo(
    "DmlExecutionProvider",
    unavailable="onnxruntime here has no DmlExecutionProvider; run `harness windows install`",
)

DTYPES = (
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint32",
    "bool",
    "string",
)
_LEVEL_4_1 = {"float64", "int64", "uint64"}


def _level(dtype: str, rank: int, values: str) -> str:
    if dtype in ("bfloat16", "string") or rank > 8:
        return BEYOND
    if dtype in _LEVEL_4_1:
        return "4_1"
    return "2_1" if rank <= 4 and values != "negative" else "3_0"


def cases() -> Iterator[tuple[str, str, str, Validity]]:
    """Yield (id, operator, level, validity) without end, in a fixed order."""
    batch = 0
    while True:
        for opset, dtype, rank, index, values in product(
            (11, 13), DTYPES, range(1, 10), ("int32", "int64"), ("random", "negative", "boundary")
        ):
            shape = tuple(2 + (batch + axis) % 4 for axis in range(rank))
            tensors = ";".join((tensor_term("data", dtype, shape), tensor_term("indices", index, shape)))
            level = _level(dtype, rank, values)
            tail = f"axis={batch % rank};values={values}" + (f";draw={batch}" if batch else "")
            yield (
                f"GatherElements@{opset}:sweep=dtype_rank;{tensors};{tail}",
                "GatherElements",
                level,
                Validity.VALID,
            )
        for opset, dtype, rank in product((11, 12, 13), DTYPES, range(1, 6)):
            tensors = ";".join(
                (tensor_term("data", dtype, (3,) * rank), tensor_term("indices", "int64", (2, 1)))
            )
            draw = f";draw={batch}" if batch else ""
            yield (
                f"GatherND@{opset}:sweep=tuples;{tensors};batch_dims=0{draw}",
                "GatherND",
                _level(dtype, rank, ""),
                Validity.VALID,
            )
            tail = f"batch_dims=0;values=outside{draw}"
            yield (
                f"GatherND@{opset}:sweep=outside;{tensors};{tail}",
                "GatherND",
                _level(dtype, rank, ""),
                Validity.INVALID,
            )
        for opset, dtype, rank in product((11, 22), ("float16", "float32", "float64"), range(10)):
            level = BEYOND if dtype == "float64" or rank > 8 else "2_1" if rank <= 4 else "3_0"
            draw = f";draw={batch}" if batch else ""
            yield (
                f"Round@{opset}:sweep=specials;{tensor_term('X', dtype, (2,) * rank)};values=specials{draw}",
                "Round",
                level,
                Validity.VALID,
            )
            yield f"Round@{opset}:case=nan_payload_{rank}_{dtype}{draw}", "Round", level, Validity.UNSPECIFIED
        batch += 1


def _result(
    rng: random.Random, case: tuple[str, str, str, Validity], target: str, info: TargetInfo, faults: float
) -> Result:
    name, operator, level, validity = case
    conforming = Outcome.REJECTED if validity is Validity.INVALID else Outcome.PASS
    outcome, verdict = conforming, Verdict.EXPECTED
    if info.unavailable:
        return Result(
            name, operator, target, validity, {"directml": level}, Outcome.UNAVAILABLE, Verdict.MISSING
        )
    lacking = level == BEYOND if info.provider.startswith("Dml") else "bfloat16" in name and "@11" in name
    if lacking and validity is not Validity.INVALID:
        outcome = Outcome.UNSUPPORTED
    elif rng.random() < faults:
        wrong = [Outcome.MISMATCH, Outcome.CRASH, Outcome.TIMEOUT]
        wrong.append(Outcome.ACCEPTED_INVALID if validity is Validity.INVALID else Outcome.REJECTED)
        outcome = rng.choice(wrong)
        verdict = rng.choice(
            [Verdict.EXPECTED, Verdict.REGRESSION, Verdict.REGRESSION, Verdict.NEW, Verdict.CHANGED]
        )
        verdict = Verdict.EXPECTED if validity is Validity.UNSPECIFIED else verdict
    error = diff = None
    if outcome is Outcome.MISMATCH:
        diff = Diff(rng.randrange(1, 2000), rng.randrange(1, 5), 12, (0, rng.randrange(3)), "2.0", "3.0")
        if validity is Validity.INVALID:
            outcome, diff = Outcome.ACCEPTED_INVALID, None
    elif outcome not in (Outcome.PASS, Outcome.ACCEPTED_INVALID):
        error = Error(
            "InvalidArgument",
            f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : indices element out of data bounds, idx={rng.randrange(9)}",
        )
    return Result(
        name,
        operator,
        target,
        validity,
        {"directml": level},
        outcome,
        verdict,
        "compare" if error is None else "run",
        info.provider if error is None else None,
        error,
        diff,
        round(rng.random() / 1000, 6),
    )


def result(
    case: str,
    outcome: Outcome = Outcome.PASS,
    verdict: Verdict = Verdict.EXPECTED,
    *,
    target: str = "cpu",
    **fields: Any,
) -> Result:
    """Return a result that is given by what a test is about: the case is valid unless it was accepted wrongly, and a
    provider took it if there was an output to compare."""
    compared = outcome in (Outcome.PASS, Outcome.MISMATCH, Outcome.ACCEPTED_INVALID)
    usual = {
        "operator": case.partition("@")[0],
        "validity": Validity.INVALID if outcome is Outcome.ACCEPTED_INVALID else Validity.VALID,
        "levels": {"directml": "2_1"},
        "stage": "compare" if compared else "run",
        "placed_on": PROVIDERS.get(target, CPU.provider) if compared else None,
    }
    return Result(case=case, outcome=outcome, verdict=verdict, target=target, **{**usual, **fields})


def hostile_results(texts: Sequence[str], length: int = 20_000) -> list[Result]:
    """Return unexpected results that are made of these texts, each with a message of `length` times its text."""
    return [
        result(
            f"{text}@22:case={n};{text}",
            Outcome.REJECTED,
            Verdict.REGRESSION,
            levels={"directml": text},
            error=Error(text, text * length),
        )
        for n, text in enumerate(texts)
    ]


def header(targets: dict[str, TargetInfo] | None = None) -> Header:
    """A header as a run writes it."""
    return Header(
        1,
        "20260102T030405Z-7",
        "harness run",
        7,
        {"specs": "aa" * 32, "oracle": "bb" * 32},
        targets or {"cpu": CPU, "dml": DML},
    )


def results(
    number: int, targets: dict[str, TargetInfo] | None = None, *, faults: float = 0.01, seed: int = 7
) -> Iterator[Result]:
    """Yield the results of `number` cases on each target; `faults` is the share that goes wrong."""
    rng = random.Random(seed)
    for case, _ in zip(cases(), range(number), strict=False):
        for target, info in (targets or {"cpu": CPU, "dml": DML}).items():
            yield _result(rng, case, target, info, faults)


ENTRIES = {
    3: Expectation(
        (Outcome.REJECTED, Outcome.UNSUPPORTED, Outcome.NOT_PLACED),
        "The provider registers no kernel of the operator's version for these element types.",
        "https://github.com/microsoft/onnxruntime/blob/main/docs/OperatorKernels.md",
        "Element types without a kernel",
    ),
    7: Expectation(
        (Outcome.MISMATCH,),
        "The kernel reads the indices of the second batch only where the first one's are in range, and so leaves elements as they were.",
        "https://onnx.ai/onnx/operators/onnx__GatherND.html",
        documents="The sizes must match.",
    ),
    12: Expectation(
        (),
        "Not looked at yet: GatherElements.",
        "https://example.com/a(b)?c=d",
        "GatherElements on DirectML",
        pending=True,
    ),
    13: Expectation((Outcome.CRASH,), "No result of the run names it.", "https://example.com/", "Never seen"),
}


def explained(found: Sequence[Result]) -> list[Result]:
    """Let known deviations name one of `ENTRIES`, but for what these do not expect; an entry that is
    contradicted is named as well."""
    named = []
    for result in found:
        deviates = result.verdict is Verdict.EXPECTED and not conforms(result.validity, result.outcome)
        number = None
        if deviates and result.target == "dml" and result.operator == "GatherElements":
            number = 12
        elif deviates:
            number = next(
                (
                    number
                    for number, entry in ENTRIES.items()
                    if result.outcome in entry.expect and number != 13
                ),
                None,
            )
        elif (
            result.verdict is Verdict.CHANGED
            and result.outcome is not Outcome.MISMATCH
            and result.validity is not Validity.UNSPECIFIED
        ):
            number = 7
        named.append(result if number is None else msgspec.structs.replace(result, expectation=number))
    return named


def end_of(found: Sequence[Result]) -> End:
    """The last line of a run with these results."""
    skipped = (Outcome.UNAVAILABLE, Outcome.NOT_RUN)
    outcomes: dict[str, int] = {}
    verdicts: dict[str, int] = {}
    for result in found:
        outcomes[result.outcome.value] = outcomes.get(result.outcome.value, 0) + 1
        verdicts[result.verdict.value] = verdicts.get(result.verdict.value, 0) + 1
    run = sum(result.outcome not in skipped for result in found)
    selected = sum(not inexpressible(result) for result in found)
    return End(selected, run, {"the operator forbids it": 12}, outcomes, verdicts, seconds=1.5)


def tables(
    number: int = 2000, targets: dict[str, TargetInfo] | None = None, *, faults: float = 0.01
) -> Tables:
    """The tables of a synthetic run."""
    found = list(results(number, targets, faults=faults))
    return tabulate(header(targets), found, end_of(found))


def write_run(
    path: Path,
    number: int = 2000,
    targets: dict[str, TargetInfo] | None = None,
    *,
    faults: float = 0.01,
    whole: bool = True,
) -> Path:
    """Write a run file; `whole=False` cuts it off in the middle of a line."""
    found = list(results(number, targets, faults=faults))
    return write_results(path, found, targets, whole=whole)


def write_results(
    path: Path,
    found: Sequence[Result],
    targets: dict[str, TargetInfo] | None = None,
    *,
    whole: bool = True,
    end: bool = True,
    **stated: Any,
) -> Path:
    """Write a run file with these results, and with what its header states besides; `end=False` leaves out its last
    line."""
    writer = RunWriter(path, msgspec.structs.replace(header(targets), **stated))
    for each in found:
        writer.add(each)
    writer.close(end_of(found) if end else None)
    if not whole:
        data = path.read_bytes()
        path.write_bytes(data[: len(data) * 2 // 3])
    return path


def write_explained(
    path: Path, number: int = 2000, targets: dict[str, TargetInfo] | None = None, *, faults: float = 0.01
) -> Path:
    """Write a run file whose known deviations name their entries."""
    return write_results(
        path, explained(list(results(number, targets, faults=faults))), targets, expectations=ENTRIES
    )
