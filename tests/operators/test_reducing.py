"""Operators that reduce, accumulate, choose along an axis, multiply or normalise: the formulas against
element loops from ONNX's text.

The loops work in Python's floats, one output element at a time, and share nothing with the formulas. Sums are
`math.fsum`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
import pytest

from harness.model.case import Tensor, Value
from harness.model.diff import compare
from harness.model.dtypes import Array
from harness.model.expected import Approx, Exact, Expected, OneOf
from tests.calling import expected as run

Floats = list[float]


def agree(found: Expected, wanted: Array) -> None:
    """Hold an expected result against a loop's: to the bit where it is exact, within a few roundings of
    float64 where it has a bound."""
    if isinstance(found, Approx):
        assert found.value.shape == wanted.shape
        np.testing.assert_allclose(found.value, wanted, rtol=1e-11, atol=1e-11)
        assert np.isfinite(found.bound).all()
    else:
        assert compare(found, Tensor(found.dtype, wanted.astype(_array(found).dtype))).diff is None


def _array(found: Exact | OneOf) -> Array:
    return found.tensor.array if isinstance(found, Exact) else found.candidates[0].array


def drawn(seed: str, shape: tuple[int, ...], dtype: str = "float64") -> Array:
    """Draw numbers in -4..4, with repeats among them."""
    rng = np.random.default_rng(list(map(ord, seed)))
    values = np.round(rng.uniform(-4, 4, shape) * 8) / 8
    return values.astype(dtype)


def with_place(place: Sequence[int], axis: int, n: int) -> tuple[int, ...]:
    """Return a place with another number along an axis."""
    return tuple(n if each == axis % len(place) else number for each, number in enumerate(place))


SHAPES = [(5,), (3, 4), (2, 3, 4), (2, 1, 3, 2)]
AXES: list[tuple[int, ...]] = [(0,), (-1,), (0, -1), ()]


def groups(data: Array, axes: tuple[int, ...], keepdims: bool) -> Iterator[tuple[tuple[int, ...], Floats]]:
    """Yield the place of each output element and the elements that become it, in order."""
    rank = data.ndim
    gone = {axis % rank for axis in axes} or set(range(rank))
    found: dict[tuple[int, ...], Floats] = {}
    for place in product(*map(range, data.shape)):
        kept = tuple(0 if axis in gone else n for axis, n in enumerate(place) if keepdims or axis not in gone)
        found.setdefault(kept, []).append(data[place].item())
    yield from found.items()


REDUCTIONS: dict[str, Callable[[Floats], float]] = {
    "ReduceSum": math.fsum,
    "ReduceMean": lambda xs: math.fsum(xs) / len(xs),
    "ReduceProd": math.prod,
    "ReduceL1": lambda xs: math.fsum(map(abs, xs)),
    "ReduceL2": lambda xs: math.sqrt(math.fsum(x * x for x in xs)),
    "ReduceSumSquare": lambda xs: math.fsum(x * x for x in xs),
    "ReduceLogSum": lambda xs: math.log(math.fsum(xs)),
    "ReduceLogSumExp": lambda xs: math.log(math.fsum(map(math.exp, xs))),
    "ReduceMax": max,
    "ReduceMin": min,
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("opset", [11, 18])
def test_reductions(name: str, opset: int) -> None:
    """Every axis from both sides, all, none given; keepdims; axes as attribute and as input."""
    for shape, axes, keepdims in product(SHAPES, AXES, (False, True)):
        data = drawn(f"{name}{shape}{axes}", shape)
        if name == "ReduceLogSum":
            data = np.abs(data) + 0.5
        given = groups(data, axes, keepdims)
        loop = {place: REDUCTIONS[name](xs) for place, xs in given}
        extents = tuple(max(place[n] for place in loop) + 1 for n in range(len(next(iter(loop)))))
        wanted = np.zeros(extents)
        for place, value in loop.items():
            wanted[place] = value
        by_input = opset >= 13 if name == "ReduceSum" else opset >= 18
        inputs = {"data": data}
        attributes: dict[str, Value] = {"keepdims": int(keepdims)}
        if axes and by_input:
            inputs["axes"] = np.array(axes, np.int64)
        elif axes:
            attributes["axes"] = axes
        agree(run(name, opset, inputs, attributes)[0], wanted)


def test_reductions_of_nothing() -> None:
    """What ONNX says of no elements, and that an empty set of axes leaves the other steps."""
    nothing: dict[str, Array] = {"data": np.zeros((2, 0), np.float32), "axes": np.array([1], np.int64)}
    empty = {
        "ReduceSum": 0,
        "ReduceProd": 1,
        "ReduceL1": 0,
        "ReduceL2": 0,
        "ReduceSumSquare": 0,
        "ReduceMax": -np.inf,
        "ReduceMin": np.inf,
    }
    for name, value in {**empty, "ReduceLogSum": -np.inf, "ReduceLogSumExp": -np.inf}.items():
        (found,) = run(name, 18, nothing)
        assert found.shape == (2, 1)
        array = found.value if isinstance(found, Approx) else _array(found)
        assert (array == value).all(), name
    (squares,) = run("ReduceSumSquare", 18, {"data": np.array([3.0, -2.0])}, {"noop_with_empty_axes": 1})
    assert isinstance(squares, Approx)
    assert squares.value.tolist() == [9.0, 4.0]


def test_log_sum_exp_of_large_arguments() -> None:
    """Neither the sum of exponentials nor its logarithm overflows; infinities are limits."""
    for data, wanted in (
        ([1000.0, 1000.0], 1000 + math.log(2)),
        ([-1000.0, -1000.0], -1000 + math.log(2)),
        ([np.inf, 3.0], np.inf),
    ):
        (found,) = run("ReduceLogSumExp", 18, {"data": np.array(data, np.float32)})
        assert isinstance(found, Approx)
        assert found.value.item() == pytest.approx(wanted)
        assert found.bound.item() < 1e-3
    (none,) = run("ReduceLogSumExp", 18, {"data": np.array([-np.inf, -np.inf])})
    assert isinstance(none, Approx)
    assert none.value.item() == -np.inf


@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
def test_places(name: str) -> None:
    """The first or the last of equal extremes, along every axis."""
    best: Callable[[Floats], float] = max if name == "ArgMax" else min
    for shape, last, keepdims in product(SHAPES, (0, 1), (0, 1)):
        for axis in range(-len(shape), len(shape)):
            data = drawn(f"{name}{shape}{axis}", shape).round()
            wanted = np.zeros(list(np.delete(shape, axis)), np.int64)
            for place in product(*map(range, wanted.shape)):
                at = list(place)
                at.insert(axis % len(shape), 0)
                line = [data[with_place(at, axis, n)].item() for n in range(shape[axis])]
                places = [n for n, x in enumerate(line) if x == best(line)]
                wanted[place] = places[-1] if last else places[0]
            attributes: dict[str, Value] = {"axis": axis, "keepdims": keepdims, "select_last_index": last}
            agree(
                run(name, 13, {"data": data}, attributes)[0],
                np.expand_dims(wanted, axis) if keepdims else wanted,
            )


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
def test_top_k(dtype: str) -> None:
    """Ordered by value, then by index; as an attribute too."""
    for shape, largest in product(SHAPES, (0, 1)):
        for axis in range(-len(shape), len(shape)):
            data = np.abs(drawn(f"{shape}{axis}", shape)).round().astype(dtype)
            for k in range(1, shape[axis] + 1):
                moved = np.moveaxis(data, axis, -1)
                values, indices = (
                    np.zeros((*moved.shape[:-1], k), dtype),
                    np.zeros((*moved.shape[:-1], k), np.int64),
                )
                for place in product(*map(range, moved.shape[:-1])):
                    line = moved[place].tolist()
                    order = sorted(range(len(line)), key=lambda n: (-line[n] if largest else line[n], n))[:k]
                    values[place], indices[place] = [line[n] for n in order], order
                found = run(
                    "TopK", 11, {"X": data, "K": np.array([k], np.int64)}, {"axis": axis, "largest": largest}
                )
                agree(found[0], np.moveaxis(values, -1, axis))
                agree(found[1], np.moveaxis(indices, -1, axis))
                if dtype == "float32" and largest:
                    agree(
                        run("TopK", 7, {"X": data}, {"axis": axis, "k": k})[1], np.moveaxis(indices, -1, axis)
                    )


@pytest.mark.parametrize("name", ["CumSum", "CumProd"])
def test_running(name: str) -> None:
    """Up to each, without it, from the end."""
    for shape, exclusive, reverse in product(SHAPES, (0, 1), (0, 1)):
        for axis in range(-len(shape), len(shape)):
            x = drawn(f"{name}{shape}{axis}", shape)
            wanted = np.zeros(shape)
            for place in product(*map(range, shape)):
                n = place[axis]
                span = range(n + exclusive, shape[axis]) if reverse else range(n + 1 - exclusive)
                line = [x[with_place(place, axis, i)].item() for i in span]
                wanted[place] = math.fsum(line) if name == "CumSum" else math.prod(line)
            inputs = {"x": x, "axis": np.array(axis, np.int64)}
            agree(
                run(
                    name,
                    26 if name == "CumProd" else 14,
                    inputs,
                    {"exclusive": exclusive, "reverse": reverse},
                )[0],
                wanted,
            )
    (found,) = run(name, 26, {"x": np.array([np.inf, 1.0]), "axis": np.array(0, np.int32)}, {"exclusive": 1})
    assert isinstance(found, Approx)
    assert found.value.tolist() == [0.0 if name == "CumSum" else 1.0, np.inf]


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [11, 13])
def test_softmaxes(name: str, opset: int) -> None:
    """Along one axis, before version 13 over all from the axis on."""
    for shape in SHAPES:
        for axis in range(-len(shape), len(shape)):
            x = drawn(f"{name}{shape}{axis}", shape).round()
            wanted = np.zeros(shape)
            place_of = axis % len(shape)
            for place in product(*map(range, shape)):
                alike = [
                    p for p in product(*map(range, shape)) if _one_group(p, place, place_of, flat=opset < 13)
                ]
                total = math.fsum(math.exp(x[p]) for p in alike)
                share = math.exp(x[place]) / total
                first = next(p for p in alike if x[p] == max(x[q] for q in alike))
                wanted[place] = {
                    "Softmax": share,
                    "LogSoftmax": math.log(share),
                    "Hardmax": float(place == first),
                }[name]
            agree(run(name, opset, {"input": x}, {"axis": axis})[0], wanted)


def _one_group(a: tuple[int, ...], b: tuple[int, ...], axis: int, *, flat: bool) -> bool:
    return a[:axis] == b[:axis] and (flat or a[axis + 1 :] == b[axis + 1 :])


@pytest.mark.parametrize("third", [None, (3, 5), (), (1,), (5,), (1, 5), (3, 1)])
def test_gemm(third: tuple[int, ...] | None) -> None:
    """Every transposition; C in every form."""
    for a_turned, b_turned in product((0, 1), (0, 1)):
        a, b = drawn("a", (4, 3) if a_turned else (3, 4)), drawn("b", (5, 4) if b_turned else (4, 5))
        c = None if third is None else drawn("c", third)
        wanted = np.zeros((3, 5))
        for i, j in product(range(3), range(5)):
            terms = [
                float((a[k, i] if a_turned else a[i, k]) * (b[j, k] if b_turned else b[k, j]))
                for k in range(4)
            ]
            more = 0.0 if c is None else np.broadcast_to(c, (3, 5))[i, j].item()
            wanted[i, j] = 0.5 * math.fsum(terms) - 2 * more
        inputs = {"A": a, "B": b, **({} if c is None else {"C": c})}
        agree(
            run("Gemm", 13, inputs, {"transA": a_turned, "transB": b_turned, "alpha": 0.5, "beta": -2.0})[0],
            wanted,
        )


def test_matmul_integer() -> None:
    """Zero points for all, by row and by column; what is beyond 16 bits stays."""
    a, b = np.full((2, 3), 255, np.uint8), np.array([[127, -128]] * 3, np.int8)
    rows, columns = np.array([0, 255], np.uint8), np.array([127, 0], np.int8)
    found = run("MatMulInteger", 10, {"A": a, "B": b, "a_zero_point": rows, "b_zero_point": columns})
    wanted = np.zeros((2, 2), np.int32)
    for i, j in product(range(2), range(2)):
        wanted[i, j] = sum((int(a[i, k]) - int(rows[i])) * (int(b[k, j]) - int(columns[j])) for k in range(3))
    assert wanted[0, 1] == -97920
    agree(found[0], wanted)


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8"])
@pytest.mark.parametrize(
    ("equation", "shapes", "explicit"),
    [
        ("ij->ji", [(2, 3)], "ij->ji"),
        ("bA", [(2, 3)], "bA->Ab"),
        ("ii->i", [(3, 3)], "ii->i"),
        ("...i->...", [(2, 3, 4)], "xyi->xy"),
        ("ij,jk", [(2, 3), (3, 4)], "ij,jk->ik"),
        ("ij,ij->", [(2, 3), (2, 3)], "ij,ij->"),
        ("...ij,...jk", [(2, 2, 3), (2, 3, 4)], "xij,xjk->xik"),
        ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 2)], "ij,jk,kl->il"),
        ("i,ij,j->", [(2,), (2, 3), (3,)], "i,ij,j->"),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]], explicit: str, dtype: str) -> None:
    """A loop over all letters of the explicit form."""
    operands = [
        (np.abs(drawn(f"{equation}{n}", shape)) * 2).round().astype(dtype) for n, shape in enumerate(shapes)
    ]
    left, _, right = explicit.partition("->")
    terms = left.split(",")
    extents = {
        letter: extent
        for term, shape in zip(terms, shapes, strict=True)
        for letter, extent in zip(term, shape, strict=True)
    }
    wanted = np.zeros([extents[letter] for letter in right])
    for numbers in product(*(range(extents[letter]) for letter in extents)):
        at = dict(zip(extents, numbers, strict=True))
        factors = [
            float(x[tuple(at[letter] for letter in term)]) for x, term in zip(operands, terms, strict=True)
        ]
        wanted[tuple(at[letter] for letter in right)] += math.prod(factors)
    inputs = {f"Inputs.{n}": each for n, each in enumerate(operands)}
    agree(
        run("Einsum", 12, inputs, {"equation": equation})[0],
        np.mod(wanted, 256) if dtype == "uint8" else wanted,
    )


def standardised(
    x: Array, group: Sequence[tuple[int, ...]], epsilon: float
) -> dict[tuple[int, ...], tuple[float, float, float]]:
    """Return (x - mean) / sqrt(variance + epsilon), the mean and the divisor's inverse for each place of a
    group."""
    values = [x[p].item() for p in group]
    mean = math.fsum(values) / len(values)
    inverse = 1 / math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values) + epsilon)
    return {p: ((x[p].item() - mean) * inverse, mean, inverse) for p in group}


def test_layer_normalization() -> None:
    """Three outputs; all axes; bfloat16 and float32 as the type of the first stage are seen in the bound."""
    for shape in SHAPES:
        for axis in range(-len(shape), len(shape)):
            x, first = drawn(f"{shape}{axis}", shape), axis % len(shape)
            scale, bias = drawn("s", shape[first:]), drawn("b", shape[first:])
            wanted = [np.zeros(shape), np.zeros((*shape[:first], *(1,) * (len(shape) - first))), np.zeros(())]
            wanted[2] = wanted[1].copy()
            for outer in product(*map(range, shape[:first])):
                group = [(*outer, *inner) for inner in product(*map(range, shape[first:]))]
                for p, (value, mean, inverse) in standardised(x, group, 0.25).items():
                    wanted[0][p] = value * scale[p[first:]] + bias[p[first:]]
                    kept = outer + (0,) * (len(shape) - first)
                    wanted[1][kept], wanted[2][kept] = mean, inverse
            found = run(
                "LayerNormalization",
                17,
                {"X": x, "Scale": scale, "B": bias},
                {"axis": axis, "epsilon": 0.25},
                3,
            )
            for each, loop in zip(found, wanted, strict=True):
                agree(each, loop)
            assert [each.dtype for each in found] == ["float64", "float32", "float32"]
    (y,) = run("LayerNormalization", 17, {"X": np.array([1.0, 2.0, 4.0]), "Scale": np.ones(3)})
    assert isinstance(y, Approx)
    assert 1e-8 < y.bound.max() < 1e-5  # the first stage in float32, though X is float64


def test_rms_normalization() -> None:
    """Mean of squares over all axes from one on."""
    x, scale = drawn("x", (2, 3, 4)), drawn("s", (3, 4))
    wanted = np.zeros(x.shape)
    for n in range(2):
        root = math.sqrt(math.fsum((x[n] * x[n]).reshape(-1).tolist()) / 12 + 0.5)
        for p in product(range(3), range(4)):
            wanted[n][p] = x[n][p] / root * scale[p]
    agree(run("RMSNormalization", 23, {"X": x, "scale": scale}, {"axis": 1, "epsilon": 0.5})[0], wanted)


@pytest.mark.parametrize(
    "name", ["InstanceNormalization", "GroupNormalization18", "GroupNormalization21", "BatchNormalization"]
)
def test_channel_norms(name: str) -> None:
    """Of each instance and channel, of each group with scales by group or by channel, with given
    statistics."""
    x = drawn(name, (2, 4, 3, 2))
    groups = 2 if name.startswith("Group") else 4
    count = groups if name.endswith("18") else 4
    scale, bias = drawn("s", (count,)), drawn("b", (count,))
    centre, square = drawn("m", (4,)), np.abs(drawn("v", (4,))) + 0.5
    wanted = np.zeros(x.shape)
    for n, c, i, j in product(*map(range, x.shape)):
        group = c * groups // 4
        alike = [p for p in product([n], range(4), range(3), range(2)) if p[1] * groups // 4 == group]
        if name == "BatchNormalization":
            value = (x[n, c, i, j] - centre[c]) / math.sqrt(square[c] + 0.25)
        else:
            value = standardised(x, alike, 0.25)[n, c, i, j][0]
        at = group if name.endswith("18") else c
        wanted[n, c, i, j] = value * scale[at] + bias[at]
    if name == "BatchNormalization":
        inputs = {"X": x, "scale": scale, "B": bias, "input_mean": centre, "input_var": square}
        agree(run(name, 15, inputs, {"epsilon": 0.25})[0], wanted)
        older = dict(zip(("X", "scale", "B", "mean", "var"), inputs.values(), strict=True))
        agree(run(name, 7, older, {"epsilon": 0.25})[0], wanted)
    elif name == "InstanceNormalization":
        agree(run(name, 6 + 16, {"input": x, "scale": scale, "B": bias}, {"epsilon": 0.25})[0], wanted)
    else:
        found = run(
            name[:-2],
            int(name[-2:]),
            {"X": x, "scale": scale, "bias": bias},
            {"epsilon": 0.25, "num_groups": 2},
        )
        agree(found[0], wanted)


def test_norms() -> None:
    """LpNormalization with zeros, MeanVarianceNormalization, LRN with an even and an odd size at the
    border."""
    x = drawn("lp", (3, 4))
    x[1] = 0
    for p in (1, 2):
        wanted = np.zeros(x.shape)
        for i, j in product(range(3), range(4)):
            norm = (
                math.fsum(abs(v) for v in x[i].tolist())
                if p == 1
                else math.sqrt(math.fsum(v * v for v in x[i].tolist()))
            )
            wanted[i, j] = x[i, j] / norm if norm else 0
        agree(run("LpNormalization", 22, {"input": x}, {"p": p, "axis": 1})[0], wanted)
    x = drawn("mvn", (2, 3, 2, 2))
    wanted = np.zeros(x.shape)
    for c in range(3):
        for at, (value, _, _) in standardised(x, list(product(range(2), [c], range(2), range(2))), 0).items():
            wanted[at] = value
    agree(run("MeanVarianceNormalization", 13, {"X": x})[0], wanted)
    for size in (1, 2, 3, 4, 9):
        x = drawn(f"lrn{size}", (1, 5, 2, 1))
        for n, c, i, j in product(*map(range, x.shape)):
            near = range(max(0, c - (size - 1) // 2), min(4, c + math.ceil((size - 1) / 2)) + 1)
            total = math.fsum(float(x[n, k, i, j] ** 2) for k in near)
            wanted = x[n, c, i, j] / (2 + 0.5 / size * total) ** 0.75
            (found,) = run("LRN", 13, {"X": x}, {"size": size, "alpha": 0.5, "bias": 2.0})
            assert isinstance(found, Approx)
            assert found.value[n, c, i, j] == pytest.approx(wanted, rel=1e-12)


def test_dropout_of_nothing() -> None:
    """In inference data is unchanged, to the bit, and the mask is true everywhere."""
    data = np.array([-0.0, np.nan, 3], np.float32)
    output, mask = run("Dropout", 13, {"data": data}, {}, 2)
    agree(output, data)
    agree(mask, np.ones(3, np.bool_))


@pytest.mark.parametrize("seed", range(20))
def test_a_product_of_three_operands_holds_for_every_order_of_its_factors(seed: int) -> None:
    factors = [np.random.default_rng((seed, n)).uniform(1, 2, 64).astype(np.float32) for n in range(3)]
    inputs = {f"Inputs.{n}": each for n, each in enumerate(factors)}
    (found,) = run("Einsum", 12, inputs, {"equation": "i,i,i->i"}, arithmetic="opencl")
    assert isinstance(found, Approx)
    a, b, c = factors
    for ordered in ((a * b) * c, a * (b * c), (a * c) * b):
        assert np.all(np.abs(ordered.astype(np.float64) - found.value) <= found.bound)
