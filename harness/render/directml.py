"""Renders the results on DirectML's own API: tensor support, both sides of the documents' rules, and the
cross-check with ONNX Runtime's provider."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.model.target_info import DIRECTML
from harness.render.csv_tables import csv_line
from harness.render.document import Block, Document, Paragraph, Row, Section, Span, Table, run_table
from harness.render.document_markdown import write_markdown
from harness.results.cross_check import Suspect
from harness.results.requirements import Rules, Side, Tested
from harness.results.runfile import RunReader
from harness.results.summary import count
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
_UNLIMITED = 1 << 30
"""Bytes of a page that no job summary takes in."""
LEGEND = (
    "✓ documented and accepted, · undocumented and rejected: both as documented. "
    "✗ documented, rejected. + undocumented, accepted. ? not run."
)


def support_summary(tables: Tables) -> Iterator[Section]:
    """Yield the section of the report: a line a target, operator and tensor, then every cell that is not as
    documented."""
    support = tables.tensor_support
    if not support.targets:
        return
    cells = {target: support.cells(target) for target in support.targets}
    heads = ("operator", "tensor", "target", "level", *(status.value for status in Status))
    blocks: list[Block] = [
        Paragraph(Span(FLOOR)),
        Table(heads, list(_counts(tables, cells)), range(4, 8)),
        *_disagreements(cells),
    ]
    yield Section("support", "DirectML's tensor support, documented and executed", blocks)


def _counts(tables: Tables, cells: dict[str, list[SupportCell]]) -> Iterator[Row]:
    kinds = dict.fromkeys((cell.key.operator, cell.key.tensor) for found in cells.values() for cell in found)
    for operator, tensor in kinds:
        for target, found in cells.items():
            mine = [
                cell.status for cell in found if (cell.key.operator, cell.key.tensor) == (operator, tensor)
            ]
            level = tables.tensor_support.level(target)
            yield (operator, tensor, target, level, *(f"{mine.count(status):,}" for status in Status))


def _disagreements(cells: dict[str, list[SupportCell]]) -> Iterator[Table]:
    rows: list[Row] = [
        (
            target,
            f"{cell.key.operator} {cell.key.tensor}",
            f"{cell.key.dtype} × {cell.key.rank}",
            cell.status.value,
            cell.result.outcome.value + (f": {cell.result.error.class_}" if cell.result.error else ""),
            Span(cell.result.case, code=True),
        )
        for target, found in cells.items()
        for cell in found
        if cell.status in (Status.REJECTED, Status.ACCEPTED) and cell.result is not None
    ]
    if rows:
        heads = ("target", "tensor", "data type × DimensionCount", "status", "what happened", "case")
        yield Table(heads, rows)


def support_grids(tables: Tables) -> Iterator[Section]:
    """Yield a grid of data type × DimensionCount for each operator, tensor and target."""
    for target in tables.tensor_support.targets:
        found = {cell.key: cell for cell in tables.tensor_support.cells(target)}
        for operator, tensor in dict.fromkeys((key.operator, key.tensor) for key in found):
            rows: list[Row] = []
            for dtype in DATA_TYPES:
                mine = [found[operator, tensor, dtype, rank] for rank in RANKS]  # type: ignore[index] # a Key is a tuple of these
                rows.append((dtype, *(_MARKS[cell.documented, cell.status] for cell in mine)))
            table = Table(("data type", *map(str, RANKS)), rows)
            yield Section("cells", f"{operator} {tensor} on {target}", [table])
    yield Section("legend", "", [Paragraph(Span(LEGEND))])


def cross_check_sections(tables: Tables) -> Iterator[Section]:
    """Yield the section on the cross-check; nothing where a run has not both targets."""
    cross_check = tables.cross_check
    if cross_check is None or cross_check.pair is None or not cross_check.compared:
        return
    provider, api = cross_check.pair
    groups = cross_check.groups()
    total = sum(group.number for group in groups if group.agreement.points is Suspect.NOWHERE)
    about = (
        f"{count(cross_check.compared, 'case')} ran on {provider} and on {api}, on one DirectML.dll; both are right in "
        f"{total:,}. A difference points at ONNX Runtime's lowering, an agreement against the oracle at DirectML or its driver."
    )
    rows: list[Row] = [
        (
            f"{group.number:,}",
            group.agreement.points.value,
            group.agreement.why,
            group.operator,
            group.validity.value,
            group.provider.value,
            group.api.value,
            Span(group.example, code=True),
        )
        for group in groups
        if group.agreement.points is not Suspect.NOWHERE
    ]
    heads = ("cases", "points at", "why", "operator", "validity", provider, api, "for instance")
    blocks: list[Block] = [Paragraph(Span(about)), Table(heads, rows, (0,))]
    yield Section("cross-check", "Cross-check: ONNX Runtime's provider and DirectML's own API", blocks)


def _rules(tested: Iterable[Tested], target: str) -> Section:
    """Return both sides of every rule on a target."""
    rows: list[Row] = [
        (
            each.rule.document,
            f"{each.rule.section}: {each.rule.sentence}",
            _side(each.holds, each.rule.without),
            _side(each.breaks, each.rule.without),
            Span(_example(each), code=True),
        )
        for each in tested
    ]
    heads = ("document", "sentence", "calls that keep it", "calls that break it", "for instance")
    return Section("rules", f"Both sides of every sentence, on {target}", [Table(heads, rows)])


def _side(side: Side, without: str) -> str:
    """Count the outcomes of calls: `3 rejected at load: CreateOperator E_INVALIDARG`."""
    if not side.counts:
        return f"– ({without})" if without else "not run"
    counts: Counter[str] = Counter()
    for observed, number in side.counts.items():
        at = f" at {observed.stage}: {observed.error}" if observed.error else ""
        counts[f"{observed.outcome.value}{at}"] += number
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
    none = "No target of this run is DirectML's own API: harness run -t directml"
    sections = [*support_summary(tables), *(support_grids(tables) if by_target else ())]
    sections += [_rules(collected.tested(), target) for target, collected in by_target.items()]
    sections += cross_check_sections(tables)
    sections.append(Section("where", "What ran where", [run_table([("", reader.header)])]))
    title = "DirectML's own API, documented and executed"
    targets = count(len(by_target), "target calls it", "targets call it")
    return write_markdown(Document(title, targets if by_target else none, sections), limit=_UNLIMITED)


_CELL = (
    "target", "level", "operator", "tensor", "data_type", "dimension_count", "documented_since", "status", "outcome",
    "error", "case",
)  # fmt: skip


def render_cells(run: Path) -> Iterator[str]:
    """Yield every cell of the documents' tables as a line of CSV, with the case behind it. Errors: UsageError."""
    reader = RunReader(run)
    tables = Tables(reader.header, across_targets=False)
    for result in reader:
        tables.add(result)
    yield csv_line(_CELL)
    for target in tables.tensor_support.targets:
        level = tables.tensor_support.level(target)
        for cell in tables.tensor_support.cells(target):
            behind = cell.result
            error = behind.error.class_ if behind is not None and behind.error is not None else ""
            outcome, case = ("", "") if behind is None else (behind.outcome.value, behind.case)
            yield csv_line(
                [target, level, *cell.key, cell.since or "", cell.status.value, outcome, error, case]
            )
