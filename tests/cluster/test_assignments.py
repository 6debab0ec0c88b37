"""Blocks and nodes without any of both: what is handed out, handed out again and divided."""

from __future__ import annotations

import random

from harness.run.cluster.assignments import Assignments, PendingBlock


def pending(number: int, size: int = 3) -> PendingBlock:
    return PendingBlock(number, "", tuple(range(size)))


def assignments(number: int) -> Assignments:
    return Assignments(map(pending, range(number)), lambda block: block.positions or ())


def test_a_node_holds_two_blocks() -> None:
    blocks = assignments(5)
    taken = [blocks.next_for("a") for _ in range(3)]
    assert [each and each[1].number for each in taken] == [0, 1, None]
    assert blocks.waiting
    assert taken[0] is not None
    assert blocks.finished("a", taken[0][0]) == pending(0)
    assert blocks.finished("a", taken[0][0]) is None
    assert blocks.finished("b", taken[0][0]) is None


def test_only_the_block_that_ran_is_blamed() -> None:
    blocks = assignments(3)
    for _ in range(2):
        blocks.next_for("a")
    assert blocks.lost("a") == []
    found = blocks.next_for("b")
    assert found is not None
    assert (found[1].number, found[1].deaths) == (0, 1)
    assert blocks.next_for("b") is None, "a suspect shares its node with nothing"
    other = blocks.next_for("c")
    assert other is not None
    assert (other[1].number, other[1].deaths) == (1, 0)


def test_two_deaths_divide_a_block() -> None:
    blocks = assignments(1)
    for node in "ab":
        assert blocks.next_for(node) is not None
        assert blocks.lost(node) == []
    alone = [blocks.next_for(f"n{number}") for number in range(3)]
    assert [each and each[1].positions for each in alone] == [(0,), (1,), (2,)]
    assert blocks.next_for("another") is None
    assert blocks.lost("n1") == [], "it may have been chance"
    again = blocks.next_for("n3")
    assert again is not None
    assert again[1].positions == (1,)
    (bad,) = blocks.lost("n3")
    assert bad.positions == (1,)
    for node, found in (("n0", alone[0]), ("n2", alone[2])):
        assert found is not None
        blocks.finished(node, found[0])
    assert blocks.done


def test_a_busy_node_is_cleared_for_a_suspect() -> None:
    """Blocks that are left to be run do not keep it waiting to the end."""
    blocks = assignments(100)
    held = [blocks.next_for("b"), blocks.next_for("b")]
    blocks.next_for("a")
    blocks.lost("a")
    for each in held:
        assert each is not None
        assert blocks.next_for("b") is None
        blocks.finished("b", each[0])
    found = blocks.next_for("b")
    assert found is not None
    assert found[1].deaths == 1


def test_whatever_happens_every_case_ends_once() -> None:
    """Nodes die, give blocks back and finish, at random."""
    for seed in range(200):
        chance = random.Random(seed)
        blocks = assignments(20)
        ended: list[tuple[int, int]] = []
        held: dict[str, list[tuple[int, PendingBlock]]] = {f"n{number}": [] for number in range(3)}
        while True:
            for node, mine in held.items():
                while (found := blocks.next_for(node)) is not None:
                    mine.append(found)
            if blocks.done:
                break
            node = chance.choice([node for node, mine in held.items() if mine])
            what = chance.random()
            if what < 0.3:
                ended += [(block.number, p) for block in blocks.lost(node) for p in block.positions or ()]
                del held[node]
                held[f"{node}'"] = []
            elif what < 0.4:
                blocks.returned(node, held[node].pop(0)[0])
            else:
                ticket, block = held[node].pop(0)
                assert blocks.finished(node, ticket) == block
                ended += [(block.number, position) for position in block.positions or ()]
        assert sorted(ended) == [(number, position) for number in range(20) for position in range(3)]
