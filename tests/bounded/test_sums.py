"""Sums of every kind, evaluated in the accumulator's arithmetic in random orders, stay within their bounds;
wrong ones do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from harness.model.float_formats import Float64, Format
from harness.operators.bounded import EXACT, Arithmetic, Bounded, arithmetic, number
from harness.operators.bounded.sums import gamma
from tests.bounded.adversary import numbers, outside, survives, within

KINDS = {
    "float32": arithmetic("ieee", "float32"),
    "float16": arithmetic("ieee", "float16"),
    "float16-narrow": arithmetic("ieee", "float16", "float16"),
    "bfloat16": arithmetic("opencl", "bfloat16"),
    "bfloat16-narrow": arithmetic("ieee", "bfloat16", "bfloat16"),
    "float64": arithmetic("ieee", "float64"),
}
Random = np.random.Generator


def orders(rng: Random, terms: Float64, form: Format) -> Iterator[Float64]:
    """Add terms along the last axis: one after the other in random order, and in pairs; each sum rounded to a
    format."""
    for _ in range(4):
        mixed = rng.permuted(terms, axis=-1)
        total = form.rounded(mixed[..., 0])
        for term in np.moveaxis(mixed[..., 1:], -1, 0):
            total = form.rounded(total + term)
        yield total
        while mixed.shape[-1] > 1:
            odd = mixed[..., mixed.shape[-1] & ~1 :]
            mixed = np.concatenate(
                [form.rounded(mixed[..., : mixed.shape[-1] & ~1 : 2] + mixed[..., 1::2]), odd], axis=-1
            )
        yield mixed[..., 0]


def drawn(rng: Random, kind: Arithmetic, *shape: int, spread: float = 3.0) -> Bounded:
    return number(
        kind.form.rounded(rng.standard_normal(shape) * np.exp2(rng.uniform(-spread, spread, shape))), kind
    )


@pytest.mark.parametrize("name", KINDS)
class TestAnyOrder:
    def test_sums(self, name: str) -> None:
        kind, rng = KINDS[name], np.random.default_rng(1)
        x = drawn(rng, kind, 50, 33)
        result = x.sum(1)
        with np.errstate(over="ignore"):
            for found in orders(rng, x.value, kind.accumulator):
                assert not outside(kind.form.rounded(found), result).size
        assert np.isfinite(result.error).all()

    def test_means(self, name: str) -> None:
        kind, rng = KINDS[name], np.random.default_rng(2)
        x = drawn(rng, kind, 50, 33)
        result, form = x.mean(1), kind.accumulator
        for found in orders(rng, x.value, form):
            for shared in (found / 33, found * form.rounded(np.array(1 / 33))):
                assert not outside(kind.form.rounded(form.rounded(shared)), result).size

    def test_dot_products(self, name: str) -> None:
        kind, rng = KINDS[name], np.random.default_rng(3)
        a, b = drawn(rng, kind, 12, 40), drawn(rng, kind, 40, 9)
        result, form = a @ b, kind.accumulator
        products = a.value[:, None, :] * b.value.T[None, :, :]
        for terms in (products, form.rounded(products)):  # fused, and rounded first
            for found in orders(rng, terms, form):
                assert not outside(kind.form.rounded(found), result).size
        same = np.einsum("ij,jk->ik", a, b)
        assert np.array_equal(same.error, result.error) or np.allclose(same.error, result.error, rtol=1e-9)

    def test_prefix_sums(self, name: str) -> None:
        kind, rng = KINDS[name], np.random.default_rng(4)
        x = drawn(rng, kind, 20, 25)
        result = x.cumsum(1)
        for end in range(1, 26):
            for found in orders(rng, x.value[:, :end], kind.accumulator):
                assert not outside(kind.form.rounded(found), result[:, end - 1]).size

    def test_products(self, name: str) -> None:
        kind, rng = KINDS[name], np.random.default_rng(5)
        x = drawn(rng, kind, 40, 9, spread=1.0)
        result, form = x.prod(1), kind.accumulator
        for _ in range(6):
            total = np.ones(40)
            for factor in rng.permuted(x.value, axis=1).T:
                total = form.rounded(total * factor)
            assert not outside(kind.form.rounded(total), result).size
        assert np.isfinite(result.error).all()

    def test_one_element_is_itself(self, name: str) -> None:
        kind = KINDS[name]
        x = number(np.array([[0.75], [3.0]]), kind)
        for found in (x.sum(1), x.prod(1), x.cumsum(1)[:, 0], x.max(1), x.min(1)):
            assert found.value.tolist() == [0.75, 3.0]
            assert (found.error <= kind.form.ulp(found.value) / 2).all()


@pytest.mark.parametrize(
    "kind",
    [EXACT, KINDS["float32"], arithmetic("d3d", "float32"), KINDS["float16"]],
    ids=["exact", "float32", "d3d", "float16"],
)
def test_errors_of_the_terms(kind: Arithmetic) -> None:
    rng = np.random.default_rng(6)
    x = numbers(rng, kind, 4 * 300).reshape(300, 4)
    y = numbers(rng, kind, 4 * 300).reshape(4, 300)
    with np.errstate(all="ignore"):
        survives(rng, (x,), lambda v: v.sum(1), x.sum(1), 0.0)
        survives(rng, (x,), lambda v: v.mean(1), x.mean(1), 0.0)
        survives(rng, (x,), lambda v: v.prod(1), x.prod(1), 0.0)
        survives(rng, (x,), lambda v: v.max(1), x.max(1), 0.0)
        survives(rng, (x,), lambda v: v.min(1), x.min(1), 0.0)
        survives(rng, (x,), lambda v: np.cumsum(v, axis=1), x.cumsum(1), 0.0)
        products = x[:40] @ y[:, :30]
        for a, b in zip(within(rng, x[:40]), within(rng, y[:, :30]), strict=True):
            assert not outside(sum_of_products(a, b), products).size
    for found in (x.sum(1), x.mean(1), x.max(1)):
        assert np.isfinite(found.error).mean() > 0.3


def sum_of_products(a: Float64, b: Float64) -> Float64:
    with np.errstate(all="ignore"):
        return np.asarray((a[:, :, None] * b[None, :, :]).sum(1))


class TestWhatIsWrong:
    """Mistakes of implementations that the bounds must see."""

    RNG = np.random.default_rng(7)
    KIND = KINDS["float32"]
    A, B = drawn(RNG, KIND, 24, 256, spread=0.5), drawn(RNG, KIND, 256, 24, spread=0.5)

    @pytest.mark.parametrize(("bits", "share"), [(13, 0.5), (16, 0.9)], ids=["float16 and tf32", "bfloat16"])
    def test_narrower_inputs_of_a_matrix_product(self, bits: int, share: float) -> None:
        def cut(x: Bounded) -> Float64:
            narrow = x.value.astype(np.float32).view(np.uint32) + np.uint32(1 << (bits - 1))
            return (narrow & np.uint32(~((1 << bits) - 1) & 0xFFFFFFFF)).view(np.float32).astype(np.float64)

        found = outside(cut(self.A) @ cut(self.B), self.A @ self.B).size
        assert found > share * 576

    def test_one_term_lost_or_doubled(self) -> None:
        result = self.A @ self.B
        lost = self.A.value[:, 1:] @ self.B.value[1:]
        assert outside(lost, result).size > 500
        assert outside(2 * result.value - lost, result).size > 500

    def test_a_float16_accumulator_where_float32_is_declared(self) -> None:
        kind = KINDS["float16"]
        x = drawn(self.RNG, kind, 200, 256, spread=0.5)
        narrow = next(orders(self.RNG, x.value, kind.form))
        assert outside(narrow, x.sum(1)).size > 100
        assert not outside(narrow, Bounded(x.value, x.error, KINDS["float16-narrow"]).sum(1)).size

    def test_sums_of_other_elements(self) -> None:
        x = self.A
        for wrong in (x.value[:, :-1].sum(1), np.roll(x.value, 1, 0).sum(1), x.value.sum(1) / 255 * 256):
            assert outside(wrong, x.sum(1)).size == 24
        assert (
            outside(np.cumsum(x.value, axis=1) - x.value, x.cumsum(1)).size > 5500
        )  # exclusive instead of inclusive


def test_gamma_is_that_of_higham_and_gives_up() -> None:
    assert gamma(10, 2.0**-24) == 10 * 2.0**-24 / (1 - 10 * 2.0**-24)
    assert gamma(0, 0.5) == 0
    assert np.isinf(gamma(2048, 2.0**-11))


def test_an_arithmetic_accumulates_no_narrower_than_it_works() -> None:
    with pytest.raises(ValueError, match="float16 cannot accumulate float32"):
        arithmetic("ieee", "float32", "float16")


def test_einsum_wants_letters() -> None:
    x: Any = drawn(np.random.default_rng(8), EXACT, 2, 2)
    for wrong in ("ij,jk", "...i,i->...", "ij->ji"):
        with pytest.raises(ValueError, match="einsum here takes"):
            np.einsum(wrong, x, x)


def test_terms_that_may_be_infinite_although_the_accumulator_is_wide() -> None:
    kind = KINDS["float16"]
    near, small = Bounded(np.array([65504.0]), np.array([100.0]), kind), number(np.array([3.0]), kind)
    away = number(np.array([-65504.0]), kind)
    for terms in ([near, away], [near, -near], [near, number(np.array([-np.inf]), kind)]):
        assert np.isinf(
            np.concatenate(terms).sum().error
        )  # an infinity, or a NaN, that the sum does not show
        assert np.isinf(np.concatenate(terms).cumsum(0).error[-1])
    assert np.isinf((np.concatenate([near, away])[None] @ np.ones((2, 1))).error).all()
    assert np.isfinite(
        np.concatenate([near, small]).sum().error
    )  # shown: the sum may be that infinity itself


def test_products_that_overflow_or_vanish_on_the_way() -> None:
    kind = KINDS["float32"]
    assert np.isinf(number(np.array([3e38, 3.0, 2.0**-10]), kind).prod().error)
    assert np.isfinite(number(np.array([3e38, 3.0, 2.0]), kind).prod().error)  # an infinity in any order
    vanishing = number(np.array([2.0**-100, 2.0**-100, 2.0**100, 2.0**90]), kind).prod()
    assert vanishing.error >= vanishing.value == 2.0**-10


def test_finite_terms_that_may_overflow_to_the_other_infinity_leave_a_sum_open() -> None:
    largest = KINDS["float32"].form.largest
    terms = np.array(
        [
            [np.inf, -largest, -largest],
            [np.inf, -largest, 1.0],
            [np.inf, largest, largest],
            [-np.inf, largest, largest],
        ]
    )
    found = number(terms, KINDS["float32"]).sum(1)
    assert found.value.tolist() == [np.inf, np.inf, np.inf, -np.inf]
    assert found.error.tolist() == [np.inf, 0.0, 0.0, np.inf]
