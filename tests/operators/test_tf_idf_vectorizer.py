"""TfIdfVectorizer: counts, weights, coordinates, rules, and what no source defines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.expected import Approx, Exact, nearest
from harness.operators.base import Call, TensorType, Undefined
from harness.operators.text.tf_idf_vectorizer import OPERATOR

PLAIN = {
    "mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": (0,), "ngram_indexes": (0, 1, 2),
    "pool_int64s": (7, 8, 9),
}  # fmt: skip
PAIRS = {
    **PLAIN,
    "min_gram_length": 2,
    "max_gram_length": 2,
    "ngram_counts": (0, 0),
    "ngram_indexes": (0, 1),
    "pool_int64s": (1, 2, 2, 1),
}


def call(x: Any, dtype: str, attributes: dict[str, Any]) -> Call:
    held = {key: value for key, value in attributes.items() if value is not None}
    return Call({"X": TensorType(dtype, np.shape(x))}, held, outputs=("float32",))


def expected(x: Any, attributes: dict[str, Any], dtype: str = "int64") -> Any:
    array = np.array(x, object if dtype == "string" else dtype)
    (found,) = OPERATOR.oracle(call(array, dtype, attributes), {"X": Tensor(dtype, array)}, "opencl")
    return found


def vector(x: Any, attributes: dict[str, Any], dtype: str = "int64") -> Any:
    return nearest(expected(x, attributes, dtype)).array.tolist()


def test_items_are_counted() -> None:
    assert vector([7, 9, 7, 5], PLAIN) == [2, 0, 1]
    assert vector([[7, 9], [5, 8], [8, 8]], PLAIN, "int32") == [[1, 0, 1], [0, 1, 0], [0, 2, 0]]


def test_skips_up_to_the_greatest_are_tried() -> None:
    for most, counts in ((0, [2, 1]), (1, [2, 1]), (2, [3, 1]), (9, [3, 1]), (2**63 - 1, [3, 1])):
        assert vector([1, 2, 1, 2], {**PAIRS, "max_skip_count": most}) == counts


def test_every_gap_of_an_n_gram_is_the_same() -> None:
    three = {
        **PAIRS,
        "max_gram_length": 3,
        "ngram_counts": (0, 0, 0),
        "ngram_indexes": (0,),
        "pool_int64s": (1, 2, 3),
        "max_skip_count": 1,
    }
    assert vector([1, 2, 3], three) == [1]
    assert vector([1, 0, 2, 0, 3], three) == [1]
    assert vector([1, 2, 0, 3], three) == [0]
    assert vector([1, 0, 2, 3], three) == [0]


def test_a_single_item_is_counted_once_whatever_is_skipped() -> None:
    assert vector([7, 8], {**PLAIN, "max_skip_count": 5}) == [1, 1, 0]


def test_no_n_gram_leaves_its_row_and_n_grams_overlap() -> None:
    assert vector([[0, 1], [2, 1]], PAIRS) == [[0, 0], [0, 1]]
    same = {**PAIRS, "ngram_indexes": (0,), "pool_int64s": (1, 1)}
    assert vector([1, 1, 1, 1], same) == [3]


def test_lengths_that_are_not_asked_for_keep_their_coordinates() -> None:
    both = {**PLAIN, "ngram_counts": (0, 1), "ngram_indexes": (2, 0), "pool_int64s": (1, 1, 2)}
    assert vector([1, 2], both) == [0, 0, 1]
    assert vector([1, 2], {**both, "max_gram_length": 2}) == [1, 0, 1]
    assert vector([1, 2], {**both, "min_gram_length": 2, "max_gram_length": 2}) == [1, 0, 0]


def test_weights_follow_the_pool_and_not_the_coordinates() -> None:
    weighed = {**PLAIN, "ngram_indexes": (4, 0, 2), "weights": (0.5, 3.0, 10.0)}
    assert vector([7, 7, 8], {**weighed, "mode": "TFIDF"}) == [3, 0, 0, 0, 1]
    assert vector([7, 7, 8], {**weighed, "mode": "IDF"}) == [3, 0, 0, 0, 0.5]
    assert vector([7, 7, 8], {**weighed, "mode": "TF"}) == [1, 0, 0, 0, 2]
    assert vector([7, 7, 8], {**PLAIN, "mode": "IDF"}) == [1, 1, 0]
    assert vector([7, 7, 8], {**PLAIN, "mode": "TFIDF"}) == [2, 1, 0]


def test_a_count_times_a_weight_may_be_a_sum() -> None:
    weight = float(np.float32(0.1))
    found = expected([7] * 1000, {**PLAIN, "mode": "TFIDF", "weights": (weight, 1.0, 1.0)})
    assert isinstance(found, Approx)
    summed = np.cumsum(np.full(1000, weight, np.float32), dtype=np.float32)[-1]
    for first in (np.float32(1000) * np.float32(weight), summed):
        assert compare(found, Tensor("float32", np.array([first, 0, 0], np.float32))).diff is None
    for wrong in (weight * 999, weight * 1001, weight):
        assert compare(found, Tensor("float32", np.array([wrong, 0, 0], np.float32))).diff is not None
    assert found.bound[1:].tolist() == [0, 0]


def test_counts_and_single_weights_are_exact() -> None:
    assert isinstance(expected([7], PLAIN), Exact)
    found = expected([7, 7], {**PLAIN, "mode": "IDF", "weights": (0.1, 0.2, -0.3)})
    assert found.bound.tolist() == [0, 0, 0]
    negative = np.array([np.float32(0.1), 0, -0.0], np.float32)
    assert compare(found, Tensor("float32", negative)).diff is None


def test_weights_that_are_not_finite() -> None:
    special = {**PLAIN, "mode": "IDF", "weights": (np.inf, np.nan, 1.0)}
    assert np.isposinf(vector([7, 7, 8], special)[0])
    assert np.isnan(vector([7, 7, 8], special)[1])
    for x in ([7], [8], [[7, 8], [7, 7]]):
        with pytest.raises(Undefined):
            expected(x, special)


def test_texts_and_integers_are_compared_whole() -> None:
    texts = {**PLAIN, "pool_int64s": None, "pool_strings": ("a", "a\0", "")}
    assert vector(["a", "A", "a\0", "", "", "a\0b"], texts, "string") == [1, 1, 2]
    wide = {**PLAIN, "pool_int64s": (2**32 + 7, -1, 2**32 - 1)}
    assert vector([7, -1], wide, "int32") == [0, 1, 0]
    assert vector([2**32 + 7, 7, 2**32 - 1], wide) == [1, 0, 1]


def test_nothing_is_counted_in_nothing() -> None:
    for shape, found in (((0,), (3,)), ((2, 0), (2, 3)), ((0, 4), (0, 3))):
        array = nearest(expected(np.zeros(shape), PLAIN)).array
        assert array.shape == found
        assert not array.any()


@pytest.mark.parametrize(
    "changes",
    [
        {"ngram_indexes": (0, 0, 1)},
        {"pool_int64s": (7, 7, 8)},
        {"min_gram_length": 0},
        {"max_gram_length": 2},
        {"max_skip_count": -1},
        {"ngram_counts": (1,), "ngram_indexes": (0, 1)},
    ],
    ids=["one_coordinate", "equal", "no_item", "too_long", "negative", "late"],
)
def test_what_no_source_defines(changes: dict[str, Any]) -> None:
    assert OPERATOR.broken_rule(call([7], "int64", {**PLAIN, **changes})) is None
    with pytest.raises(Undefined):
        expected([7], {**PLAIN, **changes})


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("mode, lengths, max_skip_count, ngram_counts and ngram_indexes are required", {"mode": None}),
        ("mode is TF, IDF or TFIDF", {"mode": "tf"}),
        ("min_gram_length is at most max_gram_length", {"min_gram_length": 2}),
        ("either pool_strings or pool_int64s is given, not both", {"pool_strings": ("a", "b", "c")}),
        ("either pool_strings or pool_int64s is given, not both", {"pool_int64s": None}),
        ("a pool of texts is for texts, one of integers for integers", {"pool_int64s": None, "pool_strings": ("a", "b", "c")}),
        ("ngram_counts are places in the pool in ascending order", {"ngram_counts": (4,)}),
        ("ngram_counts are places in the pool in ascending order", {"ngram_counts": (1, 0)}),
        ("ngram_counts are places in the pool in ascending order", {"ngram_counts": (-1,)}),
        ("the pool holds whole n-grams", {"ngram_counts": (0, 2)}),
        ("ngram_indexes are not negative, and there are some", {"ngram_indexes": (0, -1, 2)}),
        ("ngram_indexes are not negative, and there are some", {"ngram_indexes": ()}),
        ("ngram_indexes has an element for each n-gram", {"ngram_indexes": (0, 1)}),
        ("weights has an element for each of ngram_indexes", {"weights": (1.0, 2.0)}),
    ],
)  # fmt: skip
def test_rules(rule: str, changes: dict[str, Any]) -> None:
    assert OPERATOR.broken_rule(call([7], "int64", {**PLAIN, **changes})) == rule


def test_ranks_and_shapes() -> None:
    for shape in ((), (1, 1, 1)):
        assert OPERATOR.broken_rule(call(np.zeros(shape), "int64", PLAIN)) == "X has one or two dimensions"
    wide = {**PLAIN, "ngram_indexes": (70000, 0, 2)}
    assert OPERATOR.family.output_shapes(OPERATOR, call(np.zeros((3, 4)), "int64", wide)) == ((3, 70001),)
    assert OPERATOR.family.output_shapes(OPERATOR, call(np.zeros(4), "int64", wide)) == ((70001,),)


def chosen(kind: str, dtype: str, attributes: dict[str, Any]) -> list[Any]:
    entropy = (np.arange(400, dtype="<u4") * np.uint32(2654435761)).tobytes()
    found: list[Any] = OPERATOR.family.generate(
        OPERATOR, kind, "X", call(np.zeros(400), dtype, attributes), entropy
    ).tolist()
    return found


def test_kinds_of_items() -> None:
    assert set(chosen("same", "int64", PLAIN)) == {7}
    assert set(chosen("few", "int32", PLAIN)) == {7, 8}
    assert not {7, 8, 9} & set(chosen("absent", "int64", PLAIN))
    assert 2**32 + 7 in chosen("absent", "int64", PLAIN)
    assert vector(chosen("runs", "int64", PAIRS), PAIRS)[0] > 20
    texts = {**PLAIN, "pool_int64s": None, "pool_strings": ("a", "b", "")}
    assert {"a\0", "A", "other"} <= set(chosen("absent", "string", texts))
    assert not OPERATOR.family.applies(OPERATOR, "lanes", "X", call([1], "int64", PLAIN))
