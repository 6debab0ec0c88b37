"""The specs of regions, boxes, blocks and transforms against kernels that take a call for another: an
attribute or an input ignored, exchanged, or read with a mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.expected import nearest
from harness.operators import OPERATORS
from harness.operators.base import Call
from tests.mutants.any_operator import Sample, samples
from tests.sampled import one_of

Taken = tuple[Call, dict[str, Any]]
Mistake = Callable[[Call, dict[str, Any]], Taken]


def given(**attributes: Any) -> Mistake:
    """Take attributes for others; None leaves one out."""

    def taken(call: Call, arrays: dict[str, Any]) -> Taken:
        held = {key: value for key, value in {**call.attributes, **attributes}.items() if value is not None}
        return call._replace(attributes=held), arrays

    return taken


def without(name: str) -> Mistake:
    """Do not see an input."""
    return lambda call, arrays: (
        call._replace(
            inputs={key: each for key, each in call.inputs.items() if key != name},
            constants={key: each for key, each in call.constants.items() if key != name},
        ),
        {key: each for key, each in arrays.items() if key != name},
    )


def seen(name: str, change: Callable[[Any], Any]) -> Mistake:
    """See an input's elements, or an attribute, changed."""

    def taken(call: Call, arrays: dict[str, Any]) -> Taken:
        if name in arrays:
            array = np.array(change(arrays[name]), arrays[name].dtype)
            constants = {**call.constants, name: array} if name in call.constants else call.constants
            return call._replace(constants=constants), {**arrays, name: array}
        value = call.attributes.get(name)
        found = value if value is None else change(value)
        return (call if value is None else call._replace(attributes={**call.attributes, name: found})), arrays

    return taken


def turned(value: Any) -> Any:
    return value[::-1]


def ends_first(pads: tuple[int, ...]) -> tuple[int, ...]:
    return (*pads[len(pads) // 2 :], *pads[: len(pads) // 2])


def corners_of_centres(boxes: Any) -> Any:
    return np.concatenate([boxes[..., :2], boxes[..., :2] + boxes[..., 2:]], -1)


MISTAKES: Mapping[str, Mapping[str, Mistake]] = {
    "Col2Im": {
        "strides ignored": given(strides=None),
        "strides exchanged": seen("strides", turned),
        "dilations ignored": given(dilations=None),
        "dilations exchanged": seen("dilations", turned),
        "pads ignored": given(pads=None),
        "ends before begins": seen("pads", ends_first),
        "block exchanged": seen("block_shape", turned),
        "image exchanged": seen("image_shape", turned),
        "blocks from the last": seen("input", lambda x: x[..., ::-1]),
    },
    "MaxUnpool": {
        "strides ignored": given(strides=None),
        "pads ignored": given(pads=None),
        "output_shape ignored": without("output_shape"),
        "places in the first plane": seen("I", lambda x: x % max(1, int(x.max(initial=0)) // 2)),
        "one place too far": seen("I", lambda x: np.maximum(x - 1, 0)),
    },
    "NonMaxSuppression": {
        "center_point_box ignored": given(center_point_box=0),
        "centre for a corner": seen("boxes", corners_of_centres),
        "score_threshold ignored": without("score_threshold"),
        "a score at the threshold lost": seen(
            "score_threshold", lambda x: np.nextafter(x, np.float32(np.inf))
        ),
        "a score_threshold of 0 by default": lambda call, arrays: (
            call
            if "score_threshold" in call.constants
            else call._replace(constants={**call.constants, "score_threshold": np.zeros(1, np.float32)}),
            arrays,
        ),
        "iou_threshold ignored": without("iou_threshold"),
        "an overlap at the threshold too much": seen(
            "iou_threshold", lambda x: np.maximum(np.nextafter(x, np.float32(-1)), 0)
        ),
        "max_output_boxes_per_class ignored": seen("max_output_boxes_per_class", lambda x: x * 0 + 1000),
        "the least scores": seen("scores", lambda x: -x),
        "boxes of the first batch": seen("boxes", lambda x: np.broadcast_to(x[:1], x.shape)),
    },
    "DFT": {
        "onesided ignored": given(onesided=0),
        "inverse ignored": given(inverse=0),
        "forward inverted": given(inverse=1),
        "dft_length ignored": without("dft_length"),
        "real part alone": seen("input", lambda x: x * np.array([1, 0], x.dtype)[: x.shape[-1]]),
        "signal from its end": seen("input", lambda x: x[..., ::-1, :]),
        "parts exchanged": seen("input", lambda x: x[..., ::-1]),
    },
    "STFT": {
        "onesided ignored": given(onesided=0),
        "window ignored": without("window"),
        "window from its end": seen("window", turned),
        "steps of one": seen("frame_step", lambda x: x * 0 + 1),
        "signal of the first batch": seen("signal", lambda x: np.broadcast_to(x[:1], x.shape)),
    },
    "HannWindow": {"periodic ignored": given(periodic=1), "always symmetric": given(periodic=0)},
    "BlackmanWindow": {"periodic ignored": given(periodic=1), "always symmetric": given(periodic=0)},
}


@cache
def cases(name: str) -> list[Sample]:
    """Return the cases of a spec that are of float32, or of integers."""
    return [each for each in samples(name, 3_000) if each.case.inputs[0].dtype in ("float32", "int64")]


def red(name: str, mistake: Mistake) -> Iterator[str]:
    """Yield the cases that a kernel with a mistake gets wrong or refuses."""
    operator = OPERATORS[name]
    for sample in cases(name):
        taken, arrays = mistake(sample.call, sample.arrays)
        tensors = {key: Tensor(sample.inputs[key].dtype, array) for key, array in arrays.items()}
        if operator.broken(taken, tensors) is not None:
            yield sample.case.id
            continue
        made = nearest(operator.oracle(taken, tensors, "ieee")[0])
        if compare(sample.expected[0], made).diff is not None:
            yield sample.case.id


@pytest.mark.parametrize("name", one_of(3, MISTAKES))
def test_a_right_kernel_turns_nothing_red(name: str) -> None:
    assert len(cases(name)) >= 10
    assert list(red(name, lambda call, arrays: (call, arrays))) == []


@pytest.mark.parametrize(
    ("name", "mistake"), one_of(6, [(name, each) for name, all_ in MISTAKES.items() for each in all_])
)
def test_a_mistake_turns_cases_red(name: str, mistake: str) -> None:
    assert len(list(islice(red(name, MISTAKES[name][mistake]), 2))) == 2
