"""Mistakes of splitting the work of one call into blocks, as threads share it; each is a range of rows,
slices or elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil

import numpy as np

from harness.model.dtypes import Array
from tests.mutants import Call, Mutant
from tests.mutants.moving import accepts, altered, other

Rows = Callable[[Call], int]
"""How many parts of the output the blocks are made of."""
BLOCKS = (2, 4)


def _by_row(
    rows: Rows, blocks: int, from_elements: int, change: Callable[[Array, Array, int], None]
) -> Callable[[Array, Call], Array]:
    """Change a copy of the output, seen as rows, where it has enough of them; `change` gets it, the right
    one, and a block's rows."""

    def alter(out: Array, call: Call) -> Array:
        count = rows(call) if out.size else 0
        if count < blocks or out.size < from_elements:
            return out
        right = out.reshape(count, -1)
        made = right.copy()
        change(made, right, ceil(count / blocks))
        return np.ascontiguousarray(made).reshape(out.shape)

    return alter


def of_blocks(operator: str, rows: Rows, from_elements: int) -> Iterator[Mutant]:
    """Rows between or after the blocks are lost, or a block is made with another's offsets, in calls of so
    many elements."""
    for blocks in BLOCKS:

        def lost(
            keep: Callable[[int, int, int], np.ndarray], n: int = blocks
        ) -> Callable[[Array, Call], Array]:
            def alter(out: Array, call: Call) -> Array:
                def change(made: Array, right: Array, size: int) -> None:
                    gone = keep(len(made), size, n)
                    if gone.size:
                        made[gone] = other(right[gone].reshape(-1), call.inputs[0].dtype).reshape(
                            right[gone].shape
                        )

                return _by_row(rows, n, from_elements, change)(out, call)

            return alter

        def name(what: str, n: int = blocks) -> str:
            return f"{n} blocks from {from_elements} elements: {what}"

        def first_again(made: Array, right: Array, size: int) -> None:
            for start in range(size, len(made), size):
                made[start : start + size] = right[: len(made[start : start + size])]

        def one_late(made: Array, right: Array, size: int) -> None:
            for start in range(size, len(made), size):
                made[start : start + size] = right[start - 1 : start - 1 + len(made[start : start + size])]

        def first_row_again(made: Array, right: Array, size: int) -> None:
            for start in range(size, len(made), size):
                made[start] = right[0]

        yield altered(
            name("the last row of each is lost"),
            operator,
            lost(lambda count, size, _: np.arange(size - 1, count, size)),
        )
        yield altered(
            name("the first row of each but one is lost"),
            operator,
            lost(lambda count, size, _: np.arange(size, count, size)),
        )
        yield altered(
            name("rows that do not fill all are lost"),
            operator,
            lost(lambda count, _, n: np.arange(count // n * n, count)),
        )
        yield altered(
            name("the last is lost"), operator, lost(lambda count, size, n: np.arange(size * (n - 1), count))
        )
        yield altered(
            name("each has the first one's offsets"),
            operator,
            _by_row(rows, blocks, from_elements, first_again),
        )
        yield altered(
            name("each begins a row early"), operator, _by_row(rows, blocks, from_elements, one_late)
        )
        yield altered(
            name("each begins with the first row"),
            operator,
            _by_row(rows, blocks, from_elements, first_row_again),
        )


def of_late_checks(
    operator: str, outside: Callable[[Call], Array | None], from_elements: int
) -> Iterator[Mutant]:
    """An illegal index in a later block is no error, as that of another thread gets lost; `outside` marks the
    illegal ones by row."""
    for blocks in BLOCKS:

        def late(call: Call, n: int = blocks) -> bool:
            found = outside(call)
            if found is None or found.size < from_elements or len(found) < n:
                return False
            return not found[: ceil(len(found) / n)].any() and bool(found.any())

        yield accepts(
            operator,
            f"an index outside in any of {blocks} blocks but the first, from {from_elements} indices",
            late,
            ("dml",),
        )
