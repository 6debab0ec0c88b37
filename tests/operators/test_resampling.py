"""Resize, GridSample and AffineGrid against loops over every output, in fractions, written from ONNX's
text."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.model.case import Tensor, Value
from harness.model.expected import Approx, Expected, OneOf, nearest
from harness.operators import OPERATORS
from harness.operators.base import Call, Undefined
from tests import calling

Floats = NDArray[Any]
HALF = Fraction(1, 2)


def run(
    name: str, arrays: dict[str, Floats], attributes: dict[str, Value], opset: int, arithmetic: str = "opencl"
) -> Expected:
    (found,) = calling.expected(name, opset, arrays, attributes, arithmetic=arithmetic)
    return found


def origin(how: str, x: int, scale: Fraction, original: int, resized: int) -> Fraction:
    """x_original as ONNX states it."""
    if how == "align_corners":
        return Fraction(x * (original - 1), max(resized - 1, 1))
    if how == "asymmetric":
        return x / scale
    if how == "pytorch_half_pixel" and resized == 1:
        return Fraction(0)
    moved = (x + HALF) / scale - HALF
    if how == "half_pixel_symmetric":
        return Fraction(original, 2) * (1 - resized / (scale * original)) + moved
    return moved


def rounded(mode: str, x: Fraction) -> int:
    low = math.floor(x)
    if mode == "floor" or x == low:
        return low
    if mode == "ceil":
        return low + 1
    if x - low == HALF:
        return low if mode == "round_prefer_floor" else low + 1
    return low if x - low < HALF else low + 1


def weight(mode: str, t: Fraction, a: Fraction) -> Fraction:
    t = abs(t)
    if mode == "linear":
        return max(Fraction(0), 1 - t)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else Fraction(0)


def of_axis(
    mode: str, x: Fraction, extent: int, a: Fraction, stretch: Fraction, exclude: bool
) -> dict[int, Fraction]:
    """The weights of the elements of an axis for one coordinate."""
    reach = math.ceil(2 * stretch) + 1
    found: dict[int, Fraction] = {}
    total = Fraction(0)
    for i in range(math.floor(x) - reach, math.floor(x) + reach + 2):
        share = weight(mode, (x - i) / stretch, a)
        if exclude and not 0 <= i < extent:
            continue
        total += share
        held = min(max(i, 0), extent - 1)
        found[held] = found.get(held, Fraction(0)) + share
    return {i: share / total for i, share in found.items()} if exclude or stretch > 1 else found


def resized_by_loops(
    x: Floats, scales: list[Fraction], shape: tuple[int, ...], attributes: dict[str, Any]
) -> Floats:
    how = attributes.get("coordinate_transformation_mode", "half_pixel")
    mode = attributes.get("mode", "nearest")
    a = Fraction(float(np.float32(attributes.get("cubic_coeff_a", -0.75))))
    exclude, antialias = bool(attributes.get("exclude_outside")), bool(attributes.get("antialias"))
    out = np.zeros(shape)
    for place in np.ndindex(*shape):
        parts: list[dict[int, Fraction]] = []
        for n, at in enumerate(place):
            extent = x.shape[n]
            if scales[n] == 1:
                parts.append({at: Fraction(1)})
                continue
            c = origin(how, at, scales[n], extent, shape[n])
            if mode == "nearest":
                chosen = rounded(attributes.get("nearest_mode", "round_prefer_floor"), c)
                parts.append({min(max(chosen, 0), extent - 1): Fraction(1)})
            else:
                stretch = max(Fraction(1), 1 / scales[n]) if antialias else Fraction(1)
                parts.append(of_axis(mode, c, extent, a, stretch, exclude))
        out[place] = float(
            sum(
                math.prod((parts[n][i] for n, i in enumerate(at)), start=Fraction(1)) * Fraction(float(x[at]))
                for at in product(*parts)
            )
        )
    return out


SHAPES = ((5,), (4, 6), (2, 3, 5), (1, 2, 4, 3))
DYADIC = (2.0, 0.5, 4.0, 0.25, 1.0)
OTHERS = (1.5, 3.0, 0.6, 0.75, 2.5, 1.2)
COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def resize(shape: tuple[int, ...], scales: tuple[float, ...], attributes: dict[str, Value]) -> Call:
    inputs = {"X": np.zeros(shape, np.float32), "scales": np.array(scales, np.float32)}
    return calling.call_with(
        "Resize", 19, {name: Tensor("float32", each) for name, each in inputs.items()}, attributes
    )


def configurations() -> list[tuple[tuple[int, ...], tuple[float, ...], dict[str, Value]]]:
    """Shapes, scales and attributes that a generator chooses."""
    rng = np.random.default_rng(7)
    found: list[tuple[tuple[int, ...], tuple[float, ...], dict[str, Value]]] = []
    while len(found) < 120:
        shape = SHAPES[rng.integers(len(SHAPES))]
        mode = ("nearest", "linear", "cubic")[len(found) % 3]
        pool = DYADIC if mode == "nearest" else DYADIC + OTHERS
        scales = tuple(float(pool[rng.integers(len(pool))]) for _ in shape)
        attributes: dict[str, Value] = {
            "mode": mode,
            "coordinate_transformation_mode": COORDINATES[rng.integers(len(COORDINATES))],
        }
        if mode == "nearest":
            attributes["nearest_mode"] = NEAREST[rng.integers(4)]
        else:
            attributes["antialias"] = int(rng.integers(2))
            attributes["exclude_outside"] = int(rng.integers(2))
        if mode == "cubic":
            attributes["cubic_coeff_a"] = (-0.5, -0.75, -0.6)[rng.integers(3)]
        if OPERATORS["Resize"].broken_rule(resize(shape, scales, attributes)) is None:
            found.append((shape, scales, attributes))
    return found


@pytest.mark.parametrize(("shape", "scales", "attributes"), configurations(), ids=str)
def test_resize_is_what_loops_give(
    shape: tuple[int, ...], scales: tuple[float, ...], attributes: dict[str, Value]
) -> None:
    x = np.random.default_rng(1).permutation(math.prod(shape)).reshape(shape).astype(np.float32)
    given = np.array(scales, np.float32)
    found = run("Resize", {"X": x, "scales": given}, attributes, 19)
    exact = [Fraction(float(scale)) for scale in given]
    resized = tuple(math.floor(extent * scale) for extent, scale in zip(shape, exact, strict=True))
    wanted = resized_by_loops(x, exact, resized, attributes)
    assert found.shape == resized
    if attributes["mode"] == "nearest":
        candidates = found.candidates if isinstance(found, OneOf) else (nearest(found),)
        assert np.logical_or.reduce([each.array == wanted for each in candidates]).all()
    else:
        np.testing.assert_allclose(nearest(found).array, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_sizes_are_of_the_axes_that_are_named(policy: str, mode: str) -> None:
    x = np.random.default_rng(2).permutation(2 * 4 * 6).reshape(2, 4, 6).astype(np.float32)
    attributes: dict[str, Value] = {"axes": (2, -2), "keep_aspect_ratio_policy": policy, "mode": mode}
    sizes = np.array([3, 8], np.int64)
    found = run("Resize", {"X": x, "sizes": sizes}, attributes, 18)
    scales = [Fraction(1), Fraction(2), HALF]
    if policy != "stretch":
        scales[1:] = [min(scales) if policy == "not_larger" else max(scales)] * 2
    shape = {"stretch": (2, 8, 3), "not_larger": (2, 2, 3), "not_smaller": (2, 8, 12)}[policy]
    np.testing.assert_allclose(
        nearest(found).array, resized_by_loops(x, scales, shape, attributes), rtol=1e-6, atol=1e-6
    )


def test_a_crop_is_extrapolated_beyond_the_input() -> None:
    x = np.arange(5, dtype=np.float32)
    roi = np.array([-0.25, 0.75], np.float32)
    sizes = np.array([5], np.int64)
    attributes: dict[str, Value] = {
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 9.0,
        "mode": "linear",
    }
    found = run("Resize", {"X": x, "roi": roi, "sizes": sizes}, attributes, 13)
    assert nearest(found).array.tolist() == [9, 0, 1, 2, 3]


def test_a_tie_of_sizes_is_one_of_whole_numbers_on_a_processor() -> None:
    """(4 + 0.5) / (6 / 20) - 0.5 is 14.5, and by float32 14.499999."""
    x = np.arange(20, dtype=np.float32)
    attributes: dict[str, Value] = {"nearest_mode": "round_prefer_ceil"}
    arrays = {"X": x, "sizes": np.array([6], np.int64)}
    assert nearest(run("Resize", arrays, attributes, 13)).array.tolist() == [1, 5, 8, 11, 15, 18]
    found = run("Resize", arrays, attributes, 13, "d3d")
    assert isinstance(found, OneOf)
    assert sorted(each.array[4] for each in found.candidates) == [14, 15]
    found = run("Resize", {"X": x, "sizes": np.array([10], np.int64)}, attributes, 13)
    assert not isinstance(found, OneOf)
    assert nearest(found).array.tolist() == list(range(1, 20, 2))


def test_a_gpu_may_multiply_by_the_reciprocal_of_a_scale() -> None:
    x = np.arange(4, dtype=np.float32)
    attributes: dict[str, Value] = {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    arrays = {"X": x, "scales": np.array([3], np.float32)}
    assert not isinstance(run("Resize", arrays, attributes, 13), OneOf)
    assert isinstance(run("Resize", arrays, attributes, 13, "d3d"), OneOf)
    arrays["scales"] = np.array([4], np.float32)
    assert not isinstance(run("Resize", arrays, attributes, 13, "d3d"), OneOf)


def test_an_average_of_integers_is_one_of_its_neighbours() -> None:
    x = np.array([1, 4], np.uint8)
    found = run("Resize", {"X": x, "scales": np.array([2], np.float32)}, {"mode": "linear"}, 13)
    assert isinstance(found, OneOf)
    assert [sorted({int(each.array[n]) for each in found.candidates}) for n in range(4)] == [
        [1],
        [1, 2],
        [3, 4],
        [4],
    ]


def sampled(x: Floats, at: list[float], attributes: dict[str, Any]) -> float:
    """One element of GridSample, of places in the order of the axes of x."""
    mode, padding = attributes.get("mode", "linear"), attributes.get("padding_mode", "zeros")
    corners = attributes.get("align_corners", 0)

    def held(i: int, extent: int) -> int | None:
        if padding == "border":
            return min(max(i, 0), extent - 1)
        while padding == "reflection" and not 0 <= i < extent:
            low = 0 if corners else -1
            i = low - i if i < 0 else 2 * (extent - 1) - low - i
        return i if 0 <= i < extent else None

    parts = []
    for n, extent in zip(at, x.shape, strict=True):
        c = (Fraction(n) + 1) / 2 * (extent - 1) if corners else ((Fraction(n) + 1) * extent - 1) / 2
        part: list[tuple[int | None, Fraction]] = []
        if mode == "nearest":
            part.append((held(round(c), extent), Fraction(1)))
        else:
            for i in range(math.floor(c) - 2, math.floor(c) + 4):
                part.append((held(i, extent), weight(mode, c - i, Fraction(-3, 4))))
        parts.append(part)
    total = Fraction(0)
    for picked in product(*parts):
        index = [i for i, _ in picked if i is not None]
        if len(index) == x.ndim:
            share = math.prod((w for _, w in picked), start=Fraction(1))
            total += share * Fraction(float(x[tuple(index)]))
    return float(total)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("spatial", [(5,), (4, 3), (3, 2, 4)])
def test_grid_sample_is_what_loops_give(
    mode: str, padding: str, corners: int, spatial: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-9, 10, (2, 2, *spatial)).astype(np.float32)
    points = (3, 2, 2)[: len(spatial)]
    reach = 1.0 if mode == "cubic" else 2.5
    grid = rng.uniform(-reach, reach, (2, *points, len(spatial))).astype(np.float32)
    attributes: dict[str, Value] = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    found = nearest(run("GridSample", {"X": x, "grid": grid}, attributes, 20)).array
    for n, c, *o in product(*map(range, found.shape)):
        wanted = sampled(x[n, c], grid[(n, *o)][::-1].tolist(), attributes)
        assert found[(n, c, *o)] == pytest.approx(wanted, rel=1e-5, abs=1e-4), (n, c, o)


@pytest.mark.parametrize(("opset", "allowed"), [(16, {1.0, 2.0}), (20, {2.0})])
def test_a_place_between_two_elements_is_rounded_to_even_since_version_20(
    opset: int, allowed: set[float]
) -> None:
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
    grid = np.array([[[[0.0, 0.0]]]], np.float32)
    found = run("GridSample", {"X": x, "grid": grid}, {"mode": "nearest"}, opset)
    candidates = found.candidates if isinstance(found, OneOf) else (nearest(found),)
    assert {float(each.array[0, 0, 0, 0]) for each in candidates} == allowed


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("far", [np.inf, 1e30, 1e18, 1e8])
def test_far_beyond_x_are_zeros_or_the_border(mode: str, corners: int, far: float) -> None:
    x = np.array([[[[3.0, 5.0, 7.0, 9.0]]]], np.float32)
    grid = np.array([[[[far, 0.0], [-far, 0.0]]]], np.float32)
    for padding, wanted in (("border", [9.0, 3.0]), ("zeros", [0.0, 0.0])):
        attributes: dict[str, Value] = {"mode": mode, "padding_mode": padding, "align_corners": corners}
        found = run("GridSample", {"X": x, "grid": grid}, attributes, 20)
        assert not isinstance(found, OneOf)
        assert nearest(found).array.reshape(-1).tolist() == wanted
        assert not isinstance(found, Approx) or found.bound.max() < 1e-4


@pytest.mark.parametrize("place", [np.nan, np.inf, 1e10])
def test_nothing_is_claimed_of_a_place_that_is_reflected_too_often(place: float) -> None:
    x = np.array([[[[3.0, 5.0, 7.0, 9.0]]]], np.float32)
    grid = np.array([[[[0.25, 0.0], [place, 0.0]]]], np.float32)
    attributes: dict[str, Value] = {"mode": "linear", "padding_mode": "reflection"}
    found = run("GridSample", {"X": x, "grid": grid}, attributes, 20)
    assert isinstance(found, Approx)
    assert np.isfinite(found.bound).reshape(-1).tolist() == [True, False]
    with pytest.raises(Undefined):
        run("GridSample", {"X": x, "grid": grid}, {**attributes, "mode": "nearest"}, 20)


@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 3, 2, 5), (2, 1, 2, 3, 4)])
@pytest.mark.parametrize("corners", [0, 1])
def test_affine_grid_is_what_loops_give(size: tuple[int, ...], corners: int) -> None:
    spatial = size[2:]
    theta = np.random.default_rng(4).integers(-4, 5, (2, len(spatial), len(spatial) + 1)).astype(np.float32)
    arrays = {"theta": theta, "size": np.array(size, np.int64)}
    found = nearest(run("AffineGrid", arrays, {"align_corners": corners}, 20)).array
    for n, *o in product(range(2), *map(range, spatial)):
        base = [
            Fraction(2 * i, extent - 1) - 1 if corners else Fraction(2 * i + 1, extent) - 1
            for i, extent in zip(o, spatial, strict=True)
        ]
        homogeneous = [*reversed(base), Fraction(1)]
        for row in range(len(spatial)):
            wanted = float(
                sum(Fraction(float(t)) * p for t, p in zip(theta[n, row], homogeneous, strict=True))
            )
            assert found[(n, *o, row)] == pytest.approx(wanted, abs=1e-5)


def coordinate(members: dict[str, Any], n: int, x: int) -> Fraction:
    """DML_RESAMPLE3_OPERATOR_DESC: OutputTensorX = (InputTensorX + InputPixelOffset) * Scale +
    OutputPixelOffset."""
    scale, added, moved = (
        Fraction(members[name][n]) for name in ("Scales", "InputPixelOffsets", "OutputPixelOffsets")
    )
    return (x - moved) / scale - added


@pytest.mark.parametrize(("shape", "scales", "attributes"), configurations(), ids=str)
def test_directml_samples_where_onnx_does(
    shape: tuple[int, ...], scales: tuple[float, ...], attributes: dict[str, Value]
) -> None:
    operator = OPERATORS["Resize"]
    given = np.array(scales, np.float32)
    call = resize(shape, scales, attributes)
    made = operator.family.directml(operator, None, call)
    if attributes["mode"] == "cubic" or attributes.get("exclude_outside"):
        assert made is None
        return
    assert made is not None
    members = dict(made.attributes)
    assert members["Antialiased"] == attributes.get("antialias", 0)
    assert members["InterpolationMode"] == int(attributes["mode"] == "linear")
    (resized,) = operator.family.output_shapes(operator, call)
    for n, extent in enumerate(shape):
        scale = Fraction(float(given[n]))
        for x in range(resized[n]):
            how = str(attributes["coordinate_transformation_mode"])
            wanted = Fraction(x) if scale == 1 else origin(how, x, scale, extent, resized[n])
            found = coordinate(members, n, x)
            if attributes["mode"] == "nearest":
                cut = math.ceil if members["RoundingDirection"] == 0 else math.floor
                near = rounded(str(attributes["nearest_mode"]), wanted)
                slight = Fraction(1, 10**6)  # of offsets that float32 does not hold
                assert min(max(near, 0), extent - 1) in {
                    min(max(cut(found + by), 0), extent - 1) for by in (-slight, slight)
                }
            else:
                assert float(found) == pytest.approx(float(wanted), abs=1e-6)


def test_a_part_beyond_the_input_has_no_words_in_directml() -> None:
    operator = OPERATORS["Resize"]
    inputs = {
        "X": Tensor("float32", np.zeros(9, np.float32)),
        "roi": Tensor("float32", np.array([0.25, 0.75], np.float32)),
        "sizes": Tensor("int64", np.array([5])),
    }
    attributes: dict[str, Value] = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear"}
    made = operator.family.directml(operator, None, calling.call_with("Resize", 13, inputs, attributes))
    assert made is not None
    assert [coordinate(dict(made.attributes), 0, x) for x in range(5)] == [2, 3, 4, 5, 6]
    inputs["roi"] = Tensor("float32", np.array([0.25, 1.25], np.float32))
    call = calling.call_with("Resize", 13, inputs, attributes)
    assert operator.family.directml(operator, None, call) is None
