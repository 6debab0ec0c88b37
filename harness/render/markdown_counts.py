"""Sections of the Markdown report that count: levels, operators, other validities, support, matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.model.facets import written
from harness.render.markup import escape, table
from harness.render.text import folded_types
from harness.results.level_table import (
    MARKS,
    LevelRow,
    TargetLevels,
    counts,
    legend,
    levels,
    rate,
    status,
    validity_table,
)
from harness.results.overview import many
from harness.results.report import Report
from harness.results.summary import count
from harness.results.tables import Tables
from harness.results.tally import Tally

OTHER_TYPES = ("other types",)
"""The head of the column of further inputs' element types, which only stands where one has another type than
the first."""


def _cell(tally: Tally) -> str:
    state = status(tally)
    return rate(tally) + ("" if state == "none" else f" {MARKS[state]}")


def operators_section(report: Report) -> Iterator[str]:
    tables = report.tables
    rows = report.overview
    if not rows:
        return
    yield "## Operators"
    yield ""
    yield (
        "Correct / selected cases of every validity; operators with unexpected results come first. Types × ranks: of the first input, "
        "run / selected."
    )
    yield ""
    cells = (
        [
            escape(row.operator),
            *(_cell(tally) + _failing(tally) for tally in row.by_target.values()),
            f"{row.kinds[0]:,} / {row.kinds[1]:,}",
        ]
        for row in rows
    )
    shown = table(
        ["operator", *map(escape, tables.targets), "types × ranks"],
        cells,
        right=range(1, 2 + len(tables.targets)),
    )
    yield from _folded(tables, "Cases", shown)


def _failing(tally: Tally) -> str:
    return f" {tally.unexpected:,} unexpected" if tally.unexpected else ""


def levels_section(report: Report) -> Iterator[str]:
    tables = report.tables
    columns = levels(tables)
    yield "## By DirectML feature level"
    yield ""
    yield (
        "Correct / selected valid cases, by the feature level that first allows them; under *device's level* all that it allows, "
        "or that any published level does where the device reports none."
    )
    yield ""
    if len(tables.operators) > 1:
        yield from _level_sums(report.target_levels, columns)
    shown = (tally for row in report.levels for tally in (*row.by_level.values(), row.total, row.allowed))
    yield legend(shown)
    yield ""
    if many(tables):
        yield f"The levels of each of the {len(tables.operators):,} operators are in report.html, and in `harness report RUN --format csv`."
        yield ""
        return
    rows = (
        [
            escape(row.operator),
            escape(row.target),
            *(_cell(row.by_level[level]) for level in columns),
            _cell(row.total),
            _device(row),
            escape(counts(row.total)),
        ]
        for row in report.levels
    )
    heads = [
        "operator",
        "target",
        *map(escape, columns),
        "all",
        "device's level",
        "readings other than correct",
    ]
    yield from table(heads, rows, right=range(2, 4 + len(columns)))


def _level_sums(rows: list[TargetLevels], columns: list[str]) -> Iterator[str]:
    """All operators together, upright where there are fewer targets than levels."""
    lines = [(level, [_cell(row.by_level[level]) for row in rows]) for level in columns]
    lines = [
        ("level", [escape(row.target) for row in rows]),
        *lines,
        ("all", [_cell(row.total) for row in rows]),
    ]
    lines.append(("device's level", [_device(row) for row in rows]))
    grid = [
        [head if head in ("level", "all", "device's level") else escape(head), *cells]
        for head, cells in lines
    ]
    if len(rows) >= len(columns):
        grid = [list(line) for line in zip(*grid, strict=True)]
    yield from table(grid[0], grid[1:], right=range(1, len(grid[0])))


def _device(row: LevelRow | TargetLevels) -> str:
    return _cell(row.allowed) + (f" ({escape(row.device_level)})" if row.device_level else "")


def _folded(tables: Tables, what: str, lines: Iterable[str]) -> Iterator[str]:
    """Fold a table with rows for each operator where there are many."""
    if not many(tables):
        yield from lines
        return
    yield f"<details><summary>{what} of all {len(tables.operators):,} operators</summary>"
    yield ""
    yield from lines
    yield "</details>"
    yield ""


def validities_section(tables: Tables) -> Iterator[str]:
    rows = validity_table(tables)
    if not rows:
        return
    yield "## Invalid and unspecified cases"
    yield ""
    yield (
        "Correct / selected: an invalid case is correct when the target refuses it. An unspecified case is not judged, unless it ends "
        "the process, hangs or reads memory that it does not own."
    )
    yield ""
    cells = (
        [
            escape(row.operator),
            escape(row.target),
            row.validity.value,
            _cell(row.tally),
            escape(counts(row.tally)),
        ]
        for row in rows
    )
    rows_of = table(
        ["operator", "target", "validity", "correct / selected", "readings other than correct"],
        cells,
        right=(3,),
    )
    yield from _folded(tables, "Invalid and unspecified cases", rows_of)


def support_section(report: Report) -> Iterator[str]:
    rows = report.support
    found = [row for row in rows if row.disagreements]
    yield f"## Documented, registered and measured support: disagreement in {len(found):,} of {count(len(rows), 'group')}"
    yield ""
    if not found:
        return
    several = any(row.types for row in found)
    cells = (
        [
            escape(f"{row.operator} {', '.join(map(str, row.opsets))}"),
            escape(row.target),
            escape(", ".join(folded_types(row.dtypes))),
            *([escape(written(row.types)) or "–"] if several else []),
            escape(", ".join(row.documented)),
            row.registered,
            f"{row.measured} ({rate(row.tally)} correct)",
            escape("; ".join(row.disagreements)),
        ]
        for row in found
    )
    yield from table(
        [
            "operator, opsets",
            "target",
            "dtypes",
            *OTHER_TYPES[:several],
            "documented",
            "registered",
            "measured",
            "disagreement",
        ],
        cells,
    )


def matrices_section(report: Report) -> Iterator[str]:
    for each in () if many(report.tables) else report.matrices:
        yield f"<details><summary>{escape(each.operator)} on {escape(each.target)}: {escape(each.title)}</summary>"
        yield ""
        rows = (
            [
                escape(each.label(row)),
                *(
                    _cell(each.cells[row, rank].tally) if (row, rank) in each.cells else "–"
                    for rank in each.ranks
                ),
            ]
            for row in each.rows
        )
        ranks = [str(rank) if rank >= 0 else "?" for rank in each.ranks]
        yield from table(
            [escape(", ".join(each.names)) or "dtype", *ranks], rows, right=range(1, 1 + len(ranks))
        )
        yield "</details>"
        yield ""
