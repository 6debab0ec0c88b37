"""The bits of NaNs, which decide no verdict."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.nan_bits import nan_bits
from harness.model.result import NanBits
from harness.model.verdict import Outcome
from harness.run.judge import judge
from tests.prepared import PROVIDER, answered, graph_of, placed, prepare, right_output


def tensor(dtype: str, *bits: int) -> Tensor:
    entry = DTYPES[dtype]
    return Tensor(dtype, np.array(bits, f"<u{entry.itemsize}").view(entry.storage))


@pytest.mark.parametrize(
    ("dtype", "signalling", "quiet", "other"),
    [
        ("float16", 0x7C01, 0x7E01, 0x7E00),
        ("bfloat16", 0x7F81, 0x7FC1, 0x7FC0),
        ("float32", 0x7F800001, 0x7FC00001, 0xFFC00001),
        ("float64", 0x7FF0000000000001, 0x7FF8000000000001, 0x7FF8000000000000),
    ],
)
def test_kept_quieted_and_changed(dtype: str, signalling: int, quiet: int, other: int) -> None:
    given = tensor(dtype, signalling, signalling, signalling, quiet, 0)
    assert nan_bits(given, tensor(dtype, signalling, quiet, other, quiet, 0)) == NanBits(dtype, 2, 1, 1)
    assert nan_bits(tensor(dtype, quiet), tensor(dtype, signalling)) == NanBits(dtype, 0, 0, 1)
    assert nan_bits(tensor(dtype, 0, quiet), tensor(dtype, quiet, 0)) is None  # one of them alone is no NaN


def test_what_has_no_nan() -> None:
    assert nan_bits(tensor("int32", 5), tensor("int32", 5)) is None
    empty = Tensor("float32", np.zeros((0,), np.float32))
    assert nan_bits(empty, empty) is None
    assert nan_bits(tensor("float32", 0x7F800001), tensor("float64", 0x7FF0000000000001)) is None


def test_a_changed_payload_is_recorded_and_no_failure() -> None:
    prepared = prepare("GatherElements", "float32")
    right = right_output(prepared)
    nan = np.full(right.array.shape, 0x7FC00001, np.uint32).view(np.float32)
    inputs = tuple(
        each._replace(array=np.full(each.array.shape, nan.reshape(-1)[0])) if n == 0 else each
        for n, each in enumerate(prepared.inputs)
    )
    held = prepared._replace(inputs=inputs)
    answer = Tensor("float32", (nan.view(np.uint32) | 2).view(np.float32))
    found = judge(held, graph_of(held), answered(answer, placed("GatherElements")), PROVIDER)
    assert found.outcome is Outcome.PASS
    assert found.nans is not None
    assert (found.nans.kept, found.nans.quieted, found.nans.changed) == (0, 0, nan.size)
