"""Renders the results on DirectML's own API: tensor support, both sides of the documents' rules, and the
cross-check with ONNX Runtime's provider."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.model.result import Result
from harness.model.target_info import DIRECTML
from harness.render.markup import code, escape, table
from harness.render.text import line
from harness.results.cross_check import Suspect
from harness.results.requirements import ObservedResult, Rules, Side, Tested
from harness.results.runfile import RunReader
from harness.results.summary import count, target_facts
from harness.results.tables import Tables
from harness.results.tensor_support import DATA_TYPES, FLOOR, RANKS, Status, SupportCell

_MARKS = {
    (True, Status.AS_DOCUMENTED): "✓",
    (False, Status.AS_DOCUMENTED): "·",
    (True, Status.REJECTED): "✗",
    (False, Status.ACCEPTED): "+",
    (True, Status.NOT_RUN): "?",
    (False, Status.NOT_RUN): "?",
}
LEGEND = (
    "✓ documented and accepted, · undocumented and rejected: both as documented. "
    "✗ documented, rejected. + undocumented, accepted. ? not run."
)


def support_summary(tables: Tables) -> Iterator[str]:
    """Yield the section of the report: a line a target, operator and tensor, then every cell that is not as
    documented."""
    support = tables.tensor_support
    if not support.targets:
        return
    yield "## DirectML's tensor support, documented and executed"
    yield ""
    yield FLOOR
    yield ""
    cells = {target: support.cells(target) for target in support.targets}
    heads = ["operator", "tensor", "target", "level", *(status.value for status in Status)]
    yield from table(heads, _counts(tables, cells), right=range(4, 8))
    yield from _disagreements(cells)


def _counts(tables: Tables, cells: dict[str, list[SupportCell]]) -> Iterator[list[str]]:
    kinds = dict.fromkeys((cell.key.operator, cell.key.tensor) for found in cells.values() for cell in found)
    for operator, tensor in kinds:
        for target, found in cells.items():
            mine = [
                cell.status for cell in found if (cell.key.operator, cell.key.tensor) == (operator, tensor)
            ]
            level = escape(tables.tensor_support.level(target))
            yield [
                escape(operator),
                tensor,
                escape(target),
                level,
                *(f"{mine.count(status):,}" for status in Status),
            ]


def _disagreements(cells: dict[str, list[SupportCell]]) -> Iterator[str]:
    rows = [
        [
            escape(target),
            escape(f"{cell.key.operator} {cell.key.tensor}"),
            f"{cell.key.dtype} × {cell.key.rank}",
            cell.status.value,
            escape(_did(cell.result)),
            code(line(cell.result.case, 400)),
        ]
        for target, found in cells.items()
        for cell in found
        if cell.status in (Status.REJECTED, Status.ACCEPTED) and cell.result is not None
    ]
    if rows:
        yield from table(
            ["target", "tensor", "data type × DimensionCount", "status", "what happened", "case"], rows
        )


def _did(result: Result | None) -> str:
    if result is None:
        return "–"
    error = f": {result.error.class_}" if result.error else ""
    return f"{result.outcome.value}{error}"


def support_grids(tables: Tables) -> Iterator[str]:
    """Yield a grid of data type × DimensionCount for each operator, tensor and target."""
    for target in tables.tensor_support.targets:
        found = {cell.key: cell for cell in tables.tensor_support.cells(target)}
        for operator, tensor in dict.fromkeys((key.operator, key.tensor) for key in found):
            yield f"### {escape(operator)} {tensor} on {escape(target)}"
            yield ""
            rows = []
            for dtype in DATA_TYPES:
                mine = [found[operator, tensor, dtype, rank] for rank in RANKS]  # type: ignore[index] # a Key is a tuple of these
                rows.append([dtype, *(_MARKS[cell.documented, cell.status] for cell in mine)])
            yield from table(["data type", *map(str, RANKS)], rows)
    yield LEGEND
    yield ""


def cross_check_section(tables: Tables) -> Iterator[str]:
    """Yield the section on the cross-check; nothing where a run has not both targets."""
    cross_check = tables.cross_check
    if cross_check is None or cross_check.pair is None or not cross_check.compared:
        return
    provider, api = cross_check.pair
    groups = cross_check.groups()
    total = sum(group.number for group in groups if group.agreement.points is Suspect.NOWHERE)
    yield "## Cross-check: ONNX Runtime's provider and DirectML's own API"
    yield ""
    yield (
        f"{count(cross_check.compared, 'case')} ran on {escape(provider)} and on {escape(api)}, on one DirectML.dll; both are right in "
        f"{total:,}. A difference points at ONNX Runtime's lowering, an agreement against the oracle at DirectML or its driver."
    )
    yield ""
    rows = (
        [
            f"{group.number:,}",
            group.agreement.points.value,
            escape(group.agreement.why),
            escape(group.operator),
            group.validity.value,
            group.provider.value,
            group.api.value,
            code(line(group.example, 400)),
        ]
        for group in groups
        if group.agreement.points is not Suspect.NOWHERE
    )
    heads = [
        "cases",
        "points at",
        "why",
        "operator",
        "validity",
        escape(provider),
        escape(api),
        "for instance",
    ]
    yield from table(heads, rows, right=(0,))


def rules_section(tested: Iterable[Tested], target: str) -> Iterator[str]:
    """Yield both sides of every rule on a target."""
    yield f"## Both sides of every sentence, on {escape(target)}"
    yield ""
    rows = (
        [
            escape(each.rule.document),
            escape(f"{each.rule.section}: {each.rule.sentence}"),
            escape(_side(each.holds, each.rule.without)),
            escape(_side(each.breaks, each.rule.without)),
            *([code(line(example, 400))] if (example := _example(each)) else ["–"]),
        ]
        for each in tested
    )
    yield from table(
        ["document", "sentence", "calls that keep it", "calls that break it", "for instance"], rows
    )


def did_text(did: ObservedResult) -> str:
    """Write what was done: `rejected at load: CreateOperator E_INVALIDARG`."""
    at = f" at {did.stage}: {did.error}" if did.error else ""
    return f"{did.outcome.value}{at}"


def _side(side: Side, without: str) -> str:
    if not side.counts:
        return f"– ({without})" if without else "not run"
    counts: Counter[str] = Counter()
    for did, number in side.counts.items():
        counts[did_text(did)] += number
    return "; ".join(f"{number:,} {text}" for text, number in counts.items())


def _example(each: Tested) -> str:
    side = each.breaks if each.breaks.examples else each.holds
    return next(iter(side.examples.values()), "")


def render_directml(run: Path) -> str:
    """Render everything that a run shows of DirectML's own API as Markdown. Errors: UsageError."""
    reader = RunReader(run)
    tables = Tables(reader.header)
    by_target: dict[str, Rules] = {}
    for result in reader:
        tables.add(result)
        if reader.header.targets[result.target].provider == DIRECTML:
            by_target.setdefault(result.target, Rules()).add(result)
    tables.finish(reader.end, truncated=reader.truncated)
    lines = ["# DirectML's own API, documented and executed", ""]
    for target, info in reader.header.targets.items():
        lines.append(
            f"- **{escape(target)}**: {'; '.join(f'{name} {escape(value)}' for name, value in target_facts(info))}"
        )
    lines.append("")
    if not by_target:
        lines += ["No target of this run is DirectML's own API: `harness run -t directml`.", ""]
    lines += support_summary(tables)
    if by_target:
        lines += support_grids(tables)
    for target, collected in by_target.items():
        lines += rules_section(collected.tested(), target)
    lines += cross_check_section(tables)
    return "\n".join(lines).rstrip() + "\n"


def render_cells(run: Path) -> str:
    """Render every cell of the documents' tables as CSV, with the case behind it. Errors: UsageError."""
    reader = RunReader(run)
    tables = Tables(reader.header, across_targets=False)
    for result in reader:
        tables.add(result)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(
        [
            "target",
            "level",
            "operator",
            "tensor",
            "data_type",
            "dimension_count",
            "documented_since",
            "status",
            "outcome",
            "error",
            "case",
        ]
    )
    for target in tables.tensor_support.targets:
        for cell in tables.tensor_support.cells(target):
            behind = cell.result
            error = behind.error.class_ if behind is not None and behind.error is not None else ""
            outcome, case = ("", "") if behind is None else (behind.outcome.value, behind.case)
            level = tables.tensor_support.level(target)
            rows.writerow(
                [target, level, *cell.key, cell.since or "", cell.status.value, outcome, error, case]
            )
    return text.getvalue()
