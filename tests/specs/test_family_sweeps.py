"""`use:` of a family's sweeps: what an operator takes over, what it gives itself, what it leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model.case import Case
from harness.model.errors import SpecError
from harness.specs.expand import Plan, expand
from harness.specs.reading.load import load_specs
from harness.specs.reading.origins import origins
from harness.specs.sweeps import family_sweeps

FAMILY = """\
- name: axes
  source: the family's document
  input_0: {dtype: float32, shape: [[3], [2, 3]]}
  input_1: {dtype: int64, shape: {extent: [one, same]}, values: [in_range]}
  attributes: {axis: all, absent: [1, 2]}
- name: many
  cover: {strength: 2}
  budget: 12
  input_0: {dtype: all, shape: [[3], [2, 3], [2, 3, 4]]}
  input_1: {dtype: all, shape: {extent: [one, fewer, same, more]}, values: [in_range, negative, first]}
  attributes: {axis: all}
- name: old
  opsets: [11]
  input_0: {dtype: int8, shape: [[3]]}
  input_1: {dtype: int64, shape: {extent: one}, values: [in_range]}
  attributes: {axis: 0}
"""
SPEC = """\
operator: GatherElements
opsets: [11, 13]
lowers_to: {directml: [DML_OPERATOR_GATHER_ELEMENTS]}
sweeps:
  - %s
"""


@pytest.fixture(autouse=True)
def _families(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "families"
    folder.mkdir()
    (folder / "gathers.yaml").write_text(FAMILY, encoding="utf-8")
    monkeypatch.setattr(family_sweeps, "folder", lambda: folder)
    monkeypatch.chdir(tmp_path)
    family_sweeps.family_sweeps.cache_clear()
    yield
    family_sweeps.family_sweeps.cache_clear()


def plan(use: str, *, everything: bool = False) -> Plan:
    Path("GatherElements.yaml").write_text(SPEC % use, encoding="utf-8")
    return expand(load_specs([Path("GatherElements.yaml")]), everything=everything)


def by_sweep(cases: Plan) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.id.partition("sweep=")[2].partition(";")[0], []).append(case)
    return found


def complaints(use: str) -> tuple[str, ...]:
    with pytest.raises(SpecError) as raised:
        plan(use)
    return raised.value.problems


def test_inputs_stand_under_the_operators_names_and_attributes_that_it_lacks_are_left_out() -> None:
    found = by_sweep(plan("use: gathers"))
    assert list(found) == ["axes", "many", "old"]
    # opsets x (two axes of one dimension, four of two) x extents
    assert len(found["axes"]) == 2 * (2 + 4) * 2
    assert (
        found["axes"][0].id
        == "GatherElements@11:sweep=axes;data=float32[3];indices=int64[1];axis=-1;values=in_range"
    )
    assert {case.source for case in found["axes"]} == {"the family's document"}
    assert [case.id for case in found["old"]] == [
        "GatherElements@11:sweep=old;data=int8[3];indices=int64[1];axis=0;values=in_range"
    ]


def test_what_is_given_beside_it_holds_for_each_sweep() -> None:
    found = by_sweep(
        plan(
            "{use: gathers, opsets: [13], data: {dtype: int8}, indices: {values: [negative]}, attributes: {axis: [0]}}"
        )
    )
    assert {case.opset for name in ("axes", "many") for case in found[name]} == {13}
    assert {case.opset for case in found["old"]} == {11}  # the family's own restriction stays
    every = [case for cases in found.values() for case in cases]
    assert {case.inputs[0].dtype for case in every} == {"int8"}
    assert {case.inputs[1].values for case in every} == {"negative"}
    assert {tuple(case.attributes.items()) for case in every} == {(("axis", 0),)}
    assert {case.inputs[1].shape for case in found["axes"]} == {
        (1,),
        (3,),
        (1, 3),
        (2, 3),
    }  # its relation is still the family's


def test_a_sweep_can_be_left_out_and_the_budget_be_another() -> None:
    assert list(by_sweep(plan("{use: gathers, without: [old, axes]}"))) == ["many"]
    assert len(by_sweep(plan("use: gathers"))["many"]) == 12
    assert len(by_sweep(plan("{use: gathers, budget: 5}"))["many"]) == 5


def test_a_budget_is_for_the_default_and_everything_is_the_product() -> None:
    some, every = plan("use: gathers"), plan("use: gathers", everything=True)
    few, many = by_sweep(some)["many"], by_sweep(every)["many"]
    assert len(many) > 1000
    assert {case.id for case in few} < {case.id for case in many}
    assert some.counted()[1]["pairs of alternatives beyond the budget"] > 0
    assert every.counted()[1]["pairs of alternatives beyond the budget"] == 0
    assert [case.id for case in plan("use: gathers")] == [case.id for case in some]


def test_enough_budget_shows_every_pair_that_the_product_has() -> None:
    few = by_sweep(plan("{use: gathers, budget: 1000}"))["many"]
    many = by_sweep(plan("use: gathers", everything=True))["many"]

    def traits(case: Case) -> Counter[str]:
        data, index = case.inputs
        return Counter(
            [
                f"opset {case.opset}",
                f"data {data.dtype}",
                f"shape {data.shape}",
                f"index {index.dtype}",
                f"values {index.values}",
            ]
        )

    def pairs(cases: list[Case]) -> set[tuple[str, str]]:
        return {(a, b) for case in cases for a in traits(case) for b in traits(case) if a < b}

    assert pairs(few) == pairs(many)
    assert len(few) < len(many) / 10


def test_sources_of_a_family_are_in_the_header_of_a_run() -> None:
    told = origins(plan("use: gathers"))
    assert {entry: each.source for entry, each in told.items()} == {
        "GatherElements:sweep=axes": "the family's document",
        "GatherElements:sweep=many": None,
        "GatherElements:sweep=old": None,
    }
    assert {each.rule for each in told.values()} == {None}
    assert {each.spec for each in told.values()} == {"GatherElements.yaml:5"}


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (
            "use: gather",
            "sweeps[0].use: no family has sweeps of the name 'gather'; did you mean 'gathers'?; allowed: gathers",
        ),
        (
            "{use: gathers, without: [axis]}",
            "sweeps[0].without[0]: the family gathers has no sweep 'axis'; did you mean 'axes'?; allowed: axes, many, old",
        ),
        (
            "{use: gathers, axes: {dtype: int8}}",
            "sweeps[0].axes: unknown key 'axes'; it is no input of GatherElements either",
        ),
        ("{use: gathers, budget: 0}", "sweeps[0].budget: 0 is below the least allowed, 1"),
    ],
)
def test_what_cannot_be_used_is_one_line(use: str, said: str) -> None:
    (line,) = complaints(use)
    assert said in line
    assert line.startswith("GatherElements.yaml:5: ")


def test_a_family_file_with_a_mistake_is_named(tmp_path: Path) -> None:
    (tmp_path / "families" / "gathers.yaml").write_text(
        FAMILY.replace("budget: 12", "budget: none"), encoding="utf-8"
    )
    (line,) = complaints("use: gathers")
    assert "gathers.yaml:8: " in line
    assert "should be an integer, not 'none'" in line
