"""Writes `docs/directml-findings.md`: what the CPU and the DirectML provider make differently of the same
cases, and which is right.

    python -m tools.findings CPU_RUN DML_RUN > docs/directml-findings.md
    python -m tools.findings RUN_OF_BOTH > docs/directml-findings.md

Derived from the run files with the tensors beside them, the specs and the expectations alone; the same runs
give the same page.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.model.case import Case, Validity
from harness.model.errors import UsageError
from harness.model.result import Result, inexpressible
from harness.model.result_key import artifact_name
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, conforms
from harness.render.markup import table
from harness.render.tensors import read_tensors
from harness.render.text import line
from harness.results.runfile import RunReader
from harness.specs.expectation_entry import Entry
from harness.specs.expectations import Expectations, load_expectations
from tools.doc_page import print_page

_MEANS = {
    Outcome.PASS: "gives the result that ONNX defines",
    Outcome.MISMATCH: "gives another result",
    Outcome.REJECTED: "refuses it",
    Outcome.ACCEPTED_INVALID: "accepts it",
    Outcome.UNSUPPORTED: "has no kernel",
    Outcome.NOT_PLACED: "does not take it; the CPU provider would run it",
    Outcome.CRASH: "crashes",
    Outcome.TIMEOUT: "does not end",
}
_SHOWN = 24
_NAMED = 10
"""Elements of a tensor that are written out."""
_EMPTY = re.compile(r"[\[,]0[,\]]")
_NOISE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : |[\r\n]+$")
"""What a message repeats of the error class."""


class Side(NamedTuple):
    """A target of a run: its results by case, and the folder with their tensors."""

    target: str
    info: TargetInfo
    results: dict[str, Result]
    folder: Path


class Finding(NamedTuple):
    """Cases that share the title of the reviewed entry on each side; `of` counts all cases of their
    operators.

    `entries` has one entry a side, the first of that title, or None where the side conforms or no entry
    explains it.
    """

    entries: tuple[Entry | None, ...]
    cases: tuple[str, ...]
    of: int


def read_sides(paths: Iterable[Path]) -> list[Side]:
    """Read the two targets of one or two runs that run ONNX's graphs; UsageError where there are not two."""
    sides: list[Side] = []
    for path in paths:
        reader = RunReader(path)
        by_target = {
            target: Side(target, info, {}, reader.path.parent)
            for target, info in reader.header.targets.items()
            if info.provider != "DirectML"
        }
        for result in reader:
            if result.target in by_target and not inexpressible(result):
                by_target[result.target].results[result.case] = result
        sides.extend(by_target.values())
    if len(sides) != 2:
        raise UsageError(
            f"two targets are compared, the runs have {len(sides)}: {', '.join(side.target for side in sides)}"
        )
    return sides


def findings(sides: Sequence[Side], expectations: Expectations) -> list[Finding]:
    """Group the cases that do not conform on either side, or that end differently, by their entries; the
    largest groups first."""
    known = [expectations.for_target(side.target, side.info) for side in sides]
    groups: dict[tuple[str | None, ...], tuple[tuple[Entry | None, ...], list[str]]] = {}
    both = sorted(sides[0].results.keys() & sides[1].results.keys())
    totals = Counter(sides[0].results[case].operator for case in both)
    for case in both:
        results = [side.results[case] for side in sides]
        if all(conforms(result.validity, result.outcome) for result in results):
            continue
        entries = tuple(
            None
            if conforms(result.validity, result.outcome)
            else targets.entry(case, beyond=result.beyond, outcome=result.outcome)
            for targets, result in zip(known, results, strict=True)
        )
        key = tuple(None if entry is None else entry.title or entry.reason for entry in entries)
        groups.setdefault(key, (entries, []))[1].append(case)
    found = [
        Finding(
            entries,
            tuple(cases),
            sum(totals[operator] for operator in {sides[0].results[case].operator for case in cases}),
        )
        for entries, cases in groups.values()
    ]
    return sorted(found, key=lambda finding: (-len(finding.cases), finding.cases[0]))


def page(sides: Sequence[Side], expectations: Expectations, cases: Mapping[str, Case]) -> Iterator[str]:
    """Yield the lines of the page."""
    found = findings(sides, expectations)
    yield "# What the CPU and the DirectML provider make differently\n"
    yield "Generated by `python -m tools.findings`; do not edit.\n"
    yield "## Measured on\n"
    yield from table(("", *(side.target for side in sides)), _device(sides))
    both = sides[0].results.keys() & sides[1].results.keys()
    yield f"{len(both):,} cases ran on both; {len(sides[0].results) + len(sides[1].results) - 2 * len(both):,} on one alone.\n"
    if len({side.info.onnxruntime for side in sides}) > 1:
        yield "The two releases of ONNX Runtime differ, and so may what they do whatever the provider.\n"
    if any("llvmpipe" in (side.info.adapter or "") for side in sides):
        yield (
            "The DirectML results come from Microsoft's DirectML.dll on a software device, not from a GPU: what an access outside a "
            "buffer returns is the device's, and where a finding says so, so is the refusal.\n"
        )
    yield "## Summary\n"
    yield from table(
        ("", "operators", "what", "cases", "of", *(side.target for side in sides), "right"),
        (
            (
                f"[{number}](#finding-{number})",
                _operators(finding),
                _short(finding),
                f"{len(finding.cases):,}",
                f"{finding.of:,}",
                *(_outcomes(side, finding.cases) for side in sides),
                _right(sides, finding),
            )
            for number, finding in enumerate(found, start=1)
        ),
    )
    for number, finding in enumerate(found, start=1):
        yield f'\n## <a id="finding-{number}"></a>{number}. {_short(finding)}\n'
        yield from _section(sides, finding, cases)
    yield "\nWhat older releases do otherwise: [directml-releases.md](directml-releases.md).\n\n## What ONNX leaves open\n"
    yield "Recorded, and right either way. `pass` is the oracle's result, `accepted_invalid` one where the oracle has none.\n"
    yield from table(
        ("operator", "case", "what is open", *(side.target for side in sides)), _unspecified(sides, cases)
    )


def _device(sides: Sequence[Side]) -> Iterator[tuple[str, ...]]:
    for field in (
        "provider",
        "onnxruntime",
        "platform",
        "directml",
        "max_feature_level",
        "adapter",
        "vendor",
        "driver",
    ):
        yield (field.replace("_", " "), *(line(str(getattr(side.info, field) or "–")) for side in sides))


def _entry(finding: Finding) -> Entry | None:
    return next((entry for entry in reversed(finding.entries) if entry is not None), None)


def _short(finding: Finding) -> str:
    entry = _entry(finding)
    return (
        "not explained by any expectation"
        if entry is None
        else line(entry.title or entry.reason.partition(";")[0], 120)
    )


def _operators(finding: Finding) -> str:
    names = sorted({case.partition("@")[0] for case in finding.cases})
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _outcomes(side: Side, cases: Iterable[str]) -> str:
    return ", ".join(
        f"{outcome.value} {n:,}"
        for outcome, n in Counter(side.results[case].outcome for case in cases).most_common()
    )


def _right(sides: Sequence[Side], finding: Finding) -> str:
    right = [
        side.target
        for side in sides
        if all(conforms(side.results[c].validity, side.results[c].outcome) for c in finding.cases)
    ]
    return " and ".join(right) or "neither"


def _section(sides: Sequence[Side], finding: Finding, cases: Mapping[str, Case]) -> Iterator[str]:
    example = min(
        finding.cases,
        key=lambda case: (-_tensors_at(sides, case), bool(_EMPTY.search(case)), len(case), case),
    )
    case = cases.get(example)
    validity = sides[0].results[example].validity.value
    says = "; ".join(filter(None, (case.rule, case.source))) if case else ""
    yield f"- Cases: {len(finding.cases):,} of {finding.of:,} of {_operators(finding)}; for example\n  `{example}`"
    yield f"- ONNX: the case is {validity}" + (
        f": {cell(says)}" if says else "; the operator's formula defines its result"
    )
    documents = [entry.documents for entry in finding.entries if entry is not None and entry.documents]
    yield f"- Microsoft's documents: {' '.join(map(cell, documents)) or 'nothing beyond ONNX'}"
    for side, entry in zip(sides, finding.entries, strict=True):
        result = side.results[example]
        yield f"- **{side.target}** {_MEANS.get(result.outcome, result.outcome.value)} (`{result.outcome.value}`){_detail(side, result)}"
        if entry is not None:
            yield f"  - {cell(entry.reason)} [Source]({entry.link})"
    yield f"- Right: {_right(sides, finding)}"


def _tensors_at(sides: Sequence[Side], case: str) -> int:
    return sum((side.folder / "artifacts" / artifact_name(case, side.target)).exists() for side in sides)


def _detail(side: Side, result: Result) -> str:
    parts = []
    if result.error is not None:
        parts.append(f"`{result.error.class_}`: {_code(result.error.message)}")
    if result.diff is not None:
        parts.append(
            f"expected `{line(result.diff.expected)}`, got `{line(result.diff.actual)}` at {result.diff.first_index}"
        )
    tensors = _written(side, result.case)
    return ": " + "; ".join(parts + tensors) if parts or tensors else ""


def _written(side: Side, case: str) -> list[str]:
    """Write the small tensors that the run kept of a case; the output of a side stands last."""
    kept = read_tensors(side.folder / "artifacts" / artifact_name(case, side.target), case)
    return [
        f"{'output' if grid['name'] == 'actual' else grid['name']} `{' '.join(cell for row in grid['rows'] for cell in row['cells'])}`"
        for grid in (kept or {}).get("grids", ())
        if 0 < grid["size"] <= _SHOWN and grid["name"] != "expected"
    ]


def _code(message: str) -> str:
    return f"`{line(_NOISE.sub('', message), 300).replace('`', chr(39))}`"


def _unspecified(sides: Sequence[Side], cases: Mapping[str, Case]) -> Iterator[tuple[str, ...]]:
    """Yield one row for all opsets at which an unspecified case ends alike, and one for a sweep."""
    rows: dict[tuple[str, ...], list[str]] = {}
    sweeps: dict[tuple[str, ...], list[Counter[Outcome]]] = {}
    for name in sorted(sides[0].results.keys() & sides[1].results.keys()):
        results = [side.results[name] for side in sides]
        if results[0].validity is not Validity.UNSPECIFIED:
            continue
        case = cases.get(name)
        operator, _, rest = name.partition("@")
        opset, _, terms = rest.partition(":")
        rule = cell((case and case.rule) or "–")
        if terms.startswith("sweep="):
            counted = sweeps.setdefault(
                (operator, f"`{terms.partition(';')[0]}`", rule), [Counter() for _ in sides]
            )
            for counter, result in zip(counted, results, strict=True):
                counter[result.outcome] += 1
        else:
            told = (f"`{r.outcome.value}`{_detail(side, r)}" for side, r in zip(sides, results, strict=True))
            rows.setdefault((operator, f"`{terms}`", rule, *told), []).append(opset)
    for (operator, *cells), opsets in rows.items():
        yield (f"{operator} {', '.join(opsets)}", *cells)
    for key, counted in sweeps.items():
        yield (
            *key,
            *(
                ", ".join(f"`{outcome.value}` {n:,}" for outcome, n in counter.most_common())
                for counter in counted
            ),
        )


def cell(text: str) -> str:
    """Make a text fit a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def _page(*runs: Path) -> Iterator[str]:
    from harness.model.query import parse_all
    from harness.specs.expand import expand
    from harness.specs.load import load_specs

    sides = read_sides(runs)
    operators = sorted({result.operator for side in sides for result in side.results.values()})
    return page(
        sides, load_expectations(), {case.id: case for case in expand(load_specs(()), parse_all(operators))}
    )


def main(arguments: Sequence[str]) -> int:
    """Print the page for one or two runs."""
    return print_page(arguments, "python -m tools.findings CPU_RUN DML_RUN", (1, 2), _page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
