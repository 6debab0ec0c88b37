"""Bug reports without a user's numbers: what is drawn, and what has to stay."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.model.case import Case, Tensor
from harness.model.float_formats import encode
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.specs.sweeps.calls import call_of, case_inputs
from harness.targets.execution import Prepared
from harness.triage import redrawn
from tests.running import SPECS


class Needing:
    """Stands for a target on which a case fails as long as one of its inputs has its first elements."""

    seed = 3

    def __init__(self, position: int | None) -> None:
        self._position = position
        self._first: Any = None

    def fresh(self, case: Case) -> Any:
        inputs = case_inputs(call_of(case), case, 0)
        held = None if self._position is None else inputs[self._position].array.tobytes()
        self._first = held if self._first is None else self._first
        prepared = Prepared(case, call_of(case), inputs)
        return SimpleNamespace(prepared=prepared, signature=held == self._first)


@pytest.mark.parametrize(("needed", "kept"), [(None, ()), (0, ("A",)), (1, ("B",))])
def test_what_the_failure_needs_stays(needed: int | None, kept: tuple[str, ...]) -> None:
    plan = expand(load_specs([SPECS / "Mul.yaml"]))
    case = next(case for case in plan if case.id.endswith("A=float32[3];B=float32[3]"))
    before = case_inputs(call_of(case), case, 0)
    found = redrawn.redrawn(Needing(needed), case, plan.by_operator[case.operator])  # type: ignore[arg-type]
    assert found.kept == kept
    after = case_inputs(call_of(found.case), found.case, 0)
    same = [np.array_equal(one.array, other.array) for one, other in zip(before, after, strict=True)]
    assert same == [needed == 0, needed == 1]


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor("float32", np.linspace(-3, 5, 1000, dtype="f")),
        Tensor("float16", encode("float16", np.linspace(0, 1, 1000))),
        Tensor("uint8", np.arange(7, 90, dtype=np.uint8)),
        Tensor("float32", np.float32(0.05)),
        Tensor("bool", np.ones((2, 2), bool)),
    ],
    ids=lambda tensor: f"{tensor.dtype}{tensor.array.shape}",
)
def test_what_is_drawn_is_like_what_was_there(tensor: Tensor) -> None:
    drawn = redrawn._like(tensor, np.random.default_rng(0))
    assert (drawn.dtype, drawn.array.shape, drawn.array.dtype) == (
        tensor.dtype, tensor.array.shape, tensor.array.dtype,
    )  # fmt: skip
    if tensor.array.size > 4:
        assert not np.array_equal(drawn.array, tensor.array)
        assert tensor.array.min() <= drawn.array.min() <= drawn.array.max() <= tensor.array.max()
        assert (
            abs(drawn.array.mean(dtype=float) - tensor.array.mean(dtype=float))
            < tensor.array.std(dtype=float) / 4
        )
