from __future__ import annotations

from harness.results.matrix import matrices
from tests import synthetic
from tests.synthetic import ABSENT, CPU


def test_rows_and_ranks_are_in_order_and_counts_add_up() -> None:
    tables = synthetic.tables(3000, {"cpu": CPU, "dml": ABSENT})
    found = next(each for each in matrices(tables) if each.operator == "GatherElements")
    assert (found.target, found.rows_are) == ("cpu", "dtype")
    assert found.rows[:3] == ("bool", "int8", "int16")
    assert found.rows[-1] == "string"
    assert found.ranks == tuple(range(1, 10))
    assert found.cells["float32", 4].levels == ("2_1", "3_0")
    assert found.cells["float64", 4].levels == ("4_1",)
    assert (
        sum(cell.tally.selected for cell in found.cells.values())
        == tables.tally(operator="GatherElements", target="cpu").selected
    )


def test_no_matrix_of_a_target_on_which_nothing_ran() -> None:
    found = matrices(synthetic.tables(3000, {"cpu": CPU, "dml": ABSENT}))
    assert {each.target for each in found} == {"cpu"}
    assert [(each.operator, each.rows_are) for each in found] == [
        ("GatherElements", "dtype"), ("GatherElements", "types"), ("GatherND", "dtype"), ("Round", "dtype"),
    ]  # fmt: skip
    types = found[1]
    assert (types.title, types.rows, [types.label(row) for row in types.rows]) == (
        "indices element type × rank", ("indices=int32", "indices=int64"), ["int32", "int64"],
    )  # fmt: skip
    assert found[0].title == "element type × rank"
