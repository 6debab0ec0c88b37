"""What is given in place of sums of products."""

from __future__ import annotations

from harness.model.expected import Expected
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.products.convolving import TRANSPOSED


@deviation
def whole_bias(asked: Deviating) -> tuple[Expected, ...]:
    """Gemm: C in place of beta * C."""
    return asked.formula(beta=1.0)


@deviation
def same_as_pads(asked: Deviating) -> tuple[Expected, ...]:
    """ConvTranspose: SAME stands for the pads that it takes away; where there are none, the output ends with what is
    added."""
    pads = TRANSPOSED.window(asked.call).pads
    return asked.formula(auto_pad="NOTSET", pads=pads)
