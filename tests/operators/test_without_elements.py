"""Formulas of inputs without an element in a dimension give outputs of the inferred shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.calling import expected


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "shape"),
    [
        ("GridSample", {"X": (0, 2, 4, 5), "grid": (0, 1, 17, 2)}, {}, (0, 2, 1, 17)),
        ("GridSample", {"X": (1, 0, 4, 5), "grid": (1, 3, 2, 2)}, {}, (1, 0, 3, 2)),
        ("MaxRoiPool", {"X": (1, 0, 4, 4), "rois": (3, 5)}, {"pooled_shape": (2, 3)}, (3, 0, 2, 3)),
    ],
)
def test_the_output_has_no_element_either(
    operator: str, shapes: dict[str, tuple[int, ...]], attributes: dict[str, Any], shape: tuple[int, ...]
) -> None:
    inputs = {name: np.zeros(each, "f4") for name, each in shapes.items()}
    (found,) = expected(operator, 22, inputs, attributes)
    assert found.shape == shape
