"""Shows the tensors that a run kept of a failing case: small grids of text with the wrong elements marked,
and a histogram of ULP distances.

Tensors are in `artifacts/` beside the run file, one `.npz` per result. They are only shown: a file that is
absent, damaged, too large or does not match the case id is no error and shows nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.caseid import parse
from harness.model.diff import differing, errors, ulps, write_at, write_element
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx
from harness.results.npz import load_arrays

ROW = 8
"""Elements a row of a grid shows; longer last axes are folded."""
ROWS = 16
WRONG = 40
BOUNDED_COLUMNS = ("Index", "Expected", "Actual", "Error", "Bound", "Error / bound")
_ULP_BOUNDS = (1, 2, 4, 16, 256, 65_536, 1 << 24)


def read_tensors(path: Path, case_id: str) -> dict[str, Any] | None:
    """Read one result's tensors as JSON-able grids, None if nothing useful is there."""
    arrays = load_arrays(path)
    if arrays is None:
        return None
    try:
        stated = parse(case_id).tensors
    except ValueError:
        stated = {}
    dtypes = {f"input_{name}": term.dtype for name, term in stated.items()}
    data = next(iter(dtypes.values()), "")
    plain = ("expected", "bound") if "bound" in arrays else ()  # float64, whatever the output's type
    ordered = sorted(arrays.items(), key=lambda item: _order(item[0]))
    tensors = {
        name: _tensor(array, "" if name in plain else dtypes.get(name, data)) for name, array in ordered
    }
    expected, actual = tensors.get("expected"), tensors.get("actual")
    shown: dict[str, Any] = {"grids": []}
    rows: dict[tuple[int, ...], list[int]] = {}
    wrong = None
    bounded = _bounded(tensors)
    if bounded and actual:
        apart, outside = errors(bounded, actual)
        wrong = outside.reshape(-1)
        rows[bounded.shape] = _rows(bounded.shape, np.flatnonzero(wrong).tolist())
        shown["columns"] = BOUNDED_COLUMNS
        shown["wrong"] = _beside(bounded, actual, apart.reshape(-1), wrong)
    elif (
        expected and actual and expected.dtype == actual.dtype and expected.array.shape == actual.array.shape
    ):
        wrong = differing(expected, actual).reshape(-1)
        rows[expected.array.shape] = _rows(expected.array.shape, np.flatnonzero(wrong).tolist())
        shown["wrong"] = _differences(expected, actual, wrong)
        distances = _distances(expected, actual, wrong)
        if distances is not None:
            shown["ulp"] = distances
    for name, tensor in tensors.items():
        shape = tensor.array.shape
        marks = wrong if name in ("expected", "actual") else None
        shown["grids"].append(
            _grid(name.removeprefix("input_"), tensor, rows.get(shape) or _rows(shape, ()), marks)
        )
    return shown if shown["grids"] else None


def _bounded(tensors: dict[str, Tensor]) -> Approx | None:
    """Return the expected result with its bound, None if a result has none or they do not belong together."""
    value, bound, actual = (tensors.get(name) for name in ("expected", "bound", "actual"))
    if value is None or bound is None or actual is None or value.array.shape != actual.array.shape:
        return None
    try:
        return Approx(actual.dtype, value.array, bound.array)
    except ValueError:
        return None


def _beside(expected: Approx, actual: Tensor, apart: Array, wrong: Array) -> list[list[str]]:
    """Write the wrong elements with value, error, bound and their ratio; a ratio that is no number is left
    empty."""
    value, bound = expected.value.reshape(-1), expected.bound.reshape(-1)
    found = np.ascontiguousarray(actual.array).reshape(-1)
    lines = []
    for offset in np.flatnonzero(wrong)[:WRONG]:
        index = ", ".join(map(str, _index(int(offset), expected.shape)))
        error, most = float(apart[offset]), float(bound[offset])
        ratio = f"{error / most:,.3g}" if most and math.isfinite(error) else ""
        written = f"{error:.3g}" if math.isfinite(error) else ""
        lines.append(
            [
                index,
                f"{float(value[offset]):.17g}",
                write_at(actual.dtype, found, offset),
                written,
                f"{most:.3g}",
                ratio,
            ]
        )
    return lines


def _order(name: str) -> tuple[int, str]:
    return ({"expected": 1, "bound": 2, "actual": 3}.get(name, 0), name)


def _tensor(array: Array, dtype: str) -> Tensor:
    known = DTYPES.get(dtype)
    if known is not None and known.storage != "O" and np.dtype(known.storage) == array.dtype:
        return Tensor(dtype, array)
    return Tensor(
        next((name for name, entry in DTYPES.items() if entry.storage == array.dtype.str[1:]), "float64"),
        array,
    )


def _rows(shape: tuple[int, ...], marked: Iterable[int]) -> list[int]:
    """Choose up to `ROWS` rows of `ROW` elements, as the offsets at which they start: those with marked
    elements, then the first others."""
    width = shape[-1] if shape else 1
    size = int(np.prod(shape))
    if not size:
        return []
    starts = (line * width + column for line in range(size // width) for column in range(0, width, ROW))
    of_marked = (offset // width * width + offset % width // ROW * ROW for offset in marked)
    chosen: dict[int, None] = {}
    for start in chain(of_marked, starts):
        chosen[start] = None
        if len(chosen) == ROWS:
            break
    return sorted(chosen)


def _grid(name: str, tensor: Tensor, rows: list[int], wrong: Array | None) -> dict[str, Any]:
    flat = np.ascontiguousarray(tensor.array).reshape(-1)
    width = tensor.array.shape[-1] if tensor.array.shape else 1
    lines: list[dict[str, Any]] = []
    shown = 0
    for start in rows:
        stop = min(start + ROW, (start // width + 1) * width)
        cells = [write_element(tensor.dtype, element).partition(" (")[0] for element in flat[start:stop]]
        marks = [place for place in range(stop - start) if wrong is not None and wrong[start + place]]
        shown += len(cells)
        lines.append({"at": _index(start, tensor.array.shape), "cells": cells, "wrong": marks})
    return {
        "name": name,
        "dtype": tensor.dtype,
        "shape": list(tensor.array.shape),
        "rows": lines,
        "size": flat.size,
        "shown": shown,
    }


def _index(offset: int, shape: tuple[int, ...]) -> list[int]:
    return [int(place) for place in np.unravel_index(offset, shape)] if shape else []


def _differences(expected: Tensor, actual: Tensor, wrong: Array) -> list[list[str]]:
    a, b = np.ascontiguousarray(expected.array).reshape(-1), np.ascontiguousarray(actual.array).reshape(-1)
    shape = expected.array.shape
    found = []
    for offset in np.flatnonzero(wrong)[:WRONG]:
        distance = ulps(
            Tensor(expected.dtype, a[offset : offset + 1]), Tensor(actual.dtype, b[offset : offset + 1])
        )
        far = "" if distance is None or not distance.size else f"{int(distance[0]):,}"
        index = ", ".join(map(str, _index(int(offset), shape)))
        found.append([index, write_at(expected.dtype, a, offset), write_at(actual.dtype, b, offset), far])
    return found


def _distances(expected: Tensor, actual: Tensor, wrong: Array) -> list[list[Any]] | None:
    """Count the wrong elements by ULP distance; those with a NaN or an infinity have none and stand last."""
    chosen = np.flatnonzero(wrong)
    a = np.ascontiguousarray(expected.array).reshape(-1)[chosen]
    b = np.ascontiguousarray(actual.array).reshape(-1)[chosen]
    found = ulps(Tensor(expected.dtype, a), Tensor(actual.dtype, b))
    if found is None:
        return None
    buckets = []
    for place, low in enumerate(_ULP_BOUNDS):
        high = _ULP_BOUNDS[place + 1] if place + 1 < len(_ULP_BOUNDS) else None
        inside = (found >= low) & (found < high) if high is not None else found >= low
        label = f"≥ {low:,}" if high is None else f"{low:,}" if high == low + 1 else f"{low:,}–{high - 1:,}"
        buckets.append([label, int(np.count_nonzero(inside))])
    buckets.append(["NaN or ∞", int(chosen.size - found.size)])
    return buckets
