"""ONNX Runtime's own operators against independent references: loops over numbers, written from the papers and the
document of each operator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor, Value
from harness.model.expected import Approx, Expected, OneOf, nearest
from harness.operators import OPERATORS
from harness.operators.base import TensorType
from harness.specs.sweeps.calls import make_call

RANDOM = np.random.default_rng(28)


def asked(
    name: str, inputs: Mapping[str, Any], attributes: Mapping[str, Value], outputs: int = 1
) -> tuple[Expected, ...]:
    """Return what the oracle expects of an operator of com.microsoft."""
    operator = OPERATORS[f"com.microsoft.{name}"]
    tensors = {key: Tensor(str(np.asarray(given).dtype), np.asarray(given)) for key, given in inputs.items()}
    types = {key: TensorType(each.dtype, each.array.shape) for key, each in tensors.items()}
    constants = {key: each.array for key, each in tensors.items() if key in operator.constants}
    call = make_call(operator, 1, types, attributes, constants, None, outputs)
    assert operator.broken_rule(call) is None
    return operator.oracle(call, tensors, "ieee")


def holds(expected: Expected, reference: Any) -> None:
    """Assert that a reference lies within the bound, and that the bound is no wider than a thousandth of it all."""
    assert isinstance(expected, Approx)
    found = np.asarray(reference, np.float64)
    assert expected.value.shape == found.shape
    assert (np.abs(expected.value - found) <= expected.bound + 1e-12).all()
    assert expected.bound.max() < 1e-3 * (1 + np.abs(found).max())


def numbers(*shape: int) -> Any:
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize(("bits", "block", "k"), [(2, 16, 20), (4, 16, 33), (4, 32, 32), (8, 16, 17)])
def test_matmul_nbits_reads_bits_from_the_lowest_of_each_block(bits: int, block: int, k: int) -> None:
    blocks = -(-k // block)
    packed = RANDOM.integers(0, 256, (3, blocks, block * bits // 8), dtype=np.uint8)
    zeros = RANDOM.integers(0, 256, (3, -(-blocks * bits // 8)), dtype=np.uint8)
    a, scales = numbers(2, k), numbers(3, blocks)
    wanted = np.zeros((2, 3))
    for row in range(3):
        zero_bits = sum(int(byte) << 8 * place for place, byte in enumerate(zeros[row]))
        for place in range(k):
            held = sum(int(byte) << 8 * at for at, byte in enumerate(packed[row, place // block]))
            q = held >> bits * (place % block) & (1 << bits) - 1
            zero = zero_bits >> bits * (place // block) & (1 << bits) - 1
            wanted[:, row] += a[:, place].astype(float) * (q - zero) * float(scales[row, place // block])
    given = {"A": a, "B": packed, "scales": scales, "zero_points": zeros}
    holds(asked("MatMulNBits", given, {"K": k, "N": 3, "bits": bits, "block_size": block})[0], wanted)


def test_group_query_attention_with_all_that_it_has() -> None:
    heads, groups, size, past, new = 4, 2, 16, 3, 2
    q, k, v = numbers(1, new, heads * size), numbers(1, new, groups * size), numbers(1, new, groups * size)
    old_k, old_v, sink = numbers(1, groups, past, size), numbers(1, groups, past, size), numbers(heads)
    angles = RANDOM.uniform(0, 3, (8, size // 2))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def turned(x: Any, place: int) -> list[float]:
        half = size // 2
        c, s = cos[place].astype(float), sin[place].astype(float)
        return [*(x[:half] * c - x[half:] * s), *(x[half:] * c + x[:half] * s)]

    wanted = np.zeros((1, new, heads * size))
    for head in range(heads):
        group = head * groups // heads
        keys = [*old_k[0, group].astype(float)]
        values = [*old_v[0, group].astype(float)]
        for token in range(new):
            at = slice(group * size, (group + 1) * size)
            keys.append(np.array(turned(k[0, token, at].astype(float), past + token)))
            values.append(v[0, token, at].astype(float))
        for token in range(new):
            own = turned(q[0, token, head * size : (head + 1) * size].astype(float), past + token)
            seen = range(max(0, past + token + 1 - 3), past + token + 1)  # a window of 3
            scores = [2.5 * math.tanh(float(np.dot(own, keys[n])) / math.sqrt(size) / 2.5) for n in seen]
            total = sum(map(math.exp, scores)) + math.exp(float(sink[head]))
            mean = sum(math.exp(score) / total * values[n] for score, n in zip(scores, seen, strict=True))
            wanted[0, token, head * size : (head + 1) * size] = mean
    given = {
        "query": q, "key": k, "value": v, "past_key": old_k, "past_value": old_v, "seqlens_k": np.array([past + new - 1], np.int32),
        "total_sequence_length": np.array([past + new], np.int32), "cos_cache": cos, "sin_cache": sin, "head_sink": sink,
    }  # fmt: skip
    attributes = {
        "num_heads": heads,
        "kv_num_heads": groups,
        "do_rotary": 1,
        "softcap": 2.5,
        "local_window_size": 3,
    }
    holds(asked("GroupQueryAttention", given, attributes, 3)[0], wanted)


def test_attention_with_padding_and_earlier_tokens_alone() -> None:
    x, w, b = numbers(2, 3, 4), numbers(4, 12), numbers(12)
    ends = np.array([2, 3], np.int32)
    wanted = np.zeros((2, 3, 4))
    for batch in range(2):
        made = x[batch].astype(float) @ w.astype(float) + b
        for head in range(2):
            q, k, v = (made[:, 4 * part + 2 * head : 4 * part + 2 * head + 2] for part in range(3))
            for token in range(3):
                terms = [
                    float(q[token] @ k[n]) / math.sqrt(2) - (10000 if n >= ends[batch] else 0)
                    for n in range(token + 1)
                ]
                most = max(terms)
                share = [math.exp(each - most) for each in terms]
                mean = sum(each * v[n] for n, each in enumerate(share)) / sum(share)
                wanted[batch, token, 2 * head : 2 * head + 2] = mean
    given = {"input": x, "weights": w, "bias": b, "mask_index": ends}
    holds(asked("Attention", given, {"num_heads": 2, "unidirectional": 1})[0], wanted)


def test_experts_that_a_router_chooses() -> None:
    x, router = numbers(3, 4), numbers(3, 4)
    first, second, bias = numbers(4, 6, 4), numbers(4, 4, 6), numbers(4, 6)
    wanted = np.zeros((3, 4))
    for token in range(3):
        p = np.exp(router[token].astype(float))
        p /= p.sum()
        best = sorted(range(4), key=lambda e, p=p: -p[e])[:2]
        for e in best:
            hidden = [max(0.0, float(first[e, n].astype(float) @ x[token] + bias[e, n])) for n in range(6)]
            wanted[token] += p[e] / sum(p[each] for each in best) * (second[e].astype(float) @ hidden)
    given = {
        "input": x,
        "router_probs": router,
        "fc1_experts_weights": first,
        "fc1_experts_bias": bias,
        "fc2_experts_weights": second,
    }
    holds(asked("MoE", given, {"k": 2, "normalize_routing_weights": 1})[0], wanted)


def test_quantised_sums_and_products_in_fractions() -> None:
    a, b = (RANDOM.integers(0, 256, 40, dtype=np.uint8) for _ in range(2))
    scales = {"A_scale": np.float32(0.375), "B_scale": np.float32(0.25), "C_scale": np.float32(0.625)}
    zeros = {"A_zero_point": np.uint8(3), "B_zero_point": np.uint8(200), "C_zero_point": np.uint8(100)}
    one, other, last = (Fraction(float(each)) for each in scales.values())
    for name, f in (("QLinearAdd", lambda p, q: p + q), ("QLinearMul", lambda p, q: p * q)):
        (found,) = asked(name, {"A": a, "B": b, **scales, **zeros}, {})
        for n in range(40):
            exact = f((int(a[n]) - 3) * one, (int(b[n]) - 200) * other) / last
            assert isinstance(found, OneOf)
            allowed = {int(each.array[n]) for each in found.candidates}
            assert min(max(round(exact) + 100, 0), 255) in allowed
            assert len(allowed) <= 2


def test_normalisations_of_sums() -> None:
    x, skip, gamma, beta = numbers(2, 3, 5), numbers(2, 3, 5), numbers(5), numbers(5)
    wanted = np.zeros((2, 3, 5))
    for batch in range(2):
        for token in range(3):
            s = [float(p) + float(q) for p, q in zip(x[batch, token], skip[batch, token], strict=True)]
            mean = sum(s) / 5
            variance = sum((each - mean) ** 2 for each in s) / 5
            wanted[batch, token] = [(each - mean) / math.sqrt(variance + 0.125) for each in s]
    given = {"input": x, "skip": skip, "gamma": gamma, "beta": beta}
    holds(asked("SkipLayerNormalization", given, {"epsilon": 0.125})[0], wanted * gamma + beta)


def test_distances_and_inverses() -> None:
    a, b = numbers(3, 7), numbers(4, 7)
    wanted = [[math.dist(map(float, p), map(float, q)) for q in b] for p in a]
    holds(asked("CDist", {"A": a, "B": b}, {"metric": "euclidean"})[0], wanted)
    x = numbers(5, 5) + 4 * np.eye(5, dtype=np.float32)
    (found,) = asked("Inverse", {"X": x}, {})
    assert np.abs(nearest(found).array.astype(float) @ x - np.eye(5)).max() < 1e-6


def test_pytorch_where_it_is_installed() -> None:
    torch = pytest.importorskip("torch")
    q, k, v = (numbers(2, 5, 8) for _ in range(3))
    by_heads = [
        torch.tensor(each, dtype=torch.float64).reshape(2, 5, 2, 4).transpose(1, 2) for each in (q, k, v)
    ]
    wanted = torch.nn.functional.scaled_dot_product_attention(*by_heads).transpose(1, 2).reshape(2, 5, 8)
    holds(
        asked("MultiHeadAttention", {"query": q, "key": k, "value": v}, {"num_heads": 2})[0], wanted.numpy()
    )
