"""Sections of the report that count: levels, operators, other validities, support, matrices."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.facets import written
from harness.render.document import Block, Paragraph, Row, Section, Span, Table
from harness.render.text import folded_types
from harness.results.level_table import (
    MARKS,
    LevelRow,
    counts,
    legend,
    levels,
    many,
    rate,
    status,
    validity_table,
)
from harness.results.report import Report
from harness.results.summary import count
from harness.results.tables import Tables
from harness.results.tally import Tally

OTHER_TYPES = ("other types",)
"""The head of the column of further inputs' element types, which only stands where one has another type than
the first."""

ABOUT_KERNELS = (
    "Operators with a kernel for the element type of their first input, + those that ran as the function that ONNX gives / all with valid "
    "cases of it."
)


def _cell(tally: Tally) -> str:
    state = status(tally)
    return rate(tally) + ("" if state == "none" else f" {MARKS[state]}")


def _title(tables: Tables, title: str) -> str:
    """Title a section that is folded where a run has many operators."""
    return f"{title}: all {len(tables.operators):,} operators" if many(tables) else title


def operator_sections(report: Report) -> Iterator[Section]:
    """Yield a row for each operator."""
    tables, rows = report.tables, report.overview
    about = (
        "Correct / selected cases of every validity; operators with unexpected results come first, then those with the most wrong ones. "
        "Types × ranks: of the first input, run / selected."
    )
    cells = [
        [
            row.operator,
            *(_cell(tally) + _failing(tally) for tally in row.by_target.values()),
            f"{row.kinds[0]:,} / {row.kinds[1]:,}",
        ]
        for row in rows
    ]
    heads = ["operator", *tables.targets, "types × ranks"]
    blocks: list[Block] = [Paragraph(Span(about)), Table(heads, cells, range(1, len(heads)))]
    if rows:
        yield Section("operators", _title(tables, "Operators"), blocks, folded=many(tables))


def _failing(tally: Tally) -> str:
    return f" {tally.unexpected:,} unexpected" if tally.unexpected else ""


def level_sections(report: Report) -> Iterator[Section]:
    """Yield valid cases by the feature level that first allows them."""
    tables = report.tables
    columns = levels(tables)
    about = (
        "Correct / selected valid cases, by the feature level that first allows them; under device's level all that it allows, "
        "or that any published level does where the device reports none."
    )
    shown = (tally for row in report.levels for tally in (*row.by_level.values(), row.total, row.allowed))
    sums = [_level_sums(report.target_levels, columns)] if len(tables.operators) > 1 else []
    if many(tables):
        more = f"The levels of each of the {len(tables.operators):,} operators are in report.html, and in harness report RUN --format csv."
        last: Paragraph | Table = Paragraph(Span(more))
    else:
        rows = [
            [
                row.operator,
                row.target,
                *(_cell(row.by_level[level]) for level in columns),
                _cell(row.total),
                _device(row),
                counts(row.total),
            ]
            for row in report.levels
        ]
        heads = ["operator", "target", *columns, "all", "device's level", "readings other than correct"]
        last = Table(heads, rows, range(2, 4 + len(columns)))
    blocks = [Paragraph(Span(about)), *sums, Paragraph(Span(legend(shown))), last]
    yield Section("levels", "By DirectML feature level", blocks)


def _level_sums(rows: list[LevelRow], columns: list[str]) -> Table:
    """All operators together, upright where there are fewer targets than levels."""
    grid: list[list[str]] = [["level", *(row.target for row in rows)]]
    grid += [[level, *(_cell(row.by_level[level]) for row in rows)] for level in columns]
    grid.append(["all", *(_cell(row.total) for row in rows)])
    grid.append(["device's level", *map(_device, rows)])
    if len(rows) >= len(columns):
        grid = [list(line) for line in zip(*grid, strict=True)]
    return Table(grid[0], grid[1:], range(1, len(grid[0])))


def _device(row: LevelRow) -> str:
    return _cell(row.allowed) + (f" ({row.device_level})" if row.device_level else "")


def validity_sections(tables: Tables) -> Iterator[Section]:
    """Yield the cases that are not valid."""
    about = (
        "Correct / selected: an invalid case is correct when the target refuses it. An unspecified case is not judged, unless it ends "
        "the process, hangs or reads memory that it does not own."
    )
    cells = [
        (row.operator, row.target, row.validity.value, _cell(row.tally), counts(row.tally))
        for row in validity_table(tables)
    ]
    heads = ("operator", "target", "validity", "correct / selected", "readings other than correct")
    if cells:
        title = _title(tables, "Invalid and unspecified cases")
        blocks: list[Block] = [Paragraph(Span(about)), Table(heads, cells, (3,))]
        yield Section("validities", title, blocks, folded=many(tables))


def support_sections(report: Report) -> Iterator[Section]:
    """Yield for how many operators each element type has a kernel, and where documented, registered and measured
    support disagree."""
    if kernels := report.kernels:
        targets = report.tables.targets
        counted = [[row.dtype, *(row.on(target) for target in targets)] for row in kernels]
        table = Table(["element type", *targets], counted, range(1, 1 + len(targets)))
        yield Section("kernels", "Element types with a kernel", [Paragraph(Span(ABOUT_KERNELS)), table])
    found = [row for row in report.support if row.disagreements]
    several = any(row.types for row in found)
    cells: list[Row] = [
        [
            f"{row.operator} {', '.join(map(str, row.opsets))}",
            row.target,
            ", ".join(folded_types(row.dtypes)),
            *[written(row.types)][:several],
            ", ".join(row.documented),
            row.registered,
            f"{row.measured} ({rate(row.tally)} correct)",
            "; ".join(row.disagreements),
        ]
        for row in found
    ]
    heads = ["operator, opsets", "target", "dtypes", *OTHER_TYPES[:several]]
    table = Table([*heads, "documented", "registered", "measured", "disagreement"], cells)
    title = (
        "Documented, registered and measured support: "
        f"disagreement in {len(found):,} of {count(len(report.support), 'group')}"
    )
    yield Section("support", title, [table] if found else [], folded=many(report.tables))


def matrix_sections(report: Report) -> Iterator[Section]:
    """Yield element type × rank of each operator and target."""
    for each in () if many(report.tables) else report.matrices:
        rows = [
            [
                each.label(row),
                *(
                    _cell(each.cells[row, rank].tally) if (row, rank) in each.cells else "–"
                    for rank in each.ranks
                ),
            ]
            for row in each.rows
        ]
        ranks = [str(rank) if rank >= 0 else "?" for rank in each.ranks]
        table = Table([", ".join(each.names) or "dtype", *ranks], rows, range(1, 1 + len(ranks)))
        yield Section("matrices", f"{each.operator} on {each.target}: {each.title}", [table], folded=True)
