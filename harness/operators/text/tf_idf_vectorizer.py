"""TfIdfVectorizer: how often each n-gram of a pool stands in a row, and with what weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.expected import Exact, Expected
from harness.operators.base import Call, Family, Operator, Shape, Undefined, ValueKind, value_kinds
from harness.operators.bounded import arithmetic as declared
from harness.operators.bounded import contracted, number, where

# count[r, i] = number of (start, skip) with X[r, start + k (skip + 1)] = k-th item of the i-th n-gram for all k < n
#               0 <= skip <= max_skip_count, of single items 0 alone; 0 unless min_gram_length <= n <= max_gram_length
# Y[r, ngram_indexes[i]] = count[r, i]                     mode TF
#                          weights[i] min(count[r, i], 1)  mode IDF
#                          weights[i] count[r, i]          mode TFIDF
# Coordinates that no n-gram has are 0. Lengths of n-grams follow from ngram_counts, the places in the pool where those of each
# length begin. A product with a count may be a sum of as many weights, and the sign of a zero is not judged.

MODES = ("TF", "IDF", "TFIDF")
KINDS = value_kinds("runs", "lanes", "few", "same", "absent")
"""runs: parts of the pool one after another, which the ends of rows cut, and what is nearly in it; lanes: the same with
as many others between neighbours as may be skipped; few: the first two items of the pool in any order; same: the first
again and again; absent: nothing of the pool."""
_REQUIRED = ("mode", "min_gram_length", "max_gram_length", "max_skip_count", "ngram_counts", "ngram_indexes")
_NO_POOL = (1, 2, 3)


def tf_idf_vectorizer(call: Call, inputs: Mapping[str, Tensor], arithmetic: str) -> tuple[Expected, ...]:
    """Count and weigh by the formula above; Undefined where ONNX leaves the result open."""
    _refuse_open(call)
    grams, places = _grams(call), _numbers(call, "ngram_indexes")
    asked = range(_number(call, "min_gram_length"), _number(call, "max_gram_length") + 1)
    known = {gram: place for gram, place in zip(grams, places, strict=True) if len(gram) in asked}
    if len(known) < sum(len(gram) in asked for gram in grams):
        raise Undefined("which of two equal n-grams is counted")
    x = inputs["X"].array
    counts = np.zeros(_output_shape(call))
    for row, found in zip(np.atleast_2d(x), np.atleast_2d(counts), strict=True):
        for place in _found(row.tolist(), known, _number(call, "max_skip_count")):
            found[place] += 1
    mode, given = call.attributes["mode"], call.attributes.get("weights")
    counts = np.minimum(counts, 1) if mode == "IDF" else counts
    if mode == "TF" or given is None:
        return (Exact(Tensor("float32", counts.astype(np.float32))),)
    weights = np.zeros(counts.shape[-1])
    weights[list(places)] = given
    if not np.isfinite(np.broadcast_to(weights, counts.shape)[counts == 0]).all():
        raise Undefined("whether a weight that is not finite makes something of a count of 0")
    used = declared(arithmetic, "float32")
    held = number(np.broadcast_to(weights, counts.shape).astype(np.float32), used)
    if mode == "IDF":
        return (where(counts > 0, held, 0.0).stored("float32"),)
    summed = contracted(np.multiply, number(counts, used), where(counts > 0, held, 0.0), counts)
    return (summed.stored("float32"),)


def _refuse_open(call: Call) -> None:
    """Raise Undefined for numbers that no source gives a meaning."""
    starts, places = _numbers(call, "ngram_counts"), _numbers(call, "ngram_indexes")
    if _number(call, "min_gram_length") < 1:
        raise Undefined("what an n-gram of no item is")
    if _number(call, "max_gram_length") > len(starts):
        raise Undefined("whether max_gram_length may be greater than any of ngram_counts")
    if _number(call, "max_skip_count") < 0:
        raise Undefined("what a negative max_skip_count means")
    if starts[0] > 0:
        raise Undefined("what items before the first n-gram are")
    if len(set(places)) < len(places):
        raise Undefined("what a coordinate of two n-grams holds")


def _found(row: list[object], known: Mapping[tuple[object, ...], int], most: int) -> Iterator[int]:
    """Yield the coordinates of the n-grams of a row, each as often as it stands there."""
    for length in sorted({len(gram) for gram in known}):
        for skip in range(min(most, len(row)) + 1) if length > 1 else (0,):
            reach = (length - 1) * (skip + 1) + 1
            for start in range(len(row) - reach + 1):
                place = known.get(tuple(row[start : start + reach : skip + 1]))
                if place is not None:
                    yield place


def _grams(call: Call) -> list[tuple[object, ...]]:
    """Return the n-grams of the pool, in its order."""
    pool, starts = _pool(call), _numbers(call, "ngram_counts")
    return [
        tuple(pool[place : place + length])
        for length, (start, end) in enumerate(pairwise((*starts, len(pool))), start=1)
        for place in range(start, end, length)
    ]


def _pool(call: Call) -> tuple[object, ...]:
    return tuple(call.parameter("pool_strings", call.parameter("pool_int64s", _NO_POOL)))


def _numbers(call: Call, name: str) -> tuple[int, ...]:
    return tuple(call.parameter(name))


def _number(call: Call, name: str) -> int:
    return int(call.parameter(name))


def _output_shape(call: Call) -> Shape:
    return (*call.first.shape[:-1], max(_numbers(call, "ngram_indexes")) + 1)


class Vectorizing(Family):
    """Rows of items, texts or integers, and a pool of n-grams among the attributes."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {"X": KINDS}
    dtypes = ("float32",)

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether something may be skipped."""
        return kind != "lanes" or _number(call, "max_skip_count") > 0

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose items by kind."""
        dtype = call.inputs[name].dtype
        pool, others = _items(call, dtype)
        drawn = raw.reshape(-1).tolist()
        found = np.empty(len(drawn), object if dtype == "string" else dtype)
        if kind in ("runs", "lanes"):
            lanes = 1 + (min(_number(call, "max_skip_count"), 3) if kind == "lanes" else 0)
            for lane in range(lanes):
                found[lane::lanes] = list(_runs(pool, others, drawn[lane::lanes]))
        else:
            items = {"few": pool[:2], "same": pool[:1], "absent": others}[kind]
            found[:] = [items[n % len(items)] for n in drawn]
        return found.reshape(raw.shape)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Rules on the shape, the pool, and the lists that are parallel to it."""
        if any(name not in call.attributes for name in _REQUIRED):
            return "mode, lengths, max_skip_count, ngram_counts and ngram_indexes are required"
        if len(call.first.shape) not in (1, 2):
            return "X has one or two dimensions"
        if call.attributes["mode"] not in MODES:
            return "mode is TF, IDF or TFIDF"
        if _number(call, "min_gram_length") > _number(call, "max_gram_length"):
            return "min_gram_length is at most max_gram_length"
        return _wrong_pool(call) or _wrong_lists(call)

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """A vector for each row, as long as the greatest of ngram_indexes says."""
        return (_output_shape(call),)


def _wrong_pool(call: Call) -> str | None:
    given = [name for name in ("pool_strings", "pool_int64s") if name in call.attributes]
    if len(given) != 1:
        return "either pool_strings or pool_int64s is given, not both"
    if (given[0] == "pool_strings") != (call.first.dtype == "string"):
        return "a pool of texts is for texts, one of integers for integers"
    ends = (*_numbers(call, "ngram_counts"), len(_pool(call)))
    if min(ends) < 0 or any(start > end for start, end in pairwise(ends)):
        return "ngram_counts are places in the pool in ascending order"
    uneven = any((end - start) % length for length, (start, end) in enumerate(pairwise(ends), start=1))
    return "the pool holds whole n-grams" if uneven else None


def _wrong_lists(call: Call) -> str | None:
    places, weights = _numbers(call, "ngram_indexes"), call.attributes.get("weights")
    if not places or min(places) < 0:
        return "ngram_indexes are not negative, and there are some"
    if len(places) != len(_grams(call)):
        return "ngram_indexes has an element for each n-gram"
    wrong = isinstance(weights, tuple) and len(weights) != len(places)
    return "weights has an element for each of ngram_indexes" if wrong else None


def _items(call: Call, dtype: str) -> tuple[Sequence[object], Sequence[object]]:
    """Return items of the pool that a type has, and others that only look like them."""
    pool = _pool(call)
    if dtype == "string":
        texts = [str(each) for each in pool]
        near = [n for t in texts for n in (f"{t}\0", f"{t} ", t.swapcase(), t[:-1], t * 2)]
        return texts, [text for text in (*near, "other") if text not in texts]
    limits = np.iinfo(dtype)
    whole = [each for each in pool if isinstance(each, int)] or list(_NO_POOL)
    close = [n for each in whole for n in (each + 2**32, each - 2**32, -each, each ^ 1 << 20, each + 1)]
    held = [each for each in (*whole, *close, 12345) if limits.min <= each <= limits.max]
    return [n for n in held if n in whole] or [0], [n for n in held if n not in whole]


def _runs(pool: Sequence[object], others: Sequence[object], drawn: Sequence[int]) -> Iterator[object]:
    """Yield stretches of the pool of one to four items, and now and then another item."""
    place = left = 0
    for n in drawn:
        if not left and n >> 24 & 7 == 0:
            yield others[n % len(others)]
            continue
        if not left:
            place, left = n % len(pool), (n >> 16) % 4 + 1
        yield pool[place % len(pool)]
        place, left = place + 1, left - 1


OPERATOR = Operator("TfIdfVectorizer", Vectorizing(), tf_idf_vectorizer)
