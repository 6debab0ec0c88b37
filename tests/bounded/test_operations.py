"""Propagation of errors, operation by operation, against an implementation at its worst."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.operators.bounded import (
    EXACT,
    NAMES,
    Arithmetic,
    Bounded,
    arithmetic,
    choose,
    erf,
    maximum,
    minimum,
    number,
    power,
    rsqrt,
    trigonometry,
)
from harness.operators.bounded.arithmetic import declared
from tests.bounded.adversary import numbers, survives, within

KINDS = [EXACT, *(arithmetic(name, dtype) for name in NAMES for dtype in ("float16", "bfloat16", "float32"))]
BINARY = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
UNARY: dict[str, tuple[Any, str]] = {
    name.__name__: (name, table)
    for name, table in (
        (np.exp, "exp"),
        (np.exp2, "exp2"),
        (np.expm1, "expm1"),
        (np.log, "log"),
        (np.log2, "log2"),
        (np.log1p, "log1p"),
        (np.sqrt, "sqrt"),
        (np.sin, "sin"),
        (np.cos, "cos"),
        (np.tan, "tan"),
        (np.arcsin, "asin"),
        (np.arccos, "acos"),
        (np.arctan, "atan"),
        (np.sinh, "sinh"),
        (np.cosh, "cosh"),
        (np.tanh, "tanh"),
        (np.arcsinh, "asinh"),
        (np.arccosh, "acosh"),
        (np.arctanh, "atanh"),
    )
}


def name_of(kind: Arithmetic) -> str:
    return f"{kind.name}-{kind.form.dtype}"


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng([ord(c) for c in request.node.name])


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
@pytest.mark.parametrize("symbol", BINARY)
def test_binary_operations(kind: Arithmetic, symbol: str, rng: np.random.Generator) -> None:
    f = BINARY[symbol]
    x, y = numbers(rng, kind, 1500), numbers(rng, kind, 1500)
    result = f(x, y)
    own: Any = 0.0
    with np.errstate(all="ignore"):
        if symbol == "/":
            own = declared("div", np.abs(y.value), np.zeros(1500), np.abs(result.value), kind)
            own = np.where(np.isfinite(own), own, 0.0)
        elif kind.errs:
            own = (
                0.49 * kind.form.ulp(result.value) if kind.operations == 0.5 else kind.form.ulp(result.value)
            )
        whole = (
            (x.error + y.error == 0)
            & (np.rint(x.value) == x.value)
            & (np.rint(y.value) == y.value)
            & (symbol != "/")
        )
        own = np.where(
            whole & (np.abs(result.value) <= 1 / kind.form.unit) | ~np.isfinite(result.value), 0.0, own
        )
    survives(rng, (x, y), f, result, own)
    assert np.isfinite(result.error).mean() > 0.35  # something is claimed


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
@pytest.mark.parametrize("name", UNARY)
def test_functions(kind: Arithmetic, name: str, rng: np.random.Generator) -> None:
    f, table = UNARY[name]
    x = numbers(rng, kind, 1500)
    result = f(x)
    with np.errstate(all="ignore"):
        own = declared(table, x.value, np.zeros(1500), np.abs(result.value), kind)
    if kind.errs and table not in kind.functions.table:
        own = np.zeros(1500)  # by a formula, or no claim
    survives(rng, (x,), f, result, np.where(np.isfinite(own) & np.isfinite(result.value), own, 0.0))
    if not kind.errs or table in kind.functions.table:
        assert np.isfinite(result.error).mean() > 0.2


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
@pytest.mark.parametrize(
    ("rule", "f"), [(erf, trigonometry.erf), (rsqrt, lambda v: 1 / np.sqrt(v))], ids=["erf", "rsqrt"]
)
def test_functions_that_numpy_lacks(kind: Arithmetic, rule: Any, f: Any, rng: np.random.Generator) -> None:
    x = numbers(rng, kind, 1500)
    survives(rng, (x,), f, rule(x), 0.0)


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_powers(kind: Arithmetic, rng: np.random.Generator) -> None:
    x = numbers(rng, kind, 1500)
    y = Bounded(
        rng.choice([-2.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 7.25], 1500),
        rng.choice([0.0, 1e-6, 0.1], 1500),
        kind,
    )
    result = power(x, y)
    survives(rng, (x, y), np.power, result, 0.0)
    assert np.isfinite(result.error).mean() > 0.1
    square = x**2
    assert np.array_equal(square.value, (x * x).value, equal_nan=True)
    assert np.array_equal(square.error, (x * x).error)


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
@pytest.mark.parametrize(
    ("rule", "f"), [(maximum, np.maximum), (minimum, np.minimum)], ids=["maximum", "minimum"]
)
def test_larger_and_smaller(kind: Arithmetic, rule: Any, f: Any, rng: np.random.Generator) -> None:
    x, y = numbers(rng, kind, 1500), numbers(rng, kind, 1500)
    survives(rng, (x, y), f, rule(x, y), 0.0)
    survives(rng, (x,), np.abs, abs(x), 0.0)
    survives(rng, (x,), np.negative, -x, 0.0)


def test_a_cut_admits_both_sides_where_the_argument_may_lie_on_either(rng: np.random.Generator) -> None:
    x = numbers(rng, EXACT, 1500)
    result = choose(x, 0.5, x * 2.0, x * x)
    survives(rng, (x,), lambda v: np.where(v < 0.5, v * 2.0, v * v), result, 0.0)
    sure = np.abs(x.value - 0.5) > x.error
    assert np.array_equal(result.error[sure], np.where(x.value < 0.5, (x * 2.0).error, (x * x).error)[sure])


class TestBeyondFiniteNumbers:
    """What is required and where nothing is claimed, by hand."""

    KIND = arithmetic("opencl", "float32", flush=False)

    def of(self, *elements: float, error: float = 0.0) -> Bounded:
        return Bounded(np.array(elements), np.full(len(elements), error), self.KIND)

    def test_ieee_results_of_exact_operands_are_required(self) -> None:
        inf, nan = np.inf, np.nan
        for found, wanted in (
            (
                self.of(inf, -inf, inf, 1.0, nan) + self.of(1.0, 1.0, -inf, inf, 1.0),
                [inf, -inf, nan, inf, nan],
            ),
            (self.of(inf, 0.0, -inf, 0.0) * self.of(-2.0, inf, -inf, 5.0), [-inf, nan, inf, 0.0]),
            (
                self.of(1.0, -1.0, 0.0, inf, 1.0) / self.of(0.0, 0.0, 0.0, inf, inf),
                [inf, -inf, nan, nan, 0.0],
            ),
            (np.log(self.of(0.0, -1.0, inf)), [-inf, nan, inf]),
            (np.sqrt(self.of(-1.0, inf)), [nan, inf]),
            (np.exp(self.of(-inf, inf, nan)), [0.0, inf, nan]),
            (np.sin(self.of(inf, nan)), [nan, nan]),
            (np.tanh(self.of(inf, -inf)), [1.0, -1.0]),
            (self.of(inf, 1.0, nan).sum(keepdims=True), [nan]),
            (self.of(inf, 1.0).sum(keepdims=True), [inf]),
            (self.of(nan, 1.0).max(keepdims=True), [nan]),
            (self.of(inf, 1.0).mean(keepdims=True), [inf]),
            (self.of(inf, -2.0).prod(keepdims=True), [-inf]),
        ):
            nonfinite = ~np.isfinite(wanted)
            assert np.array_equal(found.value, wanted, equal_nan=True), (found, wanted)
            assert not found.error[nonfinite].any(), found

    def test_nothing_is_claimed_where_a_divisor_or_an_argument_may_be_zero(self) -> None:
        near = self.of(1e-9, error=1e-8)
        for found in (1.0 / near, np.log(near), rsqrt(near), np.sqrt(near - 1e-8), near**-1.5):
            assert np.isinf(found.error).all(), found

    def test_an_overflow_that_the_result_shows_is_no_loss(self) -> None:
        large = self.of(3e38) * self.of(2.0)
        assert large.error[0] < 1e32
        assert np.isfinite((large + 1.0).error).all()
        assert np.isfinite((large * 2.0).error).all()
        assert (1.0 / large).error[0] == pytest.approx(
            1 / 6e38, rel=1e-5
        )  # a quotient of an infinity: zero is admissible
        assert np.isinf((large - large).error).all()
        assert np.isinf((large * 1e-20).error).all()
        assert np.isinf(np.sin(large).error).all()

    def test_an_exponential_beyond_float64_is_an_infinity_of_any_narrower_type(self) -> None:
        stored = np.exp(self.of(1000.0, 89.0, 88.0)).stored("float32")
        assert (stored.value[:2] - stored.bound[:2] > 3.4028235e38).all()
        assert stored.value[2] + stored.bound[2] < 3.4028235e38

    def test_sums_that_overflow_on_the_way(self) -> None:
        assert np.isinf(self.of(3e38, 3e38, -3e38).sum().error)
        assert np.isfinite(self.of(3e38, 3e38).sum().error)
        assert np.isfinite(self.of(3e38, -3e38).sum().error)
        assert np.isinf((self.of(3e38, 3e38, -3e38)[None] @ np.ones((3, 1))).error).all()

    def test_nan_is_required_however_uncertain_the_other_operands_are(self) -> None:
        nan = self.of(np.nan, np.nan)
        for error in (0.5, np.inf):
            other = Bounded(np.array([1.0, np.inf]), np.array([error, 0.0]), self.KIND)
            ones = Bounded(np.ones((2, 2)), np.full((2, 2), error), self.KIND)
            for found in (
                *(f(*pair) for f in (*BINARY.values(), np.maximum) for pair in ((nan, other), (other, nan))),
                *(f(np.stack([nan, other]), axis=0) for f in (np.sum, np.mean, np.prod, np.max)),
                np.cumsum(np.stack([nan, other]), axis=0)[1],
                np.matmul(nan, ones),
            ):
                assert np.isnan(found.value).all(), found
                assert not found.error.any(), found

    def test_a_matrix_product_spreads_infinities_and_nan_over_its_rows_and_columns(self) -> None:
        a = number(np.array([[np.inf, 1.0], [1.0, 2.0], [np.nan, 1.0]]), self.KIND)
        found = a @ number(np.array([[1.0, 0.0], [1.0, 1.0]]), self.KIND)
        assert np.array_equal(found.value, [[np.inf, np.nan], [3, 2], [np.nan, np.nan]], equal_nan=True)
        assert not found.error.any()  # integers, and what follows from the inputs


def test_integers_that_every_type_holds_are_exact() -> None:
    rng = np.random.default_rng(3)
    kind = arithmetic("d3d", "float16")
    a, b = (number(rng.integers(-4, 5, shape).astype(np.float64), kind) for shape in ((5, 40), (40, 6)))
    for found in (
        a @ b,
        a.sum(1),
        a.cumsum(1),
        a + 3.0,
        a * a,
        np.einsum("ij,jk->ik", a, b),
        a[:, :4].prod(1),
    ):
        assert not found.error.any()
    large = number(np.array([2000.0, 100.0]), kind)
    assert large.sum().error > 0  # 2100 is no float16
    assert (number(np.array([0.1]), EXACT) + 0.2).error[0] == np.spacing(0.3) / 2


def test_what_would_lose_the_error_is_refused() -> None:
    x = number(np.array([1.0, 2.0]), EXACT)
    for wrong in (
        lambda: x > 1,
        lambda: x == x,
        lambda: bool(x),
        lambda: float(x[0]),
        lambda: np.asarray(x),
        lambda: np.floor(x),
        lambda: np.argmax(x),
        lambda: np.add.reduce(x),
        lambda: np.where(x, 1, x),
        lambda: np.greater(x, 0),
        lambda: {x},
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="one arithmetic"):
        x + number(np.array([1.0, 2.0]), arithmetic("ieee", "float32"))


def test_constants_are_rounded_to_the_working_type() -> None:
    x = number(np.array([1.0]), arithmetic("ieee", "float32"))
    assert number(np.array([0.1, 0.5]), x.arithmetic).error.tolist() == [2.0**-28, 0.0]
    held = x * 0.1
    assert abs(float(np.float32(0.1)) - 0.1) <= held.error[0] <= 2.0**-27 * 1.000001


def test_subnormal_inputs_may_be_zero_where_the_arithmetic_flushes() -> None:
    tiny = np.array([1e-40, 1e-37])
    assert number(tiny, arithmetic("opencl", "float32")).error[0] >= 1e-40
    kept = number(tiny, arithmetic("opencl", "float32", flush=False))
    assert kept.error[0] < 2.0**-149
    assert number(tiny, arithmetic("opencl", "float32")).error[1] < 1e-44


MOVES: list[Callable[[Any], Any]] = [
    lambda x: x.reshape(6, 4),
    lambda x: x.T,
    lambda x: x.transpose(1, 0, 2),
    lambda x: x[1:, ::2, None],
    lambda x: np.concatenate([x, x], axis=1),
    lambda x: np.stack([x, x], axis=1),
    lambda x: np.moveaxis(x, 0, -1),
    lambda x: np.swapaxes(x, 0, 1),
    lambda x: np.expand_dims(x, 1),
    lambda x: np.squeeze(x[:1], 0),
    lambda x: np.broadcast_to(x, (3, 2, 3, 4)),
    lambda x: np.flip(x, 1),
    lambda x: np.roll(x, 1, 2),
    lambda x: np.take(x, [0, 0, 1], axis=2),
    lambda x: np.repeat(x, 2, axis=0),
    lambda x: np.tile(x, (1, 2, 1)),
    lambda x: np.pad(x, [(0, 0), (1, 2), (0, 1)]),
    lambda x: np.pad(x, 1, "edge"),
    lambda x: np.split(x, 3, 1)[1],
    lambda x: np.ravel(x),
    lambda x: np.where(np.arange(4) % 2 == 0, x, x + x),
    lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=2),
]


@pytest.mark.parametrize("move", MOVES)
def test_moving_moves_errors_with_values(move: Callable[[Any], Any]) -> None:
    value = np.arange(24.0).reshape(2, 3, 4)
    found = move(Bounded(value, value * 2, EXACT))
    wanted = move(value)
    assert np.array_equal(found.value, wanted)
    assert found.error == pytest.approx(move(value * 2), abs=1e-12)
    assert (found.shape, found.ndim, found.size, len(found)) == (
        wanted.shape,
        wanted.ndim,
        wanted.size,
        len(wanted),
    )


def test_padding_has_no_error_of_its_own() -> None:
    padded = np.pad(Bounded(np.ones(2), np.ones(2), EXACT), 1, constant_values=7.0)
    assert padded.value.tolist() == [7, 1, 1, 7]
    assert padded.error.tolist() == [0, 1, 1, 0]


def test_the_adversary_reaches_the_bounds() -> None:
    """The check itself: errors that are forgotten are seen."""
    rng = np.random.default_rng(5)
    x, y = numbers(rng, EXACT, 500, special=False), numbers(rng, EXACT, 500, special=False)
    good = x * y
    assert len([*within(rng, x)]) == 6
    for broken in (Bounded(good.value, good.error * 0.9, EXACT), Bounded(good.value, np.zeros(500), EXACT)):
        with pytest.raises(AssertionError, match="outside"):
            survives(rng, (x, y), np.multiply, broken, 0.0)
