"""The matrices of an operator on a target: element type × rank, and index element type × rank."""

from __future__ import annotations

from typing import Literal, NamedTuple

from harness.facets import dtype_key
from harness.published import level_key
from harness.records import Validity
from harness.tables import Tables, Tally


class MatrixCell(NamedTuple):
    """The valid cases of one element type and rank, and the levels that first allow them, lowest first."""

    tally: Tally
    levels: tuple[str, ...]


class Matrix(NamedTuple):
    """Rows are element types, columns ranks; a missing cell has no case."""

    operator: str
    target: str
    rows_are: Literal["dtype", "index_dtype"]
    rows: tuple[str, ...]
    ranks: tuple[int, ...]
    cells: dict[tuple[str, int], MatrixCell]


def matrix(tables: Tables, operator: str, target: str, rows_are: Literal["dtype", "index_dtype"]) -> Matrix:
    """Sum an operator's valid cases on a target over every opset."""
    tallies = tables.by(rows_are, "rank", operator=operator, target=target, validity=Validity.VALID)
    levels: dict[tuple[object, ...], set[str]] = {}
    for dtype, rank, level in tables.by(rows_are, "rank", "level", operator=operator, target=target, validity=Validity.VALID):
        levels.setdefault((dtype, rank), set()).add(str(level))
    cells = {
        (str(dtype), int(str(rank))): MatrixCell(tally, tuple(sorted(levels[dtype, rank], key=level_key)))
        for (dtype, rank), tally in tallies.items()
        if dtype
    }
    return Matrix(
        operator,
        target,
        rows_are,
        tuple(sorted({dtype for dtype, _ in cells}, key=dtype_key)),
        tuple(sorted({rank for _, rank in cells})),
        cells,
    )


def matrices(tables: Tables) -> list[Matrix]:
    """Return every matrix that has a cell, by operator, then kind of rows, then target; none of a target on which nothing ran."""
    kinds: tuple[Literal["dtype", "index_dtype"], ...] = ("dtype", "index_dtype")
    ran = [target for target in tables.targets if tables.tally(target=target).run]
    found = (matrix(tables, operator, target, kind) for operator in tables.operators for kind in kinds for target in ran)
    return [each for each in found if each.cells]
