"""The cells of `docs/directml-coverage.md`: DirectML operator × feature level × data type of the first tensor, with
what Microsoft documents, what ONNX Runtime's DirectML provider registers, and what ran.

    python -m tools.directml_cells RUN… > docs/directml-coverage.csv
    python -m tools.directml_coverage > docs/directml-coverage.md

Documents and registrations are in the harness's tables; only the counts need runs. A table among the runs, `OLD.csv`, gives
the counts that it has, to which those of runs of other operators are added.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET

from harness.model.case import BEYOND, Validity
from harness.model.dtypes import DTYPES
from harness.model.errors import UsageError
from harness.model.facets import facets
from harness.model.reference.directml import PREFIX, directml_operator, operator_names
from harness.model.reference.feature_levels import (
    documented_tensor,
    level_key,
    tensors_documented,
)
from harness.model.reference.kernels import (
    OnnxOperator,
    lowers_to,
    onnx_operator,
    registered_for,
    release,
)
from harness.model.result import Result
from harness.model.target_info import DIRECTML, DML, TargetInfo
from harness.model.verdict import Outcome
from harness.results.runfile import RunReader
from harness.results.tensor_support import DATA_TYPES
from harness.specs.reading.load import load_specs
from tools.doc_page import print_page

TARGETS = {DML: "dml", DIRECTML: "directml"}
KINDS: Mapping[str, frozenset[Outcome]] = {
    "conform": frozenset({Outcome.PASS}),
    "differ": frozenset({Outcome.MISMATCH, Outcome.ORACLE_ERROR}),
    "refused": frozenset({Outcome.REJECTED}),
    "no kernel": frozenset({Outcome.UNSUPPORTED, Outcome.NOT_PLACED}),
    "failed": frozenset({Outcome.CRASH, Outcome.TIMEOUT}),
}
"""What the valid cases of a cell did, by the heads of the CSV file's columns; a case that was not run counts in
none."""
REGISTERED = ("yes", "maybe", "other", "no")
"""Whether a kernel of the provider takes the data type and creates the operator; see `registrations`."""
_KIND = {outcome: kind for kind, outcomes in KINDS.items() for outcome in outcomes}
_EMPTY = re.compile(r"[\[,]0[,\]]")
_API = "api=directml"
_SEVERAL = "outputs that no cell counts, since several calls, or none, make them: "
_MOST_RUNS = 20
_HEADS = ("operator", "level", "dtype", "ranks", "registered")


class CoverageKey(NamedTuple):
    """DML_OPERATOR without its prefix, feature level or `beyond`, DML_TENSOR_DATA_TYPE; both are empty for an
    operator without a table."""

    operator: str
    level: str
    dtype: str


class CoverageCell(NamedTuple):
    """`ranks` are the DimensionCounts that the level's table has for the data type (`1-8`), empty for none;
    `registered` is one of REGISTERED.

    `ran` counts valid cases by target and kind of outcome.
    """

    key: CoverageKey
    ranks: str
    registered: str
    ran: Mapping[str, Counter[str]]


Ran = dict[CoverageKey, dict[str, Counter[str]]]


def first_tensor(operator: str) -> str | None:
    """Return the tensor whose data types stand for those of the operator: its first input, of one without
    inputs its output; None where no table has it."""
    documented = tensors_documented(operator)
    named = (member.name for member in directml_operator(PREFIX + operator).tensors)
    return next((name for name in named if name in documented), None)


def documented_levels(operator: str) -> list[str]:
    """Return the levels at which a table of the operator changes, the lowest first."""
    return sorted(directml_operator(PREFIX + operator).table_levels, key=level_key)


def registrations(operator: str) -> dict[str, str]:
    """Return what the provider's kernels take that create the operator, by data type: `yes`, `maybe` for a
    kernel that names other operators too, `other` for operators outside ONNX's default domain alone."""
    found: dict[str, str] = {}
    for name in registered_for(PREFIX + operator):
        known, other = onnx_operator(name), release().others.get(name)
        said, types = ("other", other.types) if known is None and other else _types(name, known, operator)
        for dtype in types:
            own = DTYPES[dtype].directml if dtype in DTYPES else None
            if own is not None:
                found[own] = min(said, found.get(own, said), key=REGISTERED.index)
    return found


def _types(name: str, known: OnnxOperator | None, operator: str) -> tuple[str, Iterable[str]]:
    """Return whether an ONNX operator's kernels surely create a DirectML operator, and the element types of its
    first input; of a DirectML operator without inputs those of any type parameter."""
    assert known is not None
    creations = [each for each in known.directml if PREFIX + operator in each.creates]
    versions = {version for each in creations for version in each.versions}
    inputs = [member for member in directml_operator(PREFIX + operator).tensors if "input" in member.type]
    found: set[str] = set()
    for kernel in known.kernels:
        for version in versions.intersection(kernel.versions):
            formal = next((each.inputs for each in known.inputs if version in each.versions), ())
            first = formal[0][1] if formal and inputs else None
            for parameter, types in kernel.types.items():
                if first is None or parameter == first:
                    found.update(types)
    sure = all(len(each.creates) == 1 for each in creations) or PREFIX + operator in _lowered(name)
    return "yes" if sure else "maybe", found


@cache
def _all_lowered() -> dict[str, tuple[str, ...]]:
    return {spec.model.operator: spec.directml for spec in load_specs(())}


def _lowered(operator: str) -> tuple[str, ...]:
    """Return the DirectML operators that an operator's spec lowers to; () where it has no spec."""
    return _all_lowered().get(operator, ())


@cache
def specs_of(operator: str) -> tuple[str, ...]:
    """Return the ONNX operators whose specs lower to a DirectML operator."""
    return tuple(name for name, lowered in _all_lowered().items() if PREFIX + operator in lowered)


class Measured(NamedTuple):
    """What valid cases did by cell, on which targets, and by ONNX operator how many of their outputs could not
    be ascribed to one DirectML operator."""

    ran: Ran
    targets: dict[str, str]
    ambiguous: Counter[str]


def measure(runs: Iterable[Path]) -> Measured:
    """Count the valid cases of runs by cell, those of DirectML's own API only where no other calls the operator.

    On `dml` a case counts for the operator that the same case calls on `directml`; where that is not known, for
    the only one that its spec or kernel names.
    """
    calls: dict[str, str] = {}
    results: list[tuple[str, Result]] = []
    targets: dict[str, str] = {}
    for run in runs:
        reader = RunReader(run)
        known = {name: TARGETS.get(info.provider) for name, info in reader.header.targets.items()}
        for name, info in reader.header.targets.items():
            if (target := known[name]) is not None:
                targets[target] = _release(info)
        for result in reader:
            target = known[result.target]
            if target is not None and _counts(result):
                results.append((target, result))
                if result.call is not UNSET:
                    calls[result.case] = result.call
    if not targets:
        raise UsageError("no run has a target of DirectML: give a run of `dml` and `directml`")
    called = {call.partition(" ")[0] for case, call in calls.items() if _API not in case}
    ran: Ran = {}
    ambiguous: Counter[str] = Counter()
    for target, result in results:
        call = calls.get(result.case)
        if _API in result.case and (call is None or call.partition(" ")[0] in called):
            continue
        key = _called(call, result.levels) if call is not None else _derived(result)
        if key is not None:
            ran.setdefault(key, {}).setdefault(target, Counter())[_KIND[result.outcome]] += 1
        elif _KIND[result.outcome] in ("conform", "differ"):
            ambiguous[result.operator] += 1
    return Measured(ran, targets, ambiguous)


def _counts(result: Result) -> bool:
    """Say whether a result tells of support: a valid case of the operator itself that ran, with elements, since
    no call has a size of 0."""
    return (
        result.validity is Validity.VALID
        and result.outcome in _KIND
        and not facets(result.case).variant
        and not _EMPTY.search(result.case)
    )


def _release(info: TargetInfo) -> str:
    parts = (("onnxruntime", info.onnxruntime), ("DirectML", info.directml), ("on", info.adapter))
    return ", ".join(f"{name} {value}" for name, value in parts if value)


def _called(call: str, levels: Mapping[str, str]) -> CoverageKey | None:
    """Return the cell of a call such as `GATHER_ND1 InputTensor=FLOAT32[4] ...`."""
    operator, *terms = call.split()
    first = first_tensor(operator)
    for term in terms:
        name, _, described = term.partition("=")
        if first is not None and name.partition(".")[0] == first:
            return CoverageKey(operator, levels.get("directml", BEYOND), described.partition("[")[0])
    return None


def _derived(result: Result) -> CoverageKey | None:
    """Return the cell of a case of whose call nothing is known but the types in its id."""
    case = facets(result.case)
    named = _lowered(result.operator)
    if len(named) != 1:
        named = lowers_to(result.operator, case.opset) or ()
    if len(named) != 1 or case.dtype not in DTYPES:
        return None
    operator = named[0].removeprefix(PREFIX)
    dtype, first = DTYPES[case.dtype].directml, first_tensor(operator)
    if first is None or dtype is None:
        return None
    level = result.levels.get("directml", BEYOND)
    if level == BEYOND:
        level = next(
            (
                each
                for each in documented_levels(operator)
                if dtype in _documented(operator, first, each)
                and case.rank <= documented_tensor(operator, first, each)[1]
            ),
            BEYOND,
        )
    return CoverageKey(operator, level, dtype)


def cells(ran: Ran) -> Iterator[CoverageCell]:
    """Yield every cell that a level documents anew, or that a case fell into; of an operator without a table
    one."""
    for name in operator_names():
        operator = name.removeprefix(PREFIX)
        first, registered = first_tensor(operator), registrations(operator)
        measured = {key for key in ran if key.operator == operator}
        before: dict[str, str] = {}
        for level in sorted({*documented_levels(operator), *(key.level for key in measured)}, key=level_key):
            documented = {} if first is None or level == BEYOND else _documented(operator, first, level)
            new = {dtype for dtype, ranks in documented.items() if before.get(dtype) != ranks}
            before = documented
            for dtype in _ordered({*new, *(key.dtype for key in measured if key.level == level)}):
                key = CoverageKey(operator, level, dtype)
                yield CoverageCell(
                    key, documented.get(dtype, ""), registered.get(dtype, "no"), ran.get(key, {})
                )
        if not before and not measured:
            known = min(registered.values(), key=REGISTERED.index, default="no")
            yield CoverageCell(CoverageKey(operator, "", ""), "", known, {})


def _documented(operator: str, tensor: str, level: str) -> dict[str, str]:
    """Return the DimensionCounts by data type, of a table that prints no data types by all."""
    least, most, dtypes = documented_tensor(operator, tensor, level)
    every = dtypes or (DATA_TYPES if most > 0 else ())
    return dict.fromkeys(every, str(least) if least == most else f"{least}-{most}")


def _ordered(dtypes: Iterable[str]) -> list[str]:
    order = [*DATA_TYPES, "UINT4", "INT4"]
    return sorted(dtypes, key=lambda dtype: (order.index(dtype) if dtype in order else len(order), dtype))


def write_cells(found: Iterable[CoverageCell], measured: Measured) -> str:
    """Write cells as CSV, one line a cell; counts of 0 stay empty. Lines of comment before them say what was
    measured."""
    text = io.StringIO()
    for target, release_ in sorted(measured.targets.items()):
        text.write(f"# {target}: {release_}\n")
    if measured.ambiguous:
        several = ", ".join(
            f"{operator} {number:,}" for operator, number in sorted(measured.ambiguous.items())
        )
        text.write(f"# {_SEVERAL}{several}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_HEADS, *(f"{target} {kind}" for target in TARGETS.values() for kind in KINDS)])
    for cell in found:
        counts = (
            cell.ran.get(target, Counter())[kind] or "" for target in TARGETS.values() for kind in KINDS
        )
        writer.writerow([*cell.key, cell.ranks, cell.registered, *counts])
    return text.getvalue()


def read_cells(path: Path) -> tuple[list[CoverageCell], list[str]]:
    """Read what `write_cells` wrote, the cells and the comments; UsageError where the file is something else."""
    try:
        lines = path.read_text("utf-8").splitlines()
        comments = [line.removeprefix("# ") for line in takewhile(lambda line: line.startswith("# "), lines)]
        rows = list(csv.DictReader(lines[len(comments) :]))
        found = [
            CoverageCell(
                CoverageKey(row["operator"], row["level"], row["dtype"]),
                row["ranks"],
                row["registered"],
                {
                    target: Counter({kind: int(row[f"{target} {kind}"] or 0) for kind in KINDS})
                    for target in TARGETS.values()
                },
            )
            for row in rows
        ]
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise UsageError(
            f"{path}: not a table of cells; write it with `python -m tools.directml_cells RUN`"
        ) from error
    return found, comments


def _add(measured: Measured, kept: Iterable[CoverageCell], comments: Iterable[str]) -> None:
    for cell in kept:
        for target, counts in cell.ran.items():
            if counts.total():
                measured.ran.setdefault(cell.key, {}).setdefault(target, Counter()).update(counts)
    for comment in comments:
        target, _, release_ = comment.partition(": ")
        if comment.startswith(_SEVERAL):
            named = (each.rpartition(" ") for each in comment.removeprefix(_SEVERAL).split(", "))
            measured.ambiguous.update({name: int(number.replace(",", "")) for name, _, number in named})
        else:
            measured.targets.setdefault(target, release_)


def main(arguments: Sequence[str]) -> int:
    """Print the table for some runs."""

    def lines(*given: Path) -> Iterator[str]:
        measured = measure(each for each in given if each.suffix != ".csv")
        for path in given:
            if path.suffix == ".csv":
                _add(measured, *read_cells(path))
        yield write_cells(cells(measured.ran), measured)

    return print_page(arguments, "python -m tools.directml_cells RUN…", range(1, _MOST_RUNS), lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
