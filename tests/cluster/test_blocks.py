"""Blocks have every case once, in the order of the selection, and are the same wherever they are looked for."""

from __future__ import annotations

import pytest

from harness.model.errors import HarnessFault
from harness.model.query import parse_all
from harness.run.cluster.blocks import BlockWalk, blocks
from harness.run.cluster.coordinator import block_size
from harness.specs.expand import expand
from harness.specs.load import load_specs
from harness.specs.selection import Selection, Shard, select
from tests.running import ROUND


def selection(which: str) -> Selection:
    plan = expand(load_specs([ROUND]))
    queries = parse_all(["Round@22:sweep=rank"] if which == "query" else [])
    found = select(plan, queries, Shard(1, 3) if which == "shard" else None, pairwise=which == "pairwise")
    found.counted()
    return found


@pytest.mark.parametrize("which", ["all", "query", "shard", "pairwise"])
@pytest.mark.parametrize("size", [1, 7, 512])
def test_every_case_once(which: str, size: int) -> None:
    chosen = selection(which)
    for valid in (True, False):
        found = list(blocks(chosen, size, valid=valid))
        ids = [case.id for block in found for case in block.cases()]
        assert ids == [case.id for case in chosen.cases(valid=valid)]
        assert [block.number for block in found] == list(range(len(found)))
        assert all(block.size >= size for block in found[:-1])
        assert [len(block.cases()) for block in found] == [block.size for block in found]
        assert len({block.digest() for block in found}) == len(found)


@pytest.mark.parametrize("which", ["all", "query"])
def test_found_by_number(which: str) -> None:
    """In any order, by two who plan apart."""
    first, walk = selection(which), BlockWalk(selection(which), 20)
    known = {(b.valid, b.number): b for valid in (True, False) for b in blocks(first, 20, valid=valid)}
    for valid, number in (*known, *reversed(known)):
        block = walk.find(number, valid=valid)
        assert block.digest() == known[valid, number].digest()
        assert [case.id for case in block.cases()] == [case.id for case in known[valid, number].cases()]
    with pytest.raises(HarnessFault, match="has no block 100000"):
        walk.find(100_000, valid=True)


def test_small_runs_have_small_blocks() -> None:
    assert block_size(1_000_000, 4) == 512
    assert block_size(1000, 4) == 31
    assert block_size(10, 4) == 16
