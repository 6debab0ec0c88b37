"""Histories for tests: runs of a few cases whose outcomes are given, one run a day."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.model.case import Validity
from harness.model.result import Diff, Error, Result
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from tests.synthetic import CPU, DML, write_results

CASE = "GatherND@12:case=batched;data=float32[2,2];indices=int64[2,1];batch_dims=1"
OTHER = "Round@11:case=halves;X=float16[4]"
INVALID = "Round@22:case=wrong_type;X=int32[4]"
OPEN = "Round@22:case=payload;X=float32[4]"
LETTERS = {
    "p": Outcome.PASS,
    "m": Outcome.MISMATCH,
    "r": Outcome.REJECTED,
    "a": Outcome.ACCEPTED_INVALID,
    "u": Outcome.UNAVAILABLE,
    "n": Outcome.NOT_RUN,
}


def cpu(version: str) -> TargetInfo:
    """The CPU target of a release."""
    return msgspec.structs.replace(CPU, onnxruntime=version)


def write_run(
    folder: Path,
    day: int,
    did: dict[str, str],
    targets: dict[str, TargetInfo] | None = None,
    *,
    specs: str = "aa",
    seed: int = 7,
    whole: bool = True,
) -> Path:
    """Write the run of a day into a folder: for each case one letter of `LETTERS` for each target, `-` for
    none."""
    targets = targets or {"cpu": cpu("1.23.0")}
    path = folder / f"day{day:02}" / "run.jsonl"
    path.parent.mkdir(parents=True)
    hashes = {"specs": specs * 32, "oracle": "bb" * 32}
    results = [
        _result(case, LETTERS[letter], target, info)
        for case, letters in did.items()
        for letter, (target, info) in zip(letters, targets.items(), strict=True)
        if letter != "-"
    ]
    run_id = f"202601{day:02}T030405Z-7"
    return write_results(path, results, targets, end=whole, run_id=run_id, seed=seed, hashes=hashes)


def write_days(folder: Path, case: str, letters: Sequence[str], version: str = "1.23.0") -> Path:
    """Write one run a day in which a case did what its letter says; return the folder."""
    for day, letter in enumerate(letters, start=1):
        write_run(folder, day, {case: letter}, {"cpu": cpu(version)})
    return folder


SEVERAL = (
    ("1.22.0", ("pp", "mm", "rr", "pp")),
    ("1.22.0", ("pp", "mm", "rr", "mm")),
    ("1.23.0", ("mp", "pm", "rr", "pp")),
    ("1.23.0", ("mp", "mm", "ar", "mp")),
    ("1.23.0", ("mp", "pm", "ar", "pp")),
    ("1.23.0", ("mn", "pu", "aa", "pp")),
)


def write_several(folder: Path, name: str = "cpu@ort-{}", last_specs: str = "aa") -> Path:
    """Write six runs of two targets, one of which has two releases: a regression, a fix, a flip, a target that is gone;
    the last of them perhaps with other specs."""
    for day, (version, did) in enumerate(SEVERAL, start=1):
        cases = dict(zip((CASE, OTHER, INVALID, OPEN), did, strict=True))
        targets = {name.format(version): cpu(version), "dml": DML}
        write_run(folder, day, cases, targets, specs=last_specs if day == len(SEVERAL) else "aa")
    return folder


def _result(case: str, outcome: Outcome, target: str, info: TargetInfo) -> Result:
    validity = {INVALID: Validity.INVALID, OPEN: Validity.UNSPECIFIED}.get(case, Validity.VALID)
    level = {"directml": "2_1" if case.startswith("GatherND") else "beyond"}
    ran = outcome in (Outcome.PASS, Outcome.MISMATCH, Outcome.ACCEPTED_INVALID)
    return Result(
        case,
        case.partition("@")[0],
        target,
        validity,
        level,
        outcome,
        Verdict.EXPECTED if outcome is not Outcome.UNAVAILABLE else Verdict.MISSING,
        placed_on=info.provider if ran else None,
        error=Error("InvalidArgument", "no") if outcome in (Outcome.REJECTED, Outcome.NOT_RUN) else None,
        diff=Diff(3, 1, 4, (0,), "1.0", "2.0") if outcome is Outcome.MISMATCH else None,
    )
