from __future__ import annotations

from harness.model.facets import facets
from harness.model.verdict import Outcome
from harness.results.tables import Differences
from tests import synthetic

A = "Gather@13:sweep=a;data=float32[2,3];indices=int64[1]"
B = "Gather@11:sweep=a;data=int8[2];indices=int32[1]"
C = "Gather@13:sweep=a;data=bool[2];indices=int64[1]"


def collected(*given: tuple[str, str, Outcome]) -> Differences:
    differences = Differences(("cpu", "dml", "old"))
    for case, target, outcome in given:
        result = synthetic.result(case, outcome, target=target)
        differences.add(result, facets(case), "2_1")
    return differences


def test_cases_on_which_targets_disagree_are_grouped() -> None:
    groups = collected(
        (A, "cpu", Outcome.PASS), (A, "dml", Outcome.MISMATCH),
        (B, "cpu", Outcome.PASS), (B, "dml", Outcome.MISMATCH),
        (C, "cpu", Outcome.PASS), (C, "dml", Outcome.PASS),
    ).groups()  # fmt: skip
    assert len(groups) == 1
    group = groups[0]
    assert group.number == 2
    assert group.outcomes == (Outcome.PASS, Outcome.MISMATCH, None)
    assert (group.opsets, group.dtypes, group.types, group.ranks) == (
        (11, 13),
        ("int8", "float32"),
        ("indices=int32", "indices=int64"),
        (1, 2),
    )
    assert group.example == B


def test_a_target_that_ran_nothing_differs_from_nobody() -> None:
    assert (
        collected(
            (A, "cpu", Outcome.PASS), (A, "dml", Outcome.UNAVAILABLE), (A, "old", Outcome.NOT_RUN)
        ).groups()
        == []
    )


def test_one_target_needs_none() -> None:
    assert not Differences(("cpu",)).needed
    assert Differences(("cpu", "dml")).needed
