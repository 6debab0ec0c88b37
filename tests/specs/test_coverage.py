"""`cover` of a sweep and `harness coverage`: what is chosen, what is counted, and that the two agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness import api
from harness.model.case import Case
from harness.model.errors import SpecError
from harness.specs.coverage.coverage import coverages
from harness.specs.coverage.factors import shown_by
from tests.running import harness

SPEC = """\
operator: GatherElements
opsets: [13]
sweeps:
  - name: interactions
    cover:
      alone: {T: string}
      forbid:
        - {because: "too many elements", levels: {rank: 2, size: large}}
    data: {dtype: [float32, int8, string], shape: {rank: [1, 2, 3], size: [one, odd, large]}, values: [random, nans]}
    indices: {dtype: all, shape: {extent: [one, same, more]}, values: [in_range, negative]}
    attributes: {axis: all}
    options: {shapes: [symbolic, undeclared], initializer: [null, indices], optimization: ["off", all]}
  - name: interactions_axis
    validity: invalid
    rule: "axis in [-r, r-1]"
    cover: {illegal: {axis: [above, far_below]}}
    data: {dtype: [float32, int8], shape: {rank: [1, 2, 3], size: [one, odd]}}
    indices: {dtype: int64, shape: {extent: same}, values: in_range}
    attributes: {axis: [above, far_below]}
    options: {optimization: ["off", all]}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "GatherElements.yaml"
    path.write_text(SPEC, encoding="utf-8")
    return path


def cases(path: Path, *, thorough: bool = False) -> list[Case]:
    return list(api.load([path], thorough=thorough))


def test_every_possible_pair_is_covered(spec: Path) -> None:
    valid, invalid = coverages(api.load([spec]), 2)
    assert (valid.covered, valid.missing, invalid.covered, invalid.missing) == (
        valid.possible,
        [],
        invalid.possible,
        [],
    )
    assert valid.factors["axis"][0] == "first"
    assert dict(valid.forbidden) == {
        "too many elements": 1,
        "axis=middle has no meaning at rank 1": 1,
        "axis=middle has no meaning at rank 2": 1,
        "axis=middle_negative has no meaning at rank 1": 1,
        "axis=middle_negative has no meaning at rank 2": 1,
        "data.values=nans has no meaning there": 2,
    }
    largest = 6 * 3
    assert largest <= valid.cases <= 3 * largest  # strings have cases of their own


def test_what_stands_alone_hides_nothing(spec: Path) -> None:
    """Each pair of levels without a string stands in a case without one."""
    shows = [shown_by(case) for case in cases(spec) if case.validity.value == "valid"]
    others = [each for each in shows if "string" not in each["T"]]
    assert any("negative" in each["indices.values"] and "last_negative" in each["axis"] for each in others)
    assert any(each["shapes"] == {"undeclared"} and each["initializer"] == {"indices"} for each in others)


def test_a_case_that_is_invalid_breaks_the_one_rule(spec: Path) -> None:
    axes = {case.attributes["axis"] for case in cases(spec) if case.validity.value == "invalid"}
    assert axes == {1, 2, 3, -(2**31)}


def test_thorough_covers_triples_and_begins_with_the_default(spec: Path) -> None:
    default, thorough = cases(spec), cases(spec, thorough=True)
    assert {case.id for case in default} < {case.id for case in thorough}
    assert all(not each.missing for each in coverages(api.load([spec], thorough=True), 3))
    assert any(each.missing for each in coverages(api.load([spec]), 3))


def test_queries_take_cases_away_and_the_count_says_so(spec: Path) -> None:
    valid, _ = coverages(api.load([spec], ["GatherElements:data=float32"]), 2)
    assert valid.covered < valid.possible
    assert (("T", "int8"), ("rank", "1")) in [tuple(sorted(levels)) for levels in valid.missing]


def test_the_ids_are_the_same_each_time(spec: Path) -> None:
    assert [case.id for case in cases(spec)] == [case.id for case in cases(spec)]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("alone: {T: string}", "alone: {U: string}", "the sweep has no factor 'U'"),
        ("alone: {T: string}", "alone: {T: bool}", "the factor T has no level 'bool'"),
        ("{rank: 2, size: large}", "{rank: 2, size: huge}", "the factor size has no level 'huge'"),
        ("size: [one, odd, large]", "size: [one, odd, huge]", "unknown size 'huge'"),
        (
            ", illegal: {axis: [above, far_below]}",
            "",
            "an invalid sweep of ranks and sizes names its `illegal` levels",
        ),
    ],
)
def test_a_wrong_word_is_told_with_its_line(spec: Path, old: str, new: str, what: str) -> None:
    text = SPEC.replace("cover: {illegal", "cover: {strength: 2, illegal")
    assert old in text
    spec.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(SpecError, match=r"GatherElements\.yaml:\d+: ") as raised:
        api.load([spec])
    assert what in str(raised.value)


def test_an_operator_of_which_no_factor_varies_is_counted(tmp_path: Path) -> None:
    (path := tmp_path / "Round.yaml").write_text(
        "operator: Round\nopsets: [22]\nsweeps:\n  - {name: one, X: {dtype: [float32], shape: [[2]]}}\n",
        encoding="utf-8",
    )
    (found,) = coverages(api.load([path]), 2)
    assert (found.cases, found.factors, found.covered, found.possible) == (1, {}, 0, 0)


def test_the_command_prints_lines_and_objects(spec: Path) -> None:
    done = harness("coverage", spec)
    assert done.code == 0
    assert "GatherElements, valid: " in done.out
    assert "possible pairs (100.0 %)" in done.out
    assert "  1 forbidden: too many elements" in done.out
    partial = harness("coverage", spec, "-k", "GatherElements:data=float32", "--missing")
    assert "  missing: T=int8 × rank=1" in partial.out.replace("rank=1 × T=int8", "T=int8 × rank=1")
    lines = harness("coverage", spec, "--interactions", "--json").out.splitlines()
    found = [json.loads(line) for line in lines]
    assert [(each["operator"], each["validity"], each["missing"]) for each in found] == [
        ("GatherElements", "valid", 0),
        ("GatherElements", "invalid", 0),
    ]
