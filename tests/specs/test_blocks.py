"""Blocks have every case once, in the order of the selection, and are the same wherever they are looked for."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from harness.model.case import Validity
from harness.model.errors import HarnessFault
from harness.model.header import Shard
from harness.model.query import parse_all
from harness.run.numbers import LocalNumbers
from harness.run.processes.coordinator import Shared
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.specs.selection import BlockWalk, Selection, block_size
from harness.specs.sweeps.sweep import SweepCalls
from tests.running import ROUND


def selection(which: str) -> Selection:
    plan = expand(load_specs([ROUND]))
    queries = parse_all(["Round@22:sweep=rank"] if which == "query" else [])
    found = Selection(plan, queries, Shard(1, 3) if which == "shard" else None, pairwise=which == "pairwise")
    found.counted()
    return found


KINDS = ["all", "query", "shard", "pairwise", "many"]
"""Ways to select; many: more cases than a selection remembers."""


@pytest.fixture(params=KINDS)
def which(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "many":
        monkeypatch.setattr("harness.specs.selection._FEW", 10)
    return "query" if request.param == "many" else str(request.param)


@pytest.mark.parametrize("size", [1, 7, 512])
def test_every_case_once(which: str, size: int) -> None:
    """In the order of the selection, the valid ones first."""
    chosen = selection(which)
    found = list(chosen.blocks(size))
    assert [case.id for block in found for case in block.cases()] == [case.id for case in chosen]
    assert [block.number for block in found] == list(range(len(found)))
    assert [block.valid for block in found] == sorted((block.valid for block in found), reverse=True)
    for block in found:
        assert all((case.validity is Validity.VALID) is block.valid for case in block.cases())
    for valid in (True, False):
        whole = [block for block in found if block.valid is valid][:-1]
        assert all(sum(piece.most for piece in block.pieces) >= size for block in whole)
    assert len({block.digest() for block in found}) == len(found)


def test_found_by_number(which: str) -> None:
    """In any order, by two who plan apart."""
    first, walk = selection(which), BlockWalk(partial(selection(which).blocks, 20))
    known = {block.number: block for block in first.blocks(20)}
    for number in (*known, *reversed(known)):
        block = walk.find(number)
        assert block.digest() == known[number].digest()
        assert [case.id for case in block.cases()] == [case.id for case in known[number].cases()]
    with pytest.raises(HarnessFault, match="has no block 100000"):
        walk.find(100_000)


def test_processes_take_every_block_once(which: str) -> None:
    """Each takes the next free one when it has use for it."""
    chosen = selection(which)
    shared = Shared(lambda: chosen.blocks(2), [LocalNumbers(1)], [])
    first, second = shared.taken(0), shared.taken(0)
    taken = [next(first), next(second), next(second), next(first), *second, *first]
    assert [block.number for block in taken] == [block.number for block in chosen.blocks(2)]


@pytest.mark.slow
def test_a_product_that_is_not_kept_is_looked_for_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever passes over a block makes nothing of it."""
    plan = expand(load_specs([ROUND]), everything=True)
    for sweep in plan.sweeps:
        sweep.calls._found = None
    chosen = Selection(plan)
    ids = [case.id for case in chosen]
    looked: list[int] = []
    groups = SweepCalls._groups

    def noted(*given: Any) -> Any:
        looked.append(1)
        return groups(*given)

    monkeypatch.setattr(SweepCalls, "_groups", noted)
    found = list(chosen.blocks(100))
    before = len(looked)
    found[1].cases()
    assert before < len(looked) < before + 101
    assert [case.id for block in found for case in block.cases()] == ids


def test_small_runs_have_small_blocks() -> None:
    assert block_size(1_000_000, 4) == 512
    assert block_size(1000, 4) == 31
    assert block_size(10, 4) == 16
