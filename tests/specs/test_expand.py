"""Sweeps become the product of their lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import SpecError
from harness.specs.expand import expand
from harness.specs.load import load_specs
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
