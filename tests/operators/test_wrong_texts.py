"""Wrong kernels of StringNormalizer and TfIdfVectorizer turn cases of the specs red; right ones, which walk
otherwise than the formulas, turn none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice, product
from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.dtypes import Array
from harness.operators.base import Call
from tests.mutants.any_operator import Sample, samples
from tests.sampled import one_of

Kernel = Callable[[Call, Array, str], Array]
"""Takes a call, its input and the mistake to make, of which "" is none."""

_LIMIT = 2_000
"""Nothing is skipped beyond so many items, which no row has."""


@cache
def cases(name: str) -> list[Sample]:
    return samples(name, 1_100)


def red(name: str, kernel: Kernel, mistake: str) -> Iterator[str]:
    """Yield the cases that a kernel gets wrong."""
    for sample in cases(name):
        (expected,) = sample.expected
        with np.errstate(all="ignore"):
            actual = Tensor(expected.dtype, kernel(sample.call, sample.arrays["X"], mistake))
        if compare(expected, actual).diff is not None:
            yield sample.case.id


def changed(text: str, action: str, mistake: str) -> str:
    """Change the letters of ASCII."""
    if action == "NONE":
        return text
    if mistake == "any byte for a letter":
        return "".join(chr(ord(c) ^ 32) if ord(c) in range(64, 96) and action == "LOWER" else c for c in text)
    if mistake == "the first letter alone":
        return text[:1].upper() + text[1:] if action == "UPPER" else text[:1].lower() + text[1:]
    if mistake == "four bytes a character for three" and text and len(text.encode()) > 3 * len(text):
        return "Conversion Error"
    if mistake == "the text that stands for an error" and text == "Conversion Error":
        return ""
    if mistake == "a buffer of 255":
        text = text[:255]
    if mistake == "texts stored in place alone" and len(text) > 15:
        return text
    done = text.lower() if (action == "LOWER") != (mistake == "actions exchanged") else text.upper()
    return done.partition("\0")[0] if mistake == "the end at a zero" else done


def normalized(call: Call, x: Array, mistake: str) -> Array:
    """Filter in place, then change."""
    action, words = str(call.attributes["case_change_action"]), list(call.attributes.get("stopwords") or ())  # type: ignore[arg-type]
    sensitive = bool(call.attributes["is_case_sensitive"])
    if mistake == "always case-sensitive":
        sensitive = True
    if mistake == "never case-sensitive":
        sensitive = False
    if mistake == "the last stop word lost":
        words = words[:-1]
    if mistake == "an empty stop word ignored":
        words = [word for word in words if word]
    texts = list(x.reshape(-1).tolist())
    if mistake == "case before stop words":
        texts = [changed(text, action, "") for text in texts]

    def key(text: str) -> str:
        text = text.partition("\0")[0] if mistake == "compared up to a zero" else text
        return text if sensitive else text.upper()

    stops = {word if mistake == "stop words as they are" else key(word) for word in words}
    kept = []
    for text in texts:
        found = key(text)
        stopped = found in stops
        if mistake == "beginnings of texts":
            stopped = any(found.startswith(stop) for stop in stops if stop) or found in stops
        if mistake == "parts of texts":
            stopped = any(stop in found for stop in stops if stop) or found in stops
        if mistake == "the first stop word alone" and stopped:
            stops.discard(found)
        if mistake == "kept for removed" and stops:
            stopped = not stopped
        if not stopped and not (mistake == "empty texts removed" and not text):
            kept.append(found if mistake == "what was compared is returned" else text)
    if mistake == "duplicates removed":
        kept = list(dict.fromkeys(kept))
    if mistake == "sorted":
        kept.sort()
    done = [changed(text, action, mistake) for text in kept]
    if not done:
        done = (
            []
            if mistake == "nothing for nothing"
            else [texts[0]]
            if mistake == "the first for nothing"
            else [""]
        )
        if mistake == "one dimension for nothing":
            return np.array(done, object)
    shape = (len(done),) if mistake == "one dimension for two" else (*x.shape[:-1], len(done))
    return np.array(done, object).reshape(shape)


NORMALIZER = (
    "any byte for a letter", "the first letter alone", "four bytes a character for three", "the text that stands for an error",
    "a buffer of 255", "texts stored in place alone", "actions exchanged", "the end at a zero", "always case-sensitive",
    "never case-sensitive", "the last stop word lost", "an empty stop word ignored", "case before stop words",
    "compared up to a zero", "stop words as they are", "beginnings of texts", "parts of texts", "the first stop word alone",
    "kept for removed", "empty texts removed", "what was compared is returned", "duplicates removed", "sorted",
    "nothing for nothing", "the first for nothing", "one dimension for nothing", "one dimension for two",
)  # fmt: skip


def pool_of(call: Call, mistake: str) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield the n-grams of the pool with their places in it."""
    pool: Any = call.attributes.get("pool_strings", call.attributes.get("pool_int64s"))
    starts: Any = call.attributes["ngram_counts"]
    if mistake == "a length without n-grams forgotten":
        starts = tuple(dict.fromkeys(starts))
    place = 0
    for n, start in enumerate(starts):
        end = starts[n + 1] if n + 1 < len(starts) else len(pool)
        for at in range(start, end, n + 1):
            yield place, tuple(pool[at : at + n + 1])
            place += 1


def item(value: Any, mistake: str) -> Any:
    """See an item of a row or of the pool."""
    if isinstance(value, str):
        value = value.partition("\0")[0] if mistake == "texts up to a zero" else value
        return value.lower() if mistake == "texts of any case" else value
    return value & 0xFFFFFFFF if mistake == "32 bits of an integer" else value


def distances(length: int, most: int, reach: int, mistake: str) -> Iterator[tuple[int, ...]]:
    """Yield the distances between the items of an n-gram."""
    if length == 1:
        yield from [()] * (min(most, reach) + 1 if mistake == "single items for each skip" else 1)
        return
    skips = range(min(most, reach) + 1)
    if mistake == "one skip fewer":
        skips = range(max(1, len(skips) - 1))
    if mistake == "one skip more":
        skips = range(len(skips) + 1)
    if mistake == "the greatest skip alone":
        skips = skips[-1:]
    if mistake == "no skip":
        skips = range(1)
    if mistake == "a skip for each item":
        yield from product([skip + 1 for skip in range(min(most, 6) + 1)], repeat=length - 1)
    elif mistake == "skips before the last item alone":
        yield from ((*[1] * (length - 2), skip + 1) for skip in skips)
    else:
        yield from ((skip + 1,) * (length - 1) for skip in skips)


def counted(call: Call, rows: list[list[Any]], mistake: str) -> Array:
    """Count every n-gram of the pool by itself, by its place in the pool."""
    grams = list(pool_of(call, mistake))
    counts = np.zeros((len(rows), len(grams)))
    least, greatest, most = (
        int(call.attributes[n]) for n in ("min_gram_length", "max_gram_length", "max_skip_count")
    )  # type: ignore[arg-type]
    least = 1 if mistake == "min_gram_length ignored" else least
    greatest = least if mistake == "the least length alone" else greatest
    greatest = 99 if mistake == "max_gram_length ignored" else greatest
    for r, row in enumerate(rows):
        seen = [item(each, mistake) for each in row]
        for place, gram in grams:
            if not least <= len(gram) <= greatest:
                continue
            wanted = [item(each, mistake) for each in gram]
            for steps in distances(len(gram), most, min(len(row), _LIMIT), mistake):
                offsets = np.cumsum((0, *steps)).tolist()
                first, last = 0, len(row) - offsets[-1]
                first += mistake == "the first item never begins"
                last -= mistake == "the last n-gram lost"
                start = first
                while start < last:
                    there = [seen[start + offset] for offset in offsets]
                    if there == wanted or (
                        mistake == "items in any order" and sorted(there) == sorted(wanted)
                    ):
                        counts[r, place] += 1
                        start += offsets[-1] if mistake == "no n-gram overlaps itself" else 0
                    start += 1
    return counts


def vectorized(call: Call, x: Array, mistake: str) -> Array:
    """Count, weigh and set at coordinates."""
    rows = np.atleast_2d(x).tolist()
    if mistake == "n-grams across rows":
        rows = [row + (rows[n + 1] if n + 1 < len(rows) else [])[:2] for n, row in enumerate(rows)]
    if mistake == "the first row for all":
        rows = [rows[0]] * len(rows)
    counts = counted(call, rows, mistake)
    places: Any = call.attributes["ngram_indexes"]
    if mistake == "ngram_indexes ignored":
        places = tuple(range(len(places)))
    mode, width = call.attributes["mode"], max(places) + 1
    if mistake == "as wide as the pool":
        width = max(width, len(places)) if width <= len(places) else len(places)
        places = tuple(min(place, width - 1) for place in places)
    weights = np.array(call.attributes.get("weights") or [1.0] * len(places), np.float32)
    if mistake == "weights by coordinate":
        weights = np.array([weights[place] if place < len(weights) else 0 for place in places], np.float32)
    if mistake == "counts of 8 bits":
        counts = counts % 256
    if mistake == "TF counts once" and mode == "TF":
        counts = np.minimum(counts, 1)
    if (mode == "IDF") != (mistake == "IDF counts all" and mode == "IDF"):
        counts = np.minimum(counts, 1)
    if mistake == "TFIDF counts once" and mode == "TFIDF":
        counts = np.minimum(counts, 1)
    if (mode != "TF" and mistake != f"{mode} without weights") or mistake == "TF with weights":
        counts = np.where(counts > 0, counts.astype(np.float32) * weights, 0)
    found = np.zeros((len(rows), width), np.float32)
    for place, column in zip(places, counts.T, strict=not mistake):
        found[:, place] = column
    return found.reshape(*x.shape[:-1], width)


VECTORIZER = (
    "a length without n-grams forgotten", "texts up to a zero", "texts of any case", "32 bits of an integer",
    "single items for each skip", "one skip fewer", "one skip more", "the greatest skip alone", "no skip", "a skip for each item",
    "skips before the last item alone", "min_gram_length ignored", "the least length alone", "max_gram_length ignored",
    "the first item never begins", "the last n-gram lost", "items in any order", "no n-gram overlaps itself", "n-grams across rows",
    "the first row for all", "ngram_indexes ignored", "as wide as the pool", "weights by coordinate", "counts of 8 bits",
    "TF counts once", "IDF counts all", "TFIDF counts once", "TF with weights", "IDF without weights", "TFIDF without weights",
)  # fmt: skip
KERNELS: dict[str, Kernel] = {"StringNormalizer": normalized, "TfIdfVectorizer": vectorized}


@pytest.mark.parametrize("name", one_of(2, KERNELS))
def test_a_right_kernel_turns_nothing_red(name: str) -> None:
    assert len(cases(name)) >= 200
    assert list(red(name, KERNELS[name], "")) == []


@pytest.mark.parametrize(
    ("name", "mistake"),
    one_of(
        8,
        [
            *(("StringNormalizer", each) for each in NORMALIZER),
            *(("TfIdfVectorizer", each) for each in VECTORIZER),
        ],
    ),
)
def test_a_mistake_turns_two_cases_red(name: str, mistake: str) -> None:
    assert len(list(islice(red(name, KERNELS[name], mistake), 2))) == 2
