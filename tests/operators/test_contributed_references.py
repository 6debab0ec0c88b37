"""ONNX Runtime's own operators against independent references: loops over numbers, written from the papers and the
document of each operator."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor, Value
from harness.model.diff import compare
from harness.model.expected import Approx, Expected, OneOf, nearest
from harness.operators import OPERATORS
from harness.operators.base import Call
from harness.operators.bounded import concatenate
from harness.operators.contrib import block_quantised, experts, group_query_attention
from tests import calling
from tests.mutants.any_operator import samples
from tests.sampled import one_of

RANDOM = np.random.default_rng(28)


@pytest.fixture(autouse=True)
def _own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test draws does not depend on the tests before it."""
    monkeypatch.setitem(globals(), "RANDOM", np.random.default_rng(28))


def asked(
    name: str, inputs: Mapping[str, Any], attributes: Mapping[str, Value], outputs: int = 1
) -> tuple[Expected, ...]:
    """Return what the oracle expects of an operator of com.microsoft."""
    arrays = {key: np.asarray(given) for key, given in inputs.items()}
    return calling.expected(f"com.microsoft.{name}", 1, arrays, attributes, outputs)


def holds(expected: Expected, reference: Any, most: float = 1e-3) -> None:
    """Assert that a reference lies within the bound, and that the bound is no wider than a thousandth of it all, or `most`."""
    assert isinstance(expected, Approx)
    found = np.asarray(reference, np.float64)
    assert expected.value.shape == found.shape
    assert (np.abs(expected.value - found) <= expected.bound + 1e-12).all()
    assert expected.bound.max() < most * (1 + np.abs(found).max())


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


def attended(q: Any, keys: Any, values: Any) -> Any:
    """Return the mean of values by the softmax of how well their keys match one query."""
    share = [math.exp(float(q @ key) / math.sqrt(len(q))) for key in keys]
    return sum(each * value for each, value in zip(share, values, strict=True)) / sum(share)


@pytest.mark.parametrize(("bits", "scales"), [(8, 1), (8, 16), (4, 1), (4, 16)])
def test_group_query_attention_with_a_quantised_cache(bits: int, scales: int) -> None:
    """A number q of a cache stands for q scale; what is new is rounded to it, and of 4 bits the first of two is lowest."""
    size, past, most = 16, 3, 1 << bits - 1
    held = {name: RANDOM.integers(-most, most, (past, size)) for name in "kv"}
    new = {name: RANDOM.integers(-14, 15, size) / 16 + 1 / 64 for name in "kv"}
    scale = {name: 0.125 / RANDOM.integers(1, 3, scales) for name in "kv"}
    rows: dict[str, list[Any]] = {}
    for name in "kv":
        added = [
            max(-most, min(most - 1, round(x / scale[name][n % scales]))) for n, x in enumerate(new[name])
        ]
        rows[name] = [*held[name].tolist(), added]

    def packed(row: list[int]) -> list[int]:
        return row if bits == 8 else [row[n] + 8 + 16 * (row[n + 1] + 8) for n in range(0, size, 2)]

    stored = {
        name: np.array([packed(row) for row in rows[name]], np.int8 if bits == 8 else np.uint8)
        for name in "kv"
    }
    real = {name: np.array(rows[name]) * scale[name] for name in "kv"}
    q = numbers(size)
    given = {
        "query": q.reshape(1, 1, size), "key": new["k"].astype(np.float32).reshape(1, 1, size),
        "value": new["v"].astype(np.float32).reshape(1, 1, size), "past_key": stored["k"][None, None, :past],
        "past_value": stored["v"][None, None, :past], "seqlens_k": np.array([past], np.int32),
        "total_sequence_length": np.array([past + 1], np.int32),
        **{f"{name}_scale": each.astype(np.float32).reshape((1,) if scales == 1 else (1, 1, 1, size)) for name, each in scale.items()},
    }  # fmt: skip
    way = "PER_TENSOR" if scales == 1 else "PER_CHANNEL"
    attributes: dict[str, Value] = {
        "num_heads": 1,
        "kv_num_heads": 1,
        "k_quant_type": way,
        "v_quant_type": way,
        "kv_cache_bit_width": bits,
    }
    y, *caches = asked("GroupQueryAttention", given, attributes, 3)
    holds(y, attended(q.astype(float), real["k"], real["v"]).reshape(1, 1, size))
    for name, cache in zip("kv", caches, strict=True):
        assert isinstance(cache, OneOf)
        assert all((each.array[0, 0] == stored[name]).all() for each in cache.candidates)


def test_group_query_attention_with_a_cache_of_a_window() -> None:
    """The walk of the document with 6 rows for a window of 4: which positions the rows hold after each step, and that each
    token sees the last 4. Several tokens at once leave what they leave one at a time."""
    size, window, capacity = 16, 4, 6
    k, v, q = (numbers(12, size) for _ in range(3))
    after = [
        "0",
        "01",
        "012",
        "0123",
        "01234",
        "012345",
        "3456",
        "34567",
        "345678",
        "6789",
        "6789a",
        "6789ab",
    ]
    for steps in ([1] * 12, [5, 7], [3, 9]):
        done, caches = 0, [np.zeros((1, 1, capacity, size), np.float32)] * 2
        for step in steps:
            total = done + step
            given = {
                "query": q[None, done:total], "key": k[None, done:total], "value": v[None, done:total],
                "past_key": caches[0], "past_value": caches[1], "seqlens_k": np.array([total - 1], np.int32),
                "total_sequence_length": np.array(total, np.int32),
            }  # fmt: skip
            attributes: dict[str, Value] = {
                "num_heads": 1,
                "kv_num_heads": 1,
                "local_window_size": window,
                "sliding_window_cache": 1,
            }
            y, *kept = asked("GroupQueryAttention", given, attributes, 3)
            wanted = [
                attended(
                    q[n].astype(float),
                    *(each[max(0, n - window + 1) : n + 1].astype(float) for each in (k, v)),
                )
                for n in range(done, total)
            ]
            holds(y, [wanted])
            places = [int(place, 16) for place in after[total - 1]]
            for n, (all_rows, cache) in enumerate(zip((k, v), kept, strict=True)):
                assert isinstance(cache, Approx)
                assert (cache.value[0, 0, : len(places)] == all_rows[places]).all()
                assert np.isinf(cache.bound[0, 0, len(places) :]).all()
                caches[n] = cache.value.astype(np.float32)
            done = total


def _other_end(data: Any, bits: int) -> Any:
    return (
        block_quantised.unpacked(data, bits)
        .reshape(*data.shape, 8 // bits)[..., ::-1]
        .reshape(*data.shape[:-1], data.shape[-1] * 8 // bits)
    )


def _as_new(old: Any, new: Any, scale: Any, call: Call, right: Any = group_query_attention.cached) -> Any:
    held, stands = right(old, new, scale, call)
    return held, stands if scale is None else concatenate([stands[:, :, : -new.shape[2]], new], axis=2)


def _all_that_fit(total: int, cache: Any, call: Call) -> int:
    return max(0, total - cache.shape[2]) if call.parameter("sliding_window_cache") else 0


_samples = functools.cache(samples)


@pytest.mark.parametrize(
    ("name", "module", "function", "wrong"),
    one_of(
        4,
        [
            ("QMoE", experts, "unpacked", _other_end),
            ("GroupQueryAttention", group_query_attention, "unpacked", _other_end),
            ("GroupQueryAttention", group_query_attention, "cached", _as_new),
            ("GroupQueryAttention", group_query_attention, "given_up", _all_that_fit),
        ],
    ),
)
def test_a_wrong_kernel_turns_two_cases_red(
    monkeypatch: pytest.MonkeyPatch, name: str, module: Any, function: str, wrong: Any
) -> None:
    """One that reads the last number of a byte first, attends to new keys before they are rounded, or keeps all rows of a
    cache that slides."""
    operator = OPERATORS[f"com.microsoft.{name}"]
    cases = [
        each for each in _samples(operator.name) if re.search("k_scale=|sliding|zero_points=", each.case.id)
    ]
    right = [each.expected for each in cases]
    with monkeypatch.context() as patched, np.errstate(all="ignore"):
        patched.setattr(module, function, wrong)
        red = [
            each.case.id
            for each, expected in zip(cases, right, strict=True)
            for one, other in zip(expected, operator.oracle(each.call, each.inputs, "opencl"), strict=True)
            if compare(one, nearest(other)).diff is not None
        ]
    assert len(set(red)) >= 2


def test_attention_with_values_of_another_size_and_a_shared_buffer() -> None:
    x, w = numbers(1, 2, 3), numbers(3, 2 * 4 + 6)
    made = x[0].astype(float) @ w.astype(float)
    q, k, v = made[:, :4], made[:, 4:8], made[:, 8:]
    wanted = [
        np.concatenate(
            [
                attended(row[s], k[:, s], v[:, t])
                for s, t in ((slice(2), slice(3)), (slice(2, 4), slice(3, 6)))
            ]
        )
        for row in q
    ]
    attributes: dict[str, Value] = {"num_heads": 2, "qkv_hidden_sizes": (4, 4, 6)}
    holds(asked("Attention", {"input": x, "weights": w}, attributes)[0], [wanted])
    buffers = {name: numbers(1, 1, 5, 4) for name in ("past_key", "past_value")}
    new = {name: numbers(1, 2, 4) for name in ("query", "key", "value")}
    keys, values = (
        np.concatenate([buffers[f"past_{name}"][0, 0, :2], new[name][0]]).astype(float)
        for name in ("key", "value")
    )
    y, present, _ = asked(
        "MultiHeadAttention",
        {**new, **buffers, "past_sequence_length": np.array([2], np.int32)},
        {"num_heads": 1},
        3,
    )
    holds(y, [[attended(row.astype(float), keys, values) for row in new["query"][0]]])
    assert isinstance(present, Approx)
    assert (present.value[0, 0, :4] == keys).all()
    assert np.isinf(present.bound[0, 0, 4]).all()


@pytest.mark.parametrize(("keys", "broken"), [(5, False), (6, True), (10, True)])
def test_a_mask_beside_buffers_has_the_cached_and_the_new_keys(keys: int, broken: bool) -> None:
    name, new, buffer = "com.microsoft.MultiHeadAttention", numbers(1, 3, 4), numbers(1, 1, 7, 4)
    floats = {"query": new, "key": new, "value": new, "past_key": buffer, "past_value": buffer}
    integers = {"key_padding_mask": np.ones((1, keys)), "past_sequence_length": np.array([2])}
    inputs = {key: Tensor("float32", each) for key, each in floats.items()}
    inputs |= {key: Tensor("int32", each.astype(np.int32)) for key, each in integers.items()}
    rule = OPERATORS[name].broken_rule(calling.call_with(name, 1, inputs, {"num_heads": 1}))
    assert (rule is not None) == broken


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


@pytest.mark.parametrize(("bits", "block"), [(2, 0), (4, 0), (8, 0), (2, 16), (4, 16), (8, 16)])
def test_quantised_experts_with_zero_points_and_weights_of_a_router(bits: int, block: int) -> None:
    experts, size, inner = 3, 32, 16
    x, router, mixing = numbers(2, size), numbers(2, experts), numbers(2, experts)
    given: dict[str, Any] = {"input": x, "router_probs": router, "router_weights": mixing}
    real: dict[int, Any] = {}
    for n, (rows, columns) in {1: (inner, size), 2: (size, inner)}.items():
        q = RANDOM.integers(0, 1 << bits, (experts, rows, columns))
        blocks = columns // block if block else 1
        scales = RANDOM.integers(1, 9, (experts, rows, blocks)) / 64
        zeros = RANDOM.integers(0, 1 << bits, (experts, rows, blocks))
        real[n] = (q - np.repeat(zeros, columns // blocks, -1)) * np.repeat(scales, columns // blocks, -1)
        given[f"fc{n}_experts_weights"] = in_bytes(q, bits)
        given[f"fc{n}_scales"] = (scales if block else scales[..., 0]).astype(np.float32)
        given[f"fc{n}_zero_points"] = in_bytes(zeros if block else zeros[..., 0], bits)
    wanted = np.zeros((2, size))
    for token in range(2):
        for e in sorted(range(experts), key=lambda e, p=router[token]: -p[e])[:2]:
            hidden = np.maximum(real[1][e] @ x[token].astype(float), 0)
            wanted[token] += float(mixing[token, e]) * (real[2][e] @ hidden)
    attributes: dict[str, Value] = {"k": 2, "expert_weight_bits": bits}
    rounded = 0.1 if block and bits == 8 else 1e-3  # two products of which the first factors may have 8 bits
    holds(
        asked("QMoE", given, {**attributes, **({"block_size": block} if block else {})})[0], wanted, rounded
    )


def in_bytes(q: Any, bits: int) -> Any:
    """Return numbers of some bits as bytes hold them along the last dimension, the first lowest, zeros at the end."""
    each = 8 // bits
    wide = np.pad(q, [(0, 0)] * (q.ndim - 1) + [(0, -q.shape[-1] % each)])
    return sum(wide[..., n::each] << bits * n for n in range(each)).astype(np.uint8)


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


def test_group_norm_of_a_sum() -> None:
    x, skip, bias, gamma, beta = numbers(2, 3, 2, 6), numbers(2, 6), numbers(6), numbers(6), numbers(6)
    given = {"X": x, "gamma": gamma, "beta": beta, "skip": skip, "bias": bias}
    found = asked("SkipGroupNorm", given, {"groups": 3, "activation": 1, "epsilon": 0.25}, 2)
    total = x.astype(float) + skip[:, None, None].astype(float) + bias
    wanted = np.zeros_like(total)
    for image in range(2):
        for group in range(3):
            part = total[image, :, :, 2 * group : 2 * group + 2]
            mean = part.sum() / part.size
            spread = math.sqrt(((part - mean) ** 2).sum() / part.size + 0.25)
            wanted[image, :, :, 2 * group : 2 * group + 2] = (part - mean) / spread
    wanted = wanted * gamma + beta
    holds(found[0], wanted / (1 + np.exp(-wanted)))
    holds(found[1], total)


def test_a_convolution_backward_with_the_pads_of_an_input() -> None:
    x, w, b = numbers(1, 4, 3), numbers(4, 2, 3), numbers(4)
    given = {"X": x, "W": w, "Pads": np.array([1, 2]), "B": b}
    (found,) = asked("ConvTransposeWithDynamicPads", given, {"group": 2, "strides": (2,), "dilations": (2,)})
    full = np.zeros((1, 4, 9))
    for channel in range(4):
        for place in range(3):
            for output in range(2):
                for tap in range(3):
                    at = 2 * place + 2 * tap
                    full[0, 2 * (channel // 2) + output, at] += float(x[0, channel, place]) * float(
                        w[channel, output, tap]
                    )
    holds(found, full[:, :, 1:-2] + b.astype(float)[:, None])


def test_distances_and_inverses() -> None:
    a, b = numbers(3, 7), numbers(4, 7)
    wanted = [[math.dist(map(float, p), map(float, q)) for q in b] for p in a]
    holds(asked("CDist", {"A": a, "B": b}, {"metric": "euclidean"})[0], wanted)
    x = numbers(5, 5) + 4 * np.eye(5, dtype=np.float32)
    (found,) = asked("Inverse", {"X": x}, {})
    assert np.abs(nearest(found).array.astype(float) @ x - np.eye(5)).max() < 1e-6


def test_attention_of_several_heads_in_a_batch() -> None:
    q, k, v = (numbers(2, 5, 8) for _ in range(3))
    wanted = np.zeros((2, 5, 8))
    for batch, token, head in np.ndindex(2, 5, 2):
        at = slice(4 * head, 4 * head + 4)
        wanted[batch, token, at] = attended(
            q[batch, token, at].astype(float), k[batch, :, at].astype(float), v[batch, :, at].astype(float)
        )
    holds(asked("MultiHeadAttention", {"query": q, "key": k, "value": v}, {"num_heads": 2})[0], wanted)


def test_positions_of_a_first_prompt_are_those_behind_its_first_element() -> None:
    q, k, v = numbers(2, 3, 32), numbers(2, 3, 16), numbers(2, 3, 16)
    cos, sin = numbers(9, 8), numbers(9, 8)
    given = {"query": q, "key": k, "value": v, "seqlens_k": np.full(2, 2, np.int32)}
    given |= {"total_sequence_length": np.int32(3), "cos_cache": cos, "sin_cache": sin}
    given["position_ids"] = np.array([[4, 0, 0], [1, 8, 2]])
    attributes: dict[str, Value] = {"num_heads": 2, "kv_num_heads": 1, "do_rotary": 1}
    keys = asked("GroupQueryAttention", given, attributes, outputs=3)[1]
    a, b = k[..., :8].astype(float), k[..., 8:].astype(float)
    turned = np.concatenate([a * cos[4:7] - b * sin[4:7], b * cos[4:7] + a * sin[4:7]], -1)
    holds(keys, turned[:, None])


def test_a_limit_of_zero_leaves_nothing_of_a_gate() -> None:
    given = {"input": numbers(1, 4), "router_probs": numbers(1, 1), "fc1_experts_weights": numbers(1, 8, 4)}
    given["fc2_experts_weights"] = numbers(1, 4, 4)
    attributes: dict[str, Value] = {"activation_type": "swiglu", "swiglu_fusion": 1, "activation_beta": 1.0}
    g = np.minimum(given["fc1_experts_weights"][0, 0::2].astype(float) @ given["input"][0], 0)
    wanted = given["fc2_experts_weights"][0].astype(float) @ (g / (1 + np.exp(-g)))
    holds(asked("MoE", given, {**attributes, "swiglu_limit": 0.0})[0], wanted[None])


def test_scales_of_columns_of_the_first_matrix() -> None:
    a, b = (RANDOM.integers(0, 256, shape, dtype=np.uint8) for shape in ((2, 3), (3, 4)))
    scales, zeros = numbers(3), np.array([1, 200, 7], np.uint8)
    given = {"A": a, "B": b, "a_scale": scales, "b_scale": np.float32(0.5), "a_zero_point": zeros}
    wanted = (a.astype(float) - zeros) * scales @ b.astype(float) * 0.5
    holds(asked("MatMulIntegerToFloat", given, {})[0], wanted)


_ANGLES = np.zeros((5, 2), np.float32)
_WORDS = {
    "input_ids": np.zeros((1, 3), np.int32),
    "word_embedding": np.zeros((7, 4), np.float32),
    "position_embedding": np.zeros((5, 4), np.float32),
    "gamma": np.ones(4, np.float32),
    "beta": np.zeros(4, np.float32),
}


@pytest.mark.parametrize(
    ("name", "given", "attributes", "index", "least", "most"),
    [
        (
            "NGramRepeatBlock",
            {"input_ids": np.zeros((1, 4), np.int64), "scores": np.zeros((1, 3), np.float32)},
            {"ngram_size": 1},
            "input_ids",
            0,
            2,
        ),
        (
            "RotaryEmbedding",
            {
                "input": np.zeros((1, 3, 4), np.float32),
                "position_ids": np.zeros((1, 3), np.int64),
                "cos_cache": _ANGLES,
                "sin_cache": _ANGLES,
            },
            {},
            "position_ids",
            0,
            4,
        ),
        (
            "RotaryEmbedding",
            {
                "input": np.zeros((1, 3, 4), np.float32),
                "position_ids": np.zeros(1, np.int64),
                "cos_cache": _ANGLES,
                "sin_cache": _ANGLES,
            },
            {},
            "position_ids",
            0,
            2,
        ),
        ("EmbedLayerNormalization", _WORDS, {}, "input_ids", 0, 6),
        (
            "EmbedLayerNormalization",
            {**_WORDS, "position_ids": np.zeros((1, 3), np.int32)},
            {},
            "position_ids",
            0,
            4,
        ),
    ],
)
def test_indices_are_within_what_they_index(
    name: str, given: dict[str, Any], attributes: dict[str, Value], index: str, least: int, most: int
) -> None:
    operator = f"com.microsoft.{name}"
    for place, wrong in ((least, False), (most, False), (least - 1, True), (most + 1, True)):
        changed = {**given, index: given[index].copy()}
        changed[index].flat[-1] = place
        tensors = {key: Tensor(str(array.dtype), array) for key, array in changed.items()}
        broken = OPERATORS[operator].broken(calling.call_with(operator, 1, tensors, attributes), tensors)
        assert (broken is not None) == wrong


def test_words_have_places_of_their_own_or_enough_of_the_embedding() -> None:
    for words, wrong in ((5, False), (6, True)):
        given = {**_WORDS, "input_ids": np.zeros((1, words), np.int32)}
        tensors = {key: Tensor(str(array.dtype), array) for key, array in given.items()}
        call = calling.call_with("com.microsoft.EmbedLayerNormalization", 1, tensors)
        assert (OPERATORS["com.microsoft.EmbedLayerNormalization"].broken(call, tensors) is not None) == wrong
