"""Portions: every item in exactly one of them, neighbours together, and numbers that processes share."""

from __future__ import annotations

import os
import sys
from itertools import chain

import pytest

from harness.model.shares import WHOLE, LocalNumbers, Share, SharedNumbers


def test_without_others_everything() -> None:
    assert list(WHOLE.of(range(1000))) == list(range(1000))


@pytest.mark.parametrize("lengths", [(1000,), (10, 0, 300, 500), (64, 64, 1)])
def test_every_item_is_taken_once(lengths: tuple[int, ...]) -> None:
    """Two shares that take turns, over several sequences one after the other."""
    sequences = []
    for number, length in enumerate(lengths):
        sequences.append([(number, n) for n in range(length)])
    blocks = LocalNumbers(1)
    walks = [iter(list_of(Share(blocks), sequences)) for _ in range(2)]
    taken: list[list[tuple[int, int]]] = [[], []]
    open_walks = [0, 1]
    while open_walks:
        for number in list(open_walks):
            item = next(walks[number], None)
            if item is None:
                open_walks.remove(number)
            else:
                taken[number].append(item)
    assert sorted(chain(*taken)) == sorted(chain(*sequences))
    if sum(lengths) > 128:
        assert all(taken)
    for mine in taken:
        assert mine == sorted(mine)


def list_of(share: Share, sequences: list[list[tuple[int, int]]]) -> chain[tuple[int, int]]:
    return chain.from_iterable(share.of(sequence) for sequence in sequences)


def test_neighbours_stay_together() -> None:
    blocks = LocalNumbers(1)
    first, second = Share(blocks).of(range(640)), Share(blocks).of(range(640))
    assert [next(first) for _ in range(64)] == list(range(64))
    assert [next(second) for _ in range(64)] == list(range(64, 128))
    assert [next(second) for _ in range(64)] == list(range(128, 192))
    assert next(first) == 192


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_processes_share_numbers() -> None:
    numbers = SharedNumbers(2)
    children = []
    for _ in range(3):
        pid = os.fork()
        if not pid:
            for _ in range(2000):
                a, b = numbers.take()
                numbers.put(a + 1, b + 2)
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    assert numbers.take() == (6000, 12000)
    numbers.close()
