"""QMoE with weights of float8e4m3fn against loops over tokens and rows."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.expected import Approx
from harness.model.float_formats import decode
from harness.operators import OPERATORS
from harness.specs.sweeps.calls import call_of, case_inputs
from tests.plans import plan_of


@pytest.mark.parametrize("sweep", ["floats_of_8_bits", "square_blocks_of_floats"])
def test_weights_are_multiplied_by_the_scale_of_their_expert_or_block(sweep: str) -> None:
    cases = [case for case in plan_of("com.microsoft.QMoE") if f"sweep={sweep};input=float32" in case.id]
    assert cases
    for case in cases:
        call = call_of(case)
        given = {
            name: decode(each.dtype, each.array)
            if each.dtype.startswith("float8")
            else each.array.astype(float)
            for name, each in zip(call.inputs, case_inputs(call, case, 0), strict=True)
        }
        (found,) = OPERATORS["com.microsoft.QMoE"].oracle(
            call, dict(zip(call.inputs, case_inputs(call, case, 0), strict=True)), "opencl"
        )
        assert isinstance(found, Approx)
        x = given["input"].reshape(-1, given["input"].shape[-1])
        expected = np.zeros_like(x)
        for t, token in enumerate(x):
            p = np.exp(given["router_probs"][t])
            p = p / p.sum()
            best = sorted(range(len(p)), key=lambda e: -p[e])[: call.parameter("k")]
            total = sum(p[e] for e in best) if call.parameter("normalize_routing_weights") else 1.0
            for e in best:
                h = _rows(given, 1, e, token)
                if "fc3_scales" in given:
                    g, up = np.minimum(h, 7), np.clip(_rows(given, 3, e, token), -7, 7)
                    alpha, beta = call.parameter("activation_alpha"), call.parameter("activation_beta")
                    h = g / (1 + np.exp(-alpha * g)) * (up + beta)
                else:
                    h = np.maximum(h, 0)
                expected[t] += p[e] / total * _rows(given, 2, e, h)
        np.testing.assert_allclose(found.value.reshape(x.shape), expected, rtol=1e-9, atol=1e-9)


def _rows(given: dict[str, np.ndarray], m: int, expert: int, x: np.ndarray) -> np.ndarray:
    weights = given[f"fc{m}_experts_weights"][expert]
    scales = given.get(f"fc{m}_global_scale", given.get(f"fc{m}_scales"))
    assert scales is not None
    found = []
    for n, row in enumerate(weights):
        each = (
            scales[expert] if scales.ndim == 1 else scales[expert, n // 16, k // 16] for k in range(len(x))
        )
        found.append(sum(w * s * v for w, s, v in zip(row, each, x, strict=True)))
    return np.array(found)
