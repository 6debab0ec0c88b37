"""`harness coverage --kinds`: which kinds of input the cases of an operator have."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from harness import api
from harness.model.dtypes import DTYPES
from harness.model.float_formats import encode
from harness.operators import OPERATORS
from harness.specs.coverage.changed_calls import changed_calls
from harness.specs.coverage.coverage import kind_counts
from harness.specs.coverage.kind_matrix import KindCount, SeenKinds
from harness.specs.coverage.kinds import FLOATS, INTEGERS, NARROW, holding, kinds_of
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs, own_spec
from tests.running import harness

CONV = """\
operator: Conv
opsets: [22]
cases:
  - name: special
    inputs:
      X: {dtype: float32, values: [[[.nan, 1, -0.0]]]}
      W: {dtype: float32, values: [[[1]]]}
sweeps:
  - name: none
    X: {dtype: [float32], shape: [[0, 1, 3], [1, 1, 17]], values: [integers]}
    W: {shape: {kernel: [1], outputs: [1]}, values: [integers]}
    options: {after: [null, same], initializer: [null, W]}
  - name: unlike
    validity: invalid
    rule: "C = W.shape[1] * group"
    X: {dtype: [float32], shape: [[1, 2, 7]]}
    W: {shape: {kernel: [1], unlike: [channels]}}
  - name: open
    validity: unspecified
    rule: "whether subnormals are zero"
    X: {dtype: [float32], shape: [[1, 1, 97]], values: [subnormal]}
    W: {shape: {kernel: [1], outputs: [1]}, values: [integers]}
"""


def counted(folder: Path) -> KindCount:
    path = folder / "Conv.yaml"
    path.write_text(CONV, encoding="utf-8")
    (found,) = kind_counts(api.load([path]))
    return found


@pytest.mark.parametrize(
    "dtype", [name for name, entry in DTYPES.items() if entry.is_float or entry.is_integer]
)
def test_each_kind_of_elements_is_told_from_ordinary_ones(dtype: str) -> None:
    entry = DTYPES[dtype]
    kinds = FLOATS if entry.is_float else INTEGERS
    ones = encode(dtype, np.ones(5)) if entry.is_float else np.full(5, dtype != "int2", entry.storage)
    assert not set(kinds_of(dtype, ones)) & set(kinds)
    for kind in kinds:
        made = holding(kind, dtype, ones)
        if (kind, (entry.mantissa or 11) <= 10) == ("fine", True):
            continue
        assert made is not None
        assert set(kinds_of(dtype, made)) == {kind}, kind


def test_an_element_without_a_shape_is_changed_as_well() -> None:
    made = holding("inf", "float32", np.float32(3))  # type: ignore[arg-type] # what NumPy makes of one element
    assert made is not None
    assert made.shape == ()
    assert np.isposinf(made)


def test_a_constant_that_is_a_list_where_a_scalar_is_meant_breaks_a_rule() -> None:
    (clip,) = kind_counts(api.load([own_spec("Clip")]))
    assert clip.reasons["min", "over 16"] == "min is a scalar"
    assert clip.reasons["max", "NaN last"] == "max is a scalar"


def test_what_no_definition_says_has_the_reason_of_the_file() -> None:
    (found,) = kind_counts(api.load([own_spec("OneHot")]))
    assert found.reasons["depth", "NaN everywhere"].startswith("The depth is a number of classes")
    assert ("depth", "NaN everywhere") not in found.missing


def test_a_cell_has_a_judged_case_or_a_reason_or_is_missing(tmp_path: Path) -> None:
    found = counted(tmp_path)
    shown = {("X", "NaN first"), ("X", "-0"), ("X", "none in 0"), ("X", "over 16"), ("W", "initializer")}
    assert shown | {("", "after same"), ("B", "left out"), ("group", "left out")} <= set(found.covered)
    lacking = {("X", "NaN last"), ("X", "over 64"), ("W", "inf"), ("", "after larger"), ("", "undeclared")}
    assert lacking | {("X", "initializer"), ("B", "NaN first"), ("X", "none in 1")} <= set(found.missing)
    assert found.reasons["X", "subnormal"] == "whether subnormals are zero"
    assert found.reasons["X", "none in 2"] == "the window fits at least once"
    assert found.reasons["W", "scalar"] == "W has the rank of X"
    assert not set(found.covered) & set(found.missing)
    assert not {"least", "greatest"} & {kind for _, kind in (*found.covered, *found.missing)}


def test_the_command_prints_a_matrix_and_what_is_missing(tmp_path: Path) -> None:
    found = counted(tmp_path)
    spec = tmp_path / "Conv.yaml"
    lines = harness("coverage", spec, "--kinds", "--missing").out.splitlines()
    assert lines[1].split()[:4] == ["NaN1", "NaNn", "NaN*", "inf"]
    assert lines[3].split()[:8] == ["X", "+", ".", ".", ".", ".", "+", "-"]
    assert "  no case: Conv undeclared" in lines
    assert "  none can: X subnormal: whether subnormals are zero" in lines
    total = len(found.covered) + len(found.missing)
    assert lines[-2].startswith(f"{len(found.covered)} of {total} possible cells have a case; ")
    printed = json.loads(harness("coverage", spec, "--kinds", "--json").out)
    assert ["W", "scalar", "W has the rank of X"] in printed["reasons"]


def test_narrow_types_of_inputs_and_of_an_output_that_none_decides_are_cells(tmp_path: Path) -> None:
    path = tmp_path / "Cast.yaml"
    path.write_text(
        """\
operator: Cast
opsets: [23]
cases:
  - name: to_int4
    attributes: {to: 22}
    inputs:
      input: {dtype: float4e2m1, values: [1]}
""",
        encoding="utf-8",
    )
    (found,) = kind_counts(api.load([path]))
    cells = {(name, kind) for name in ("input", "output") for kind in NARROW}
    assert cells & set(found.covered) == {("input", "float4e2m1"), ("output", "int4")}
    since_later = {(name, kind) for name, kind in cells if kind in ("int2", "uint2", "float8e8m0")}
    assert cells & set(found.missing) == cells - set(found.covered) - since_later


def test_a_reason_is_a_rule_that_every_valid_case_breaks() -> None:
    """Of GroupNormalization one base in ten takes so many channels."""
    (found,) = kind_counts(api.load([own_spec("GroupNormalization")]))
    assert ("scale", "over 1024") in found.covered


def test_a_changed_rank_is_that_of_the_kind_for_a_base_of_more_dimensions() -> None:
    spec = load_specs([own_spec("Abs")])[0]
    seen = SeenKinds(spec)
    for case in expand([spec]):
        seen.add(case)
    base = next(each for each in seen.valid if len(each.call.first.shape) > 5)
    for kind, rank in (("rank 5", 5), ("scalar", 0)):
        assert [
            each.tensors["X"].array.ndim for each, _ in changed_calls(OPERATORS["Abs"], base, "X", kind)
        ] == [rank, rank]
