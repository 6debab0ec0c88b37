"""Deviating results of operators on texts."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Approx, Exact, Expected
from harness.operators.deviations.base import Deviating, changed, deviation


@deviation
def split_at_spaces(asked: Deviating) -> tuple[Expected, ...]:
    """StringSplit: without a delimiter at spaces alone, not at other white space."""
    texts = asked.inputs["X"].array
    kept = [text.translate({9: "\ue009", 10: "\ue00a", 13: "\ue00d"}) for text in texts.reshape(-1).tolist()]
    held = np.array(kept, object).reshape(texts.shape)
    parts, counts = asked.formula(inputs={"X": Tensor("string", held)})
    assert isinstance(parts, Exact)
    back = [text.translate({0xE009: 9, 0xE00A: 10, 0xE00D: 13}) for text in parts.tensor.array.reshape(-1)]
    return (Exact(Tensor("string", np.array(back, object).reshape(parts.shape))), counts)


@deviation
def counts_of_nothing(asked: Deviating) -> tuple[Expected, ...]:
    """TfIdfVectorizer: no n-gram is found."""
    places = asked.call.parameter("ngram_indexes")
    return (Exact(Tensor("float32", np.zeros((*asked.call.first.shape[:-1], max(places) + 1), np.float32))),)


@deviation
def weights_by_coordinate(asked: Deviating) -> tuple[Expected, ...]:
    """TfIdfVectorizer: the weight of an n-gram is weights[ngram_indexes[i]]; of what lies behind nothing is claimed."""
    weights, places = (asked.call.parameter(name) for name in ("weights", "ngram_indexes"))
    behind = [place for place in places if place >= len(weights)]
    found = asked.approx(weights=tuple(0.0 if place in behind else weights[place] for place in places))
    bound = found.bound.copy()
    bound[..., behind] = np.inf
    return (Approx(found.dtype, found.value, bound),)


# TfIdfVectorizer: the pool is pool_strings.
changed("texts_alone", without=("pool_int64s",))


# TfIdfVectorizer: a scalar is a row of one item.
changed("one_row", {"X": lambda x: x.reshape(1)})


@deviation
def as_many_indexes(asked: Deviating) -> tuple[Expected, ...]:
    """TfIdfVectorizer of single integers: those that have no index are not in the pool, indexes without one are found
    nowhere."""
    pool, places = (asked.call.parameter(name) for name in ("pool_int64s", "ngram_indexes"))
    absent = range(max(pool) + 1, max(pool) + 1 + len(places))
    return asked.formula(pool_int64s=(*pool, *absent)[: len(places)])
