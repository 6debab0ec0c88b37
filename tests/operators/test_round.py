"""Round: all three modes against exact integer, decimal and fraction arithmetic, bit for bit."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.operators import OPERATORS
from harness.operators.base import Shape
from harness.operators.binary_floats import halfway_values
from harness.operators.elementwise.rounding import HALVES_AWAY, TOWARD_ZERO
from tests import calling
from tests.calling import shaped
from tests.operators.brute import round_bits

MODES = (None, TOWARD_ZERO, HALVES_AWAY)
OPERATOR = OPERATORS["Round"]
FLOATS = ("float16", "bfloat16", "float32", "float64")


def oracle(x: Tensor, mode: str | None) -> Tensor:
    return calling.exact("Round", (x,), {}, mode)


def natural_shape(kind: str, dtype: str) -> Shape | None:
    return OPERATOR.family.natural_shape(OPERATOR, kind, dtype)


def generate(kind: str, dtype: str, shape: Shape, entropy: bytes) -> Array:
    return calling.generated(
        OPERATOR, kind, "X", calling.call_of("Round", shaped(shape, dtypes=(dtype,))), entropy
    )


def check(dtype: str, storage: Array, mode: str | None) -> None:
    """Hold the oracle against integer arithmetic on the bits, element by element."""
    width, mantissa = DTYPES[dtype].itemsize * 8, DTYPES[dtype].mantissa
    assert mantissa is not None
    found = oracle(Tensor(dtype, storage), mode)
    assert found.dtype == dtype
    assert found.array.dtype == np.dtype(DTYPES[dtype].storage)
    assert found.array.shape == storage.shape
    infinity = ((1 << (width - 1 - mantissa)) - 1) << mantissa
    for x, y in zip(
        storage.view(f"u{width // 8}").tolist(), found.array.view(f"u{width // 8}").tolist(), strict=True
    ):
        wanted = round_bits(x, width, mantissa, mode)
        if wanted is None:
            assert y & ~(1 << (width - 1)) > infinity, f"{x:#x}: NaN became {y:#x}"
        else:
            assert y == wanted, f"{x:#x}: {y:#x} instead of {wanted:#x}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_all_patterns_of_16_bits(dtype: str, mode: str | None) -> None:
    check(dtype, np.arange(1 << 16, dtype=np.uint16).view(DTYPES[dtype].storage), mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["ordinary", "random", "specials", "halves", "subnormal"])
def test_samples_of_32_and_64_bits(dtype: str, kind: str, mode: str | None) -> None:
    shape = natural_shape(kind, dtype) or (4000,)
    check(dtype, generate(kind, dtype, shape, np.random.default_rng(3).bytes(1 << 19)), mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_of_every_exponent(dtype: str, mode: str | None) -> None:
    """Random patterns are mostly huge or tiny: draw the exponent from -3 to the precision limit and
    beyond."""
    rng = np.random.default_rng(8)
    mantissa = DTYPES[dtype].mantissa
    assert mantissa is not None
    scale = 2.0 ** rng.integers(-3, mantissa + 3, 6000)
    check(
        dtype,
        (rng.choice([-1.0, 1.0], 6000) * rng.uniform(1, 2, 6000) * scale).astype(DTYPES[dtype].storage),
        mode,
    )


@pytest.mark.parametrize(
    ("mode", "rounding"), [(None, ROUND_HALF_EVEN), (TOWARD_ZERO, ROUND_DOWN), (HALVES_AWAY, ROUND_HALF_UP)]
)
def test_decimal_agrees(mode: str | None, rounding: str) -> None:
    """Python's decimal is a second, independent check: every float is a finite decimal."""
    halves = halfway_values("float64")
    found = oracle(Tensor("float64", halves), mode).array
    with localcontext() as context:
        context.prec = 1200
        for x, y in zip(halves.tolist(), found.tolist(), strict=True):
            assert Decimal(y) == Decimal(x).to_integral_value(rounding), x
            assert np.signbit(y) == np.signbit(x)


def test_fractions_agree_on_halves_to_even() -> None:
    given = generate("ordinary", "float32", (500,), np.random.default_rng(4).bytes(1 << 19))
    for x, y in zip(given.tolist(), oracle(Tensor("float32", given), None).array.tolist(), strict=True):
        assert Fraction(y) == round(Fraction(x))  # Python rounds a Fraction half to even


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_onnx_reference_agrees(dtype: str) -> None:
    x = halfway_values(dtype)
    wanted = ReferenceEvaluator(helper.make_node("Round", ["X"], ["Y"])).run(None, {"X": x})[0]
    assert oracle(Tensor(dtype, x), None).array.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
def test_shape_is_kept(shape: tuple[int, ...], mode: str | None) -> None:
    for dtype in FLOATS:
        assert oracle(Tensor(dtype, np.zeros(shape, DTYPES[dtype].storage)), mode).array.shape == shape


@pytest.mark.parametrize("mode", MODES)
def test_the_input_is_left_alone(mode: str | None) -> None:
    x = np.array([0.5, -1.5], np.float32)
    oracle(Tensor("float32", x), mode)
    assert x.tolist() == [0.5, -1.5]


class TestKinds:
    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_patterns_are_all_in_order(self, dtype: str) -> None:
        assert natural_shape("patterns", dtype) == (65536,)
        found = generate("patterns", dtype, (65536,), bytes(1 << 19))
        assert found.view(np.uint16).tolist() == list(range(65536))

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_patterns_are_for_16_bits(self, dtype: str) -> None:
        assert natural_shape("patterns", dtype) is None
        assert not OPERATOR.family.applies(
            OPERATOR, "patterns", "X", calling.call_of("Round", shaped((4,), dtypes=(dtype,)))
        )
        with pytest.raises(ValueError, match="only 16-bit types"):
            generate("patterns", dtype, (4,), bytes(1 << 19))

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_subnormals_are_subnormal_and_not_zero(self, dtype: str) -> None:
        mantissa = DTYPES[dtype].mantissa
        assert mantissa is not None
        found = generate("subnormal", dtype, (512,), np.random.default_rng(2).bytes(1 << 19)).view(
            f"u{DTYPES[dtype].itemsize}"
        )
        sign = 1 << (DTYPES[dtype].itemsize * 8 - 1)
        assert all(0 < int(n) & ~sign < 1 << mantissa for n in found)
        assert len({int(n) & sign for n in found}) == 2

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_ordinary_is_within_100_in_quarters_or_rounded_to_the_type(self, dtype: str) -> None:
        found = generate("ordinary", dtype, (2048,), np.random.default_rng(2).bytes(1 << 19))
        values = (found.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else found
        assert -100 <= float(values.min()) < -90
        assert 90 < float(values.max()) <= 100
        assert np.any(np.abs(values % 1) == 0.5)

    @pytest.mark.parametrize("kind", ["specials", "halves"])
    def test_lists_are_repeated_or_cut_to_the_shape(self, kind: str) -> None:
        whole = generate(kind, "float32", natural_shape(kind, "float32"), bytes(1 << 19))
        assert generate(kind, "float32", (2, 3), bytes(1 << 19)).tobytes() == whole[:6].tobytes()
        assert (
            generate(kind, "float32", (whole.size + 2,), bytes(1 << 19))[-2:].tobytes() == whole[:2].tobytes()
        )
