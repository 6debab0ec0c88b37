"""Sweeps become the product of their lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import SpecError
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.specs.sweeps.sweep import SweepCalls
from tests.running import SPECS

SWEEP = """
operator: GatherND
opsets: [13]
lowers_to: {directml: [DML_OPERATOR_GATHER_ND, DML_OPERATOR_GATHER_ND1]}
because: "elements are moved, not computed"
sweeps:
  - name: batch
    data: {dtype: [float32], shape: [[2, 3, 4]]}
    indices: {dtype: [int64], shape: {outer: [[], [5]], tuple: [1]}, values: [first]}
    attributes: {batch_dims: all}
"""


def test_all_values_of_an_attribute_that_shapes_follow(tmp_path: Path) -> None:
    """The batch dimensions of indices are those of data: whatever `outer` is, batch_dims goes up to the rank
    of data."""
    spec = tmp_path / "GatherND.yaml"
    spec.write_text(SWEEP, encoding="utf-8")
    made = {(case.attributes["batch_dims"], case.inputs[1].shape) for case in expand(load_specs([spec]))}
    assert made == {(0, (1,)), (1, (2, 1)), (2, (2, 3, 1)), (0, (5, 1)), (1, (2, 5, 1)), (2, (2, 3, 5, 1))}


@pytest.mark.parametrize(("written", "at"), [("[same, smae]", "extent[1]"), ("smae", "extent")])
def test_an_unknown_extent_is_named(tmp_path: Path, written: str, at: str) -> None:
    text = (SPECS / "GatherElements.yaml").read_text(encoding="utf-8")
    head = text[: text.index("cases:")]
    path = tmp_path / "GatherElements.yaml"
    path.write_text(
        f"{head}sweeps:\n  - name: extents\n    data: {{dtype: float32, shape: [[3, 4]]}}\n"
        f"    indices: {{dtype: int64, shape: {{extent: {written}}}, values: in_range}}\n",
        encoding="utf-8",
    )
    with pytest.raises(SpecError) as raised:
        expand(load_specs([path]))
    (line,) = raised.value.problems
    assert (
        f"sweeps[0].indices.shape.{at}: unknown extent 'smae'; did you mean 'same'?; allowed: none, one, fewer"
        in line
    )


BITS = """
operator: BitCast
opsets: [26]
sweeps:
  - name: pairs
    SELECT
    input: {dtype: [float32, int64, uint8], shape: [[3]], values: [ordinary]}
    attributes: {to: [1, 2, 6, 7, 11]}
"""
MODULO = """
operator: Mod
opsets: [13]
sweeps:
  - name: integers_alone
    SELECT
    A: {dtype: [float32, int32], shape: [[3]], values: [normal]}
    B: {shape: [same], values: [normal]}
    attributes: {fmod: [0, 1]}
"""


@pytest.mark.parametrize("select", ["", "cover: {strength: 2}"])
def test_rules_are_asked_with_the_types_of_the_sweep(tmp_path: Path, select: str) -> None:
    """A combination that one type allows is a case of that type alone."""
    made = {}
    for name, text in (("BitCast", BITS), ("Mod", MODULO)):
        (path := tmp_path / f"{name}.yaml").write_text(
            text.replace("SELECT\n", f"{select}\n"), encoding="utf-8"
        )
        made[name] = {
            (case.inputs[0].dtype, *case.attributes.values()) for case in expand(load_specs([path]))
        }
    assert made["BitCast"] == {
        ("float32", 1), ("float32", 6), ("int64", 7), ("int64", 11), ("uint8", 2)
    }  # fmt: skip
    assert made["Mod"] == {("float32", 1), ("int32", 0), ("int32", 1)}


def test_all_values_of_a_domain_that_no_shape_changes_are_tried(tmp_path: Path) -> None:
    (path := tmp_path / "Cast.yaml").write_text(
        "operator: Cast\nopsets: [13]\nsweeps:\n  - name: pairs\n    cover: {strength: 2}\n"
        "    input: {dtype: [int8, int32], shape: [[3], [2, 3]], values: [positive]}\n    attributes: {to: all}\n",
        encoding="utf-8",
    )
    tried = {case.attributes["to"] for case in expand(load_specs([path]))}
    assert tried == {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16}


class TestCounting:
    def spec(self, tmp_path: Path) -> Path:
        path = tmp_path / "GatherND.yaml"
        path.write_text(SWEEP, encoding="utf-8")
        return path

    def test_few_groups_are_made_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        plan = expand(load_specs([self.spec(tmp_path)]))
        ids = [case.id for case in plan]
        number, left_out = plan.counted()
        assert number == len(ids) == 6
        monkeypatch.setattr(SweepCalls, "_groups", lambda *_: pytest.fail("made again"))
        assert [case.id for case in plan] == ids
        assert plan.counted() == (number, left_out)

    def test_many_are_not_kept(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("harness.specs.sweeps.sweep._FEW", 5)
        plan = expand(load_specs([self.spec(tmp_path)]))
        assert plan.counted()[0] == 6
        assert plan.sweeps[0].calls._found is None
        assert plan.counted()[0] == sum(1 for _ in plan) == 6
