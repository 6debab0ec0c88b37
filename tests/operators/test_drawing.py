"""What is drawn: kernels that are right turn no case red, wrong ones turn two red, of each operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.expected import OfLaw
from harness.model.float_formats import Float64, encode
from harness.operators.generation.drawing import Judge
from harness.operators.generation.laws import (
    ERROR_RATE,
    Bernoulli,
    Law,
    Multinomial,
    Normal,
    Uniform,
    doubtful,
)
from harness.run.judge import compare_all
from tests.mutants.any_operator import Sample, samples
from tests.sampled import one_of

NORMAL, UNIFORM = ("RandomNormal", "RandomNormalLike"), ("RandomUniform", "RandomUniformLike")
NAMES = (*NORMAL, *UNIFORM, "Bernoulli", "Multinomial")
Kernel = Callable[[Law, np.random.Generator, tuple[int, ...]], Float64]


@cache
def known(name: str) -> list[Sample]:
    return [each for each in samples(name) if each.case.opset < 22]


def law_of(sample: Sample) -> Law:
    (expected, *_) = sample.expected
    assert isinstance(expected, OfLaw)
    assert isinstance(expected.judge, Judge)
    return expected.judge.law


def outputs(
    sample: Sample, kernel: Kernel, seeds: tuple[int, int, int] = (1, 2, 1), dtype: str | None = None
) -> tuple[Tensor, ...]:
    """Return what a kernel gives of a case, for three nodes with these seeds."""
    law, made = law_of(sample), []
    for expected, seed in zip(sample.expected, seeds, strict=False):
        values = kernel(law, np.random.default_rng(seed), expected.shape)
        to = dtype or expected.dtype
        array = encode(to, values) if DTYPES[to].is_float else values.astype(DTYPES[to].storage)
        made.append(Tensor(to, array))
    return tuple(made)


def is_red(sample: Sample, given: tuple[Tensor, ...]) -> bool:
    return compare_all(sample.expected, given)[0] is not None


def right(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    return law.sample(rng, shape)


@pytest.mark.parametrize("name", one_of(3, NAMES))
def test_a_right_kernel_turns_nothing_red(name: str) -> None:
    found = [
        s.case.id for n, s in enumerate(known(name)) if is_red(s, outputs(s, right, (n + 5, n + 500, n + 5)))
    ]
    assert found == []


def changed(**values: Callable[[float], float]) -> Kernel:
    """Return a kernel that takes parameters of its law for others."""

    def kernel(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
        assert isinstance(law, (Normal, Uniform))
        found = replace(law, **{name: change(getattr(law, name)) for name, change in values.items()})
        drawn = rng.random(shape)  # of a law whose low is above its high too
        return (
            found.sample(rng, shape)
            if isinstance(found, Normal)
            else found.low + (found.high - found.low) * drawn
        )

    return kernel


def swapped(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    assert isinstance(law, Uniform)
    return law.high + (law.high - law.low) * rng.random(shape)


def constant(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    return np.full(shape, law.sample(rng, shape).reshape(-1)[:1]) if np.prod(shape) else np.zeros(shape)


def rows_alike(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    found = law.sample(rng, shape)
    return np.broadcast_to(found[:1], shape) if found.ndim > 1 else found


def pairs(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    flat = law.sample(rng, shape).reshape(-1)
    return np.repeat(flat[::2], 2)[: flat.size].reshape(shape)


def one_tail(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    """Draw again what is in the lowest 2 percent."""
    assert isinstance(law, (Normal, Uniform))
    found, end = law.sample(rng, shape), law.threshold(0.02)
    for _ in range(8):
        found = np.where(found < end, law.sample(rng, shape), found)
    return found


def of_other_chances(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    """Bernoulli: of all elements the mean chance; Multinomial: each class as probable as any."""
    if isinstance(law, Bernoulli):
        return Bernoulli(np.full(shape, law.chances.mean() if law.chances.size else 0)).sample(rng, shape)
    assert isinstance(law, Multinomial)
    return Multinomial(np.zeros_like(law.logarithms)).sample(rng, shape)


def turned(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    """Bernoulli: 0 and 1 changed for each other; Multinomial: classes counted from the end."""
    found = law.sample(rng, shape)
    return 1 - found if isinstance(law, Bernoulli) else law.logarithms.shape[1] - 1 - found  # type: ignore[attr-defined]


def beyond(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    """Count from 1, or give 2 for 1."""
    return law.sample(rng, shape) * (2 if isinstance(law, Bernoulli) else 1) + (
        not isinstance(law, Bernoulli)
    )


def first_row(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    """Multinomial: the chances of the first row, for all."""
    assert isinstance(law, Multinomial)
    return Multinomial(np.broadcast_to(law.logarithms[:1], law.logarithms.shape)).sample(rng, shape)


ALL: Mapping[str, Kernel] = {"constant": constant, "rows alike": rows_alike, "each twice": pairs}
_NORMAL: Mapping[str, Kernel] = {
    **ALL,
    "mean ignored": changed(mean=lambda _: 0.0),
    "mean off by a fifth of the scale": lambda law, rng, shape: (
        law.sample(rng, shape) + 0.2 * law.scale  # type: ignore[attr-defined]
    ),
    "scale ignored": changed(scale=lambda _: 1.0),
    "scale for a variance": changed(scale=lambda scale: scale**0.5),
    "scale a fifth too large": changed(scale=lambda scale: 1.2 * scale),
    "a tail cut off": one_tail,
    "uniform": lambda law, rng, shape: (
        law.mean + law.scale * rng.uniform(-(3**0.5), 3**0.5, shape)  # type: ignore[attr-defined]
    ),
}
_UNIFORM: Mapping[str, Kernel] = {
    **ALL,
    "low ignored": changed(low=lambda _: 0.0),
    "high ignored": changed(high=lambda _: 1.0),
    "low and high swapped": swapped,
    "high for a width": lambda law, rng, shape: law.low + law.high * rng.random(shape),  # type: ignore[attr-defined]
    "a tail cut off": one_tail,
    "squares": lambda law, rng, shape: (
        law.low + (law.high - law.low) * rng.random(shape) ** 1.2  # type: ignore[attr-defined]
    ),
}
WRONG: Mapping[str, Mapping[str, Kernel]] = {
    **dict.fromkeys(NORMAL, _NORMAL),
    **dict.fromkeys(UNIFORM, _UNIFORM),
    "Bernoulli": {
        "constant": constant,
        "rows alike": rows_alike,
        "turned": turned,
        "2 for 1": beyond,
        "other chances": of_other_chances,
    },
    "Multinomial": {
        **ALL,
        "turned": turned,
        "counted from 1": beyond,
        "other chances": of_other_chances,
        "the first row": first_row,
    },
}


@pytest.mark.parametrize(
    ("name", "mistake"), one_of(8, [(name, each) for name in NAMES for each in WRONG[name]])
)
def test_wrong_kernels_turn_two_cases_red(name: str, mistake: str) -> None:
    red = [s for s in known(name) if is_red(s, outputs(s, WRONG[name][mistake]))]
    assert len(red) >= 2


@pytest.mark.parametrize("name", one_of(3, NAMES))
@pytest.mark.parametrize(
    ("mistake", "seeds"), [("the seed ignored", (1, 2, 3)), ("all seeds one", (1, 1, 1))], ids=str
)
def test_seeds_that_are_taken_wrongly_turn_two_cases_red(
    name: str, mistake: str, seeds: tuple[int, int, int]
) -> None:
    red = [s for s in known(name) if is_red(s, outputs(s, right, seeds))]
    assert len(red) >= 2, mistake


@pytest.mark.parametrize("name", one_of(3, NAMES))
def test_another_type_turns_two_cases_red(name: str) -> None:
    red = [
        s
        for s in known(name)
        if s.expected[0].dtype != "float64" and is_red(s, outputs(s, right, dtype="float64"))
    ]
    assert len(red) >= 2


def test_the_error_rate_is_that_of_a_right_law() -> None:
    """Elements of a right law come near to no limit: with a rate of 1e-9, 2,000 draws turn none red."""
    rng = np.random.default_rng(1)
    laws: tuple[tuple[Law, tuple[int, ...]], ...] = (
        (Normal("float32", 1, 2), (500,)),
        (Uniform("float16", -1, 3), (500,)),
        (Bernoulli(np.linspace(0, 1, 300).reshape(10, 30)), (10, 30)),
        (Multinomial(np.log([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])), (2, 200)),
    )
    assert ERROR_RATE == 1e-9
    for law, shape in laws:
        assert not any(doubtful(law, law.sample(rng, shape)) for _ in range(500))


@pytest.mark.parametrize("law", [Normal("float32", -3.0, 0.0), Uniform("float32", -3.0, -3.0)])
def test_a_law_without_spread_is_one_number(law: Law) -> None:
    drawn = Tensor("float32", np.full((64, 65), -3.0, np.float32))
    other = Tensor("float32", np.full((64, 65), np.nextafter(np.float32(-3), np.float32(0))))
    assert Judge(law, "float32", 1)(drawn, (drawn,)) is None
    assert "cannot be drawn" in str(Judge(law, "float32", 0)(other, ()))


def test_a_row_without_probabilities_has_classes_all_the_same() -> None:
    law = Multinomial(np.array([[-np.inf, -np.inf], [np.nan, 0.0], [0.0, -np.inf]]))
    drawn = np.array([[0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert doubtful(law, drawn) is None
    for row, class_ in ((0, 2.0), (1, -1.0), (2, 1.0)):
        wrong = drawn.copy()
        wrong[row, 2] = class_
        assert "cannot be drawn" in str(doubtful(law, wrong))
