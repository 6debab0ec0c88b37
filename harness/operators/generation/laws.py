"""Laws of random numbers, and the tests by which drawn elements are judged: a right kernel fails one case in 10**9.

Counts of elements below a threshold, or of one class, are held to Chernoff's bound with Kullback and Leibler's
divergence (Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", 1963, theorem 1), products of
elements at a distance to Azuma's inequality. Both hold for any number of elements; the limit is shared out among all
tests of an output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import log, prod, sqrt
from statistics import NormalDist
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.model.float_formats import FORMATS, Float64
from harness.operators.bounded.trigonometry import erf

ERROR_RATE = 1e-9
"""How often the elements of a right kernel are taken for wrong ones, at most."""
_SHARES = (0.0002, 0.001, 0.01, *(n / 32 for n in range(1, 32)), 0.99, 0.999, 0.9998)
"""The parts of a continuous law that lie below the thresholds."""
_SLACK = 1e-5
"""How far a probability may be off, by roundings of float32."""


class Event(NamedTuple):
    """Something that happens to some of `total` elements, each with a probability between two."""

    what: str
    happened: int
    total: int
    least: float
    most: float


class Law(Protocol):
    """Of what elements are drawn, in float64."""

    def possible(self, values: Float64) -> NDArray[np.bool_]:
        """Say which elements can be drawn at all."""
        ...

    def events(self, values: Float64) -> Iterator[Event]:
        """Yield events of known probability."""
        ...

    def centred(self, values: Float64) -> Float64:
        """Return numbers in [-1, 1], each of mean 0 and independent of all others."""
        ...

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
        """Draw elements."""
        ...


@dataclass(frozen=True)
class _Continuous:
    dtype: str

    @property
    def varies(self) -> bool:
        """Say whether the type has numbers enough between the thresholds for elements to differ."""
        first, last = (self.threshold(share) for share in (_SHARES[0], _SHARES[-1]))
        return last - first > 256 * float(FORMATS[self.dtype].ulp(np.array(max(abs(first), abs(last)))))

    def share(self, values: Float64) -> Float64:
        """Return the probability of elements up to each value."""
        raise NotImplementedError

    def threshold(self, share: float) -> float:
        """Return the value up to which a part of the elements lies."""
        raise NotImplementedError

    def events(self, values: Float64) -> Iterator[Event]:
        """Yield how many elements lie up to each threshold; rounding may move those within a unit in the last place."""
        places = np.array([self.threshold(share) for share in _SHARES])
        step = FORMATS[self.dtype].ulp(places)
        below = np.searchsorted(np.sort(values, axis=None), places, "right")
        chances = (self.share(places - step), self.share(places + step))
        for at, count, least, most in zip(
            *(each.tolist() for each in (places, below, *chances)), strict=True
        ):
            yield Event(f"elements up to {at:.6g}", count, values.size, least, most)

    def centred(self, values: Float64) -> Float64:
        """Return by which part of the law each element is reached, doubled and less 1."""
        return 2 * self.share(values) - 1


@dataclass(frozen=True)
class Normal(_Continuous):
    """The normal law."""

    mean: float
    scale: float

    def __str__(self) -> str:
        return f"elements of the normal law of mean {self.mean:g} and scale {self.scale:g}"

    def share(self, values: Float64) -> Float64:
        """Return the probability of elements up to each value."""
        return 0.5 + 0.5 * erf((values - self.mean) / (self.scale * sqrt(2)))

    def threshold(self, share: float) -> float:
        """Return the value up to which a part of the elements lies."""
        return self.mean + self.scale * NormalDist().inv_cdf(share)

    def possible(self, values: Float64) -> NDArray[np.bool_]:
        """Any number within 40 times the scale, as the type rounds it."""
        low, high = FORMATS[self.dtype].rounded(self.mean + 40 * self.scale * np.array([-1.0, 1.0]))
        return np.asarray((values >= low) & (values <= high))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
        """Draw elements."""
        return np.asarray(rng.normal(self.mean, self.scale, shape))


@dataclass(frozen=True)
class Uniform(_Continuous):
    """The uniform law."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"elements of the uniform law from {self.low:g} to {self.high:g}"

    def share(self, values: Float64) -> Float64:
        """Return the probability of elements up to each value."""
        return np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0)

    def threshold(self, share: float) -> float:
        """Return the value up to which a part of the elements lies."""
        return self.low + share * (self.high - self.low)

    def possible(self, values: Float64) -> NDArray[np.bool_]:
        """Numbers between the two, as their type rounds these."""
        low, high = FORMATS[self.dtype].rounded(np.array([self.low, self.high]))
        return np.asarray((values >= low) & (values <= high))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
        """Draw elements."""
        return np.asarray(rng.uniform(self.low, self.high, shape))


@dataclass(frozen=True)
class Bernoulli:
    """1 with a probability of its own for each element, 0 otherwise."""

    chances: Float64

    def __str__(self) -> str:
        return "1 with the probability that the input has, else 0"

    def possible(self, values: Float64) -> NDArray[np.bool_]:
        """0 unless the probability is 1, 1 unless it is 0."""
        return np.asarray(((values == 0) & (self.chances < 1)) | ((values == 1) & (self.chances > 0)))

    def events(self, values: Float64) -> Iterator[Event]:
        """Yield how many are 1, of those of neighbouring probabilities."""
        for low, high in pairwise(np.linspace(0, 1, 5)):
            chosen = (self.chances >= low) & (self.chances < high)
            if chosen.any():
                chance = float(self.chances[chosen].mean())
                yield Event(
                    f"ones of probabilities from {low:g} to {high:g}",
                    int(values[chosen].sum()),
                    int(chosen.sum()),
                    chance,
                    chance,
                )

    def centred(self, values: Float64) -> Float64:
        """Return by how much each element is above its mean."""
        return values - self.chances

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
        """Draw elements."""
        return np.asarray(rng.random(shape) < self.chances, np.float64)


@dataclass(frozen=True)
class Multinomial:
    """A class for each element, by the logarithms of probabilities of its row."""

    logarithms: Float64

    def __str__(self) -> str:
        return "classes with the probabilities whose logarithms the input has"

    @property
    def chances(self) -> Float64:
        """The probability of each class, by rows; NaN in rows whose logarithms leave it open."""
        with np.errstate(invalid="ignore"):
            powers = np.exp(self.logarithms - self.logarithms.max(-1, keepdims=True))
        return np.asarray(powers / powers.sum(-1, keepdims=True))

    def possible(self, values: Float64) -> NDArray[np.bool_]:
        """Whole numbers that are classes, of some probability where that is known."""
        whole = (values >= 0) & (values < self.logarithms.shape[1]) & (values == np.floor(values))
        classes = np.where(whole, values, 0).astype(np.int64)
        return np.asarray(whole & (np.take_along_axis(self.chances, classes, -1) != 0))

    def events(self, values: Float64) -> Iterator[Event]:
        """Yield how often each row has each class."""
        for number, (row, chances) in enumerate(zip(values, self.chances, strict=True)):
            for class_, chance in enumerate([] if np.isnan(chances).any() else chances.tolist()):
                count = int((row == class_).sum())
                yield Event(f"elements {class_} of row {number}", count, row.size, chance, chance)

    def centred(self, values: Float64) -> Float64:
        """Return by which part of the law each element is reached, from its middle, doubled and less 1."""
        reached = np.cumsum(self.chances, -1)
        middle = np.nan_to_num(2 * reached - self.chances - 1, nan=0.0)
        return np.asarray(np.take_along_axis(middle, values.astype(np.int64), -1))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64:
        """Draw elements."""
        reached = np.cumsum(self.chances, -1)
        drawn = rng.random(shape)
        return np.asarray(
            np.minimum((drawn[:, :, None] >= reached[:, None]).sum(-1), reached.shape[1] - 1), np.float64
        )


def doubtful(law: Law, values: Float64) -> str | None:
    """Name the fault of drawn elements: one that cannot be, an event too often or too seldom, elements that follow
    from others. None where there is none."""
    if not values.size:
        return None
    possible = law.possible(values)
    if not possible.all():
        place = np.unravel_index(int(np.argmin(possible)), values.shape)
        return f"{values[place]:.9g} at {[int(each) for each in place]} cannot be drawn"
    if isinstance(law, _Continuous) and not law.varies:
        return None
    events = [*law.events(values)]
    row, size = values.shape[-1] if values.ndim else 1, values.size
    lags = sorted({lag for lag in (1, 2, row, prod(values.shape[1:]), size // 2) if 0 < lag < size})
    limit = _limit(len(events) + len(lags))
    for what, happened, total, least, most in events:
        if total * _divergence(happened / total, least, most) > limit:
            return (
                f"{happened:,} of {total:,} are {what}, where {total * (least + most) / 2:,.0f} are expected"
            )
    flat = law.centred(values).reshape(-1)
    for lag in lags:
        if _related(flat[:-lag], flat[lag:], limit):
            return f"elements {lag} apart follow from each other"
    return None


def related(law: Law, first: Float64, second: Float64) -> str | None:
    """Say that the elements of one node follow from those of another at their places; None where they do not."""
    if not first.size or not law.possible(first).all() or (isinstance(law, _Continuous) and not law.varies):
        return None
    follows = _related(law.centred(first).reshape(-1), law.centred(second).reshape(-1), _limit(1))
    return "what a node with another seed drew follows from what this one drew" if follows else None


def _limit(tests: int) -> float:
    return log(2 * max(tests, 1) / ERROR_RATE)


def _related(first: Float64, second: Float64, limit: float) -> bool:
    return bool(abs(float(np.dot(first, second))) > sqrt(2 * first.size * limit))


def _divergence(share: float, least: float, most: float) -> float:
    """Return Kullback and Leibler's divergence of a share from the nearest probability between two."""
    near = min(max(share, least - _SLACK), most + _SLACK)
    near = min(max(near, 0.0), 1.0)
    found = 0.0
    for part, chance in ((share, near), (1 - share, 1 - near)):
        if part > 0:
            found += part * log(part / chance) if chance > 0 else float("inf")
    return found
