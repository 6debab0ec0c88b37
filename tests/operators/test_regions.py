"""RoiAlign, MaxRoiPool, NonMaxSuppression, MaxUnpool and Col2Im against loops over their elements."""

from __future__ import annotations

from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np
import pytest

from harness.model.case import Value
from tests.operators.regions_loops import aligned
from tests.operators.test_onnx_cases import collected
from tests.operators.test_windows import run


@pytest.mark.parametrize("shift", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 1, 3])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_align_samples_each_bin(shift: str, mode: str, ratio: int, scale: float) -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(-9, 9, (2, 2, 6, 7)).astype(np.float32)
    corners = np.array([[0, 0, 7, 6], [1.25, 2.5, 4, 5], [5, 0.5, 6.5, 2.25], [-3, -2, 9, 8]], np.float32)
    rois, batches = (corners / scale).astype(np.float32), np.array([1, 0, 1, 0])
    given: dict[str, Value] = {
        "mode": mode,
        "output_height": 2,
        "output_width": 3,
        "sampling_ratio": ratio,
        "spatial_scale": scale,
        "coordinate_transformation_mode": shift,
    }
    (found,) = run("RoiAlign", {"X": x, "rois": rois, "batch_indices": batches}, given)
    expected = aligned(x, rois, batches, dict(given), shift == "half_pixel")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_roi_align_is_that_of_onnx_to_four_decimals() -> None:
    cases = [each for each in collected()[0] if each.name.startswith("test_roialign_aligned")]
    assert len(cases) == 2
    for case in cases:
        arrays = {name: tensor.array for name, tensor in case.inputs.items()}
        (found,) = run("RoiAlign", arrays, dict(case.call.attributes))
        assert case.outputs[0] is not None
        np.testing.assert_allclose(found, case.outputs[0].array, atol=1e-4)


def test_version_10_of_roi_align_is_not_shifted() -> None:
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    arrays = {"X": x, "rois": np.array([[0, 0, 4, 4]], np.float32), "batch_indices": np.array([0])}
    (found,) = run("RoiAlign", arrays, {"output_height": 2, "output_width": 2, "sampling_ratio": 2}, opset=10)
    assert found.tolist() == [[[[5.0, 6.75], [12.0, 13.75]]]]


def test_max_roi_pool_takes_the_greatest_of_each_part() -> None:
    x = np.random.default_rng(3).permutation(2 * 2 * 6 * 7).reshape(2, 2, 6, 7).astype(np.float32)
    rois = np.array([[0, 0, 0, 6, 5], [1, 2, 1, 4, 4], [1, 5, 5, 5, 5]], np.float32)
    (found,) = run("MaxRoiPool", {"X": x, "rois": rois}, {"pooled_shape": (2, 3)})
    for r, c, i, j in np.ndindex(*found.shape):
        batch, x1, y1, x2, y2 = rois[r].astype(int).tolist()
        high, wide = y2 - y1 + 1, x2 - x1 + 1
        rows = range(y1 + floor(i * high / 2), y1 + ceil((i + 1) * high / 2))
        columns = range(x1 + floor(j * wide / 3), x1 + ceil((j + 1) * wide / 3))
        assert found[r, c, i, j] == max(x[batch, c, a, b] for a, b in product(rows, columns))


@pytest.mark.parametrize(
    ("begin", "end", "columns"), [(-0.5, 0.5, [0, 3, 9]), (0.5, 2.5, [9, 7, 1]), (-1.5, -0.5, [0, 0])]
)
def test_corners_of_regions_are_rounded_halves_away_from_0(
    begin: float, end: float, columns: list[float]
) -> None:
    x = np.array([[[[3, 9, 7, 1]]]], np.float32)
    rois = np.array([[0, begin, 0, end, 0]], np.float32)
    (found,) = run("MaxRoiPool", {"X": x, "rois": rois}, {"pooled_shape": (1, len(columns))})
    assert found.reshape(-1).tolist() == columns


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("least", [None, 0.25])
def test_boxes_that_overlap_one_before_are_left_out(centred: int, least: float | None) -> None:
    rng = np.random.default_rng(4)
    boxes = rng.integers(0, 9, (2, 12, 4)).astype(np.float32)
    boxes[..., 2:] += 9 * (1 - centred) + centred
    scores = rng.permutation(2 * 3 * 12).reshape(2, 3, 12).astype(np.float32) / 72
    arrays = {
        "boxes": boxes,
        "scores": scores,
        "max_output_boxes_per_class": np.array(4),
        "iou_threshold": np.array(0.125, np.float32),
    } | ({} if least is None else {"score_threshold": np.array(least, np.float32)})
    (found,) = run("NonMaxSuppression", arrays, {"center_point_box": centred})
    wanted = []
    for batch, number in product(range(2), range(3)):
        chosen: list[int] = []
        for place in sorted(range(12), key=lambda n: -scores[batch, number, n]):
            if least is not None and scores[batch, number, place] < least:
                continue
            overlaps = [iou(boxes[batch, place], boxes[batch, other], centred) for other in chosen]
            if len(chosen) < 4 and all(each <= 0.125 for each in overlaps):
                chosen.append(place)
        wanted += [[batch, number, place] for place in chosen]
    assert found.tolist() == wanted


def iou(a: Any, b: Any, centred: int) -> float:
    spans = []
    for box in (a, b):
        v = [float(e) for e in box]
        spans.append(
            [(v[n] - v[n + 2] / 2, v[n] + v[n + 2] / 2) for n in (0, 1)]
            if centred
            else [(min(v[n], v[n + 2]), max(v[n], v[n + 2])) for n in (0, 1)]
        )
    shared = 1.0
    for (low, high), (least, most) in zip(*spans, strict=True):
        shared *= max(0.0, min(high, most) - max(low, least))
    areas = [(s[0][1] - s[0][0]) * (s[1][1] - s[1][0]) for s in spans]
    return shared / (sum(areas) - shared)


def test_max_unpool_is_the_inverse_of_max_pool() -> None:
    x = np.random.default_rng(5).permutation(2 * 3 * 6 * 8).reshape(2, 3, 6, 8).astype(np.float32) + 1
    window: dict[str, Value] = {"kernel_shape": (2, 2), "strides": (2, 2)}
    values, places = run("MaxPool", {"X": x}, window, outputs=2)
    (found,) = run("MaxUnpool", {"X": values, "I": places}, window)
    assert found.shape == x.shape
    assert [v for v in found.reshape(-1).tolist() if v] == [
        v for v in x.reshape(-1).tolist() if v in set(values.reshape(-1).tolist())
    ]
    assert run("MaxPool", {"X": found}, window)[0].tolist() == values.tolist()


@pytest.mark.parametrize(
    ("image", "block", "strides", "dilations", "pads"),
    [
        ((4, 5), (2, 2), (1, 1), (1, 1), (0, 0, 0, 0)),
        ((5, 9), (2, 3), (2, 3), (2, 1), (2, 2, 2, 1)),
        ((3, 4, 5), (2, 1, 3), (1, 2, 1), (1, 1, 2), (0, 1, 0, 1, 0, 1)),
    ],
)
def test_col2im_adds_each_element_to_its_pixel(
    image: tuple[int, ...],
    block: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads: tuple[int, ...],
) -> None:
    n = len(image)
    counts = [
        (image[i] + pads[i] + pads[i + n] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(n)
    ]
    elements = int(np.prod(block))
    x = np.random.default_rng(6).integers(-9, 10, (2, 3 * elements, int(np.prod(counts)))).astype(np.float32)
    arrays = {"input": x, "image_shape": np.array(image), "block_shape": np.array(block)}
    attributes: dict[str, Value] = {"strides": strides, "dilations": dilations, "pads": pads}
    (found,) = run("Col2Im", arrays, attributes)
    wanted = np.zeros((2, 3, *image))
    for b, c, k, place in product(range(2), range(3), np.ndindex(*block), np.ndindex(*counts)):
        at = tuple(
            p * s + q * d - f for p, s, q, d, f in zip(place, strides, k, dilations, pads, strict=False)
        )
        if all(0 <= p < e for p, e in zip(at, image, strict=True)):
            row = c * elements + int(np.ravel_multi_index(k, block))
            wanted[(b, c, *at)] += x[b, row, int(np.ravel_multi_index(place, counts))]
    assert found.tolist() == wanted.tolist()
