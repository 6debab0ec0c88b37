from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.model.dtypes import Array
from harness.render.tensors import ROW, ROWS, WRONG, read_tensors

FLOAT = "Round@22:sweep=a;X=float32[2,3];values=random"


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_grids_mark_the_wrong_elements(tmp_path: Path) -> None:
    x = np.float32([[0.5, 1.5, 2.5], [-0.5, np.nan, np.inf]])
    expected = np.float32([[0, 2, 2], [-0.0, np.nan, np.inf]])
    actual = expected.copy()
    actual[0, 2], actual[1, 0], actual[1, 2] = np.nextafter(np.float32(2), np.float32(3)), 0.0, 1.0
    shown = read_tensors(saved(tmp_path / "a.npz", input_X=x, expected=expected, actual=actual), FLOAT)
    assert shown is not None
    assert [grid["name"] for grid in shown["grids"]] == ["X", "expected", "actual"]
    grid = shown["grids"][2]
    assert grid["dtype"] == "float32"
    assert grid["shape"] == [2, 3]
    assert [row["at"] for row in grid["rows"]] == [[0, 0], [1, 0]]
    assert [row["wrong"] for row in grid["rows"]] == [[2], [0, 2]]
    assert shown["grids"][0]["rows"][0] == {"at": [0, 0], "cells": ["0.5", "1.5", "2.5"], "wrong": []}
    assert shown["wrong"] == [
        ["0, 2", "2.0 (0x40000000)", "2.0000002 (0x40000001)", "1"],
        ["1, 0", "-0.0 (0x80000000)", "0.0 (0x00000000)", "1"],
        ["1, 2", "inf (0x7f800000)", "1.0 (0x3f800000)", ""],
    ]
    assert shown["ulp"][0] == ["1", 2]
    assert shown["ulp"][-1] == ["NaN or ∞", 1]
    assert sum(count for _, count in shown["ulp"]) == 3


def test_bfloat16_is_told_by_the_case_id(tmp_path: Path) -> None:
    case = "Round@22:sweep=a;X=bfloat16[1]"
    shown = read_tensors(
        saved(tmp_path / "a.npz", expected=np.uint16([0x3F80]), actual=np.uint16([0x4000])), case
    )
    assert shown is not None
    assert shown["wrong"] == [["0", "1.0 (0x3f80)", "2.0 (0x4000)", "128"]]


def test_integers_have_no_ulp(tmp_path: Path) -> None:
    case = "GatherND@13:sweep=a;data=int8[4];indices=int64[1,1]"
    shown = read_tensors(
        saved(tmp_path / "a.npz", input_indices=np.int64([[3]]), expected=np.int8([1]), actual=np.int8([2])),
        case,
    )
    assert shown is not None
    assert "ulp" not in shown
    assert shown["grids"][0]["dtype"] == "int64"


def test_a_large_tensor_shows_the_rows_with_wrong_elements(tmp_path: Path) -> None:
    expected = np.zeros(65_536, np.float16)
    actual = expected.copy()
    actual[[5, 40_000, 40_001]] = 1
    shown = read_tensors(
        saved(tmp_path / "a.npz", expected=expected, actual=actual), "Round@22:sweep=a;X=float16[65536]"
    )
    assert shown is not None
    rows = shown["grids"][0]["rows"]
    assert [row["at"] for row in rows] == [[8 * n] for n in range(ROWS - 1)] + [[40_000]]
    assert [row["at"] for row in rows if row["wrong"]] == [[0], [40_000]]
    assert shown["grids"][0]["shown"] == ROWS * ROW
    actual[:] = 1
    shown = read_tensors(
        saved(tmp_path / "a.npz", expected=expected, actual=actual), "Round@22:sweep=a;X=float16[65536]"
    )
    assert shown is not None
    assert len(shown["grids"][0]["rows"]) == ROWS
    assert len(shown["wrong"]) == WRONG
    assert sum(count for _, count in shown["ulp"]) == 65_536


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 1, 1, 1, 1, 1, 1, 1, 1)])
def test_any_shape_shows(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, np.int32)
    shown = read_tensors(
        saved(tmp_path / "a.npz", expected=array, actual=array + 1), "Gather@13:sweep=a;data=int32[2]"
    )
    assert shown is not None
    assert sum(len(row["cells"]) for row in shown["grids"][0]["rows"]) == array.size


def test_expected_alone_and_different_shapes(tmp_path: Path) -> None:
    alone = read_tensors(
        saved(tmp_path / "a.npz", expected=np.ones(2, np.int32)), "Gather@13:sweep=a;data=int32[2]"
    )
    assert alone is not None
    assert "wrong" not in alone
    different = read_tensors(
        saved(tmp_path / "b.npz", expected=np.ones(2, np.int32), actual=np.ones(3, np.int64)), "not an id"
    )
    assert different is not None
    assert [grid["dtype"] for grid in different["grids"]] == ["int32", "int64"]


def test_damaged_files_give_nothing(tmp_path: Path) -> None:
    whole = saved(tmp_path / "whole.npz", expected=np.ones(100, np.int32)).read_bytes()
    damaged = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "text": b"not a zip",
        "flipped": whole[:200] + bytes(byte ^ 0xFF for byte in whole[200:260]) + whole[260:],
    }
    for name, data in damaged.items():
        path = tmp_path / f"{name}.npz"
        path.write_bytes(data)
        assert read_tensors(path, FLOAT) is None, name
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, expected=np.array(["a", None], object))
    assert read_tensors(pickled, FLOAT) is None
    assert read_tensors(tmp_path / "absent.npz", FLOAT) is None


@pytest.mark.parametrize(
    "array",
    [
        np.array(["<script>"]),
        np.zeros(3, [("a", "i4")]),
        np.zeros(3, np.dtype("M8[s]")),
        np.zeros(2, np.longdouble),
    ],
    ids=["text", "struct", "time", "long double"],
)
def test_arrays_of_no_element_type_are_left_out(tmp_path: Path, array: Array) -> None:
    assert read_tensors(saved(tmp_path / "a.npz", expected=array, actual=array), FLOAT) is None


def test_files_that_claim_to_be_tensors(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.zeros(3))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f2", "fortran_order": False, "shape": (1 << 50,)}
    )
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as packed:
        packed.writestr("expected.npy", header.getvalue())
    for path in ("one.npy", "huge.npz"):
        assert read_tensors(tmp_path / path, FLOAT) is None
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.npz")
        assert read_tensors(tmp_path / "pipe.npz", FLOAT) is None


@pytest.mark.parametrize(
    ("dtype", "actual", "cells"),
    [
        ("float32", np.float32([[1.0, 2.25], [np.inf, 4.0]]), ("2.25 (0x40100000)", "inf (0x7f800000)")),
        ("bfloat16", np.uint16([[0x3F80, 0x4010], [0x7F80, 0x4080]]), ("2.25 (0x4010)", "inf (0x7f80)")),
    ],
)
def test_a_bound_is_shown_with_error_and_ratio(
    tmp_path: Path, dtype: str, actual: Array, cells: tuple[str, str]
) -> None:
    value, bound = np.array([[1.0, 2.0], [3.0, np.nan]]), np.array([[0.0, 0.1], [0.5, np.inf]])
    case = f"Exp@13:sweep=a;X={dtype}[2,2]"
    shown = read_tensors(
        saved(tmp_path / "a.npz", input_X=actual, expected=value, bound=bound, actual=actual), case
    )
    assert shown is not None
    assert [grid["name"] for grid in shown["grids"]] == ["X", "expected", "bound", "actual"]
    assert [grid["dtype"] for grid in shown["grids"]] == [dtype, "float64", "float64", dtype]
    assert [[row["wrong"] for row in grid["rows"]] for grid in shown["grids"][2:]] == [[[], []], [[1], [0]]]
    assert list(shown["columns"]) == ["Index", "Expected", "Actual", "Error", "Bound", "Error / bound"]
    assert shown["wrong"] == [
        ["0, 1", "2", cells[0], "0.25", "0.1", "2.5"],
        ["1, 0", "3", cells[1], "", "0.5", ""],
    ]
    assert "ulp" not in shown


def test_a_bound_that_does_not_belong_is_only_shown(tmp_path: Path) -> None:
    for value, bound in (
        (np.zeros(3), np.zeros(2)),
        (np.zeros(2), -np.ones(2)),
        (np.zeros(3), np.zeros(3)),
        (np.zeros(2, "f4"), np.zeros(2)),
    ):
        actual = np.ones(2, np.float32)
        shown = read_tensors(
            saved(tmp_path / "a.npz", expected=value, bound=bound, actual=actual),
            "Exp@13:sweep=a;X=float32[2]",
        )
        assert shown is not None
        assert len(shown["grids"]) == 3
        assert "columns" not in shown
