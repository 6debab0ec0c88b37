"""The matrices of an operator on a target: element type × rank, and the element types of its other inputs ×
rank where these differ."""

from __future__ import annotations

from typing import Literal, NamedTuple

from harness.model.case import Validity
from harness.model.facets import dtype_key
from harness.model.reference.feature_levels import level_key
from harness.results.tables import Tables
from harness.results.tally import Tally

Rows = Literal["dtype", "types"]


class MatrixCell(NamedTuple):
    """The valid cases of one element type and rank, and the levels that first allow them, lowest first."""

    tally: Tally
    levels: tuple[str, ...]


class Matrix(NamedTuple):
    """Rows are element types, columns ranks of the first input; a missing cell has no case."""

    operator: str
    target: str
    rows_are: Rows
    rows: tuple[str, ...]
    ranks: tuple[int, ...]
    cells: dict[tuple[str, int], MatrixCell]

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs whose element types the rows are; () for the first input."""
        if self.rows_are == "types":
            return tuple(dict.fromkeys(part.partition("=")[0] for row in self.rows for part in row.split()))
        return ()

    @property
    def title(self) -> str:
        """Name rows and columns."""
        return f"{', '.join(self.names)} element type × rank".strip() if self.names else "element type × rank"

    def label(self, row: str) -> str:
        """Write a row's head: the element type, with its input where there are several."""
        return row.partition("=")[2] if len(self.names) == 1 else row


def _cells(tables: Tables, rows_are: Rows) -> dict[tuple[str, str], dict[tuple[str, int], MatrixCell]]:
    """Sum valid cases over every opset, by operator and target."""
    found: dict[tuple[str, str], dict[tuple[str, int], tuple[Tally, set[str]]]] = {}
    cells = tables.by("operator", "target", rows_are, "rank", "level", validity=Validity.VALID)
    for (operator, target, row, rank, level), tally in cells.items():
        if row:
            total, levels = found.setdefault((operator, target), {}).setdefault((row, rank), (Tally(), set()))
            total.include(tally)
            levels.add(level)
    return {
        of: {
            place: MatrixCell(tally, tuple(sorted(levels, key=level_key)))
            for place, (tally, levels) in places.items()
        }
        for of, places in found.items()
    }


def _matrix(operator: str, target: str, rows_are: Rows, cells: dict[tuple[str, int], MatrixCell]) -> Matrix:
    rows, ranks = {row for row, _ in cells}, {rank for _, rank in cells}
    return Matrix(operator, target, rows_are, tuple(sorted(rows, key=_row_key)), tuple(sorted(ranks)), cells)


def _row_key(row: str) -> list[tuple[int, str]]:
    return [dtype_key(part.rpartition("=")[2]) for part in row.split()]


def matrices(tables: Tables) -> list[Matrix]:
    """Return every matrix that has a cell, by operator, then kind of rows, then target; none of a target on
    which nothing ran.

    Types of further inputs have one only where there are several of them: one row would repeat what the first
    matrix says.
    """
    ran = [target for target in tables.targets if tables.tally(target=target).run]
    kinds: tuple[Rows, ...] = ("dtype", "types")
    by_kind = {kind: _cells(tables, kind) for kind in kinds}
    rows: dict[str, set[str]] = {}
    for (operator, _), cells in by_kind["types"].items():
        rows.setdefault(operator, set()).update(row for row, _ in cells)
    return [
        _matrix(operator, target, kind, found)
        for operator in tables.operators
        for kind in kinds
        if kind == "dtype" or len(rows.get(operator, ())) > 1
        for target in ran
        if (found := by_kind[kind].get((operator, target)))
    ]
