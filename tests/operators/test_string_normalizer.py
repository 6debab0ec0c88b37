"""StringNormalizer: what is removed, what is changed, and what no source defines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.operators.base import Call, TensorType, Undefined
from harness.operators.text.string_normalizer import KINDS, OPERATOR, string_normalizer


def normalized(*texts: str, action: str = "NONE", sensitive: int = 0, stopwords: tuple[str, ...] = ()) -> Any:
    return string_normalizer(np.array(texts, object), action, sensitive, stopwords).tolist()


def call(*shape: int, action: str = "NONE", sensitive: int = 0, stopwords: tuple[str, ...] = ()) -> Call:
    attributes = {"case_change_action": action, "is_case_sensitive": sensitive, "stopwords": stopwords}
    return Call({"X": TensorType("string", shape)}, attributes, outputs=("string",))


def test_stop_words_are_removed_before_the_case_changes() -> None:
    texts, stops = ("Monday", "monday", "TUE"), ("monday", "tue")
    assert normalized(*texts, action="LOWER", sensitive=1, stopwords=stops) == ["monday", "tue"]
    assert normalized(*texts, action="UPPER", sensitive=1, stopwords=stops) == ["MONDAY", "TUE"]
    assert normalized(*texts, action="UPPER", stopwords=stops) == [""]


def test_case_is_compared_and_stays() -> None:
    assert normalized("ABC", "aBd", "D", stopwords=("abC", "d")) == ["aBd"]


def test_order_and_duplicates_stay() -> None:
    assert normalized("b", "a", "b", "", "b", stopwords=("a",)) == ["b", "b", "", "b"]


def test_nothing_left_is_one_empty_text_of_the_same_rank() -> None:
    found = string_normalizer(np.array([["a", "A"]], object), "NONE", 0, ("a",))
    assert found.shape == (1, 1)
    assert found.tolist() == [[""]]
    assert normalized("", "", stopwords=("",)) == [""]


def test_letters_of_ascii_alone_change() -> None:
    assert normalized("aZ09@[`{\0z", "\u4e2d\U0001f600x", action="UPPER") == [
        "AZ09@[`{\0Z",
        "\u4e2d\U0001f600X",
    ]
    assert normalized("aZ09@[`{\0Z", action="LOWER") == ["az09@[`{\0z"]


@pytest.mark.parametrize("letter", ["\u00e9", "\u00df", "\u0130", "\u017f", "\u212a", "\u03c2", "\u01c5"])
def test_the_case_of_other_letters_is_not_defined(letter: str) -> None:
    assert normalized(letter) == [letter]
    for action in ("LOWER", "UPPER"):
        with pytest.raises(Undefined):
            normalized("a", letter, action=action)
    assert normalized(letter, "A", action="LOWER", sensitive=1, stopwords=(letter,)) == ["a"]


def test_other_letters_are_alike_where_every_locale_says_so() -> None:
    assert normalized("\u00e9", "b", stopwords=("\u00e9",)) == ["b"]
    assert normalized("\u00e9", "b", stopwords=("e", "B")) == ["\u00e9"]
    for text, word in (("\u00c9", "\u00e9"), ("\u00df", "SS"), ("\u212a", "k"), ("\u017f", "S")):
        with pytest.raises(Undefined):
            normalized(text, stopwords=(word,))


@pytest.mark.parametrize("shape", [(), (0,), (1, 0), (2, 3), (3, 1), (1, 1, 1), (0, 3)])
def test_rows_are_refused(shape: tuple[int, ...]) -> None:
    assert OPERATOR.broken_rule(call(*shape)) == "X has the shape [C] or [1, C], and C > 0"


def test_what_is_allowed() -> None:
    assert OPERATOR.broken_rule(call(1)) is None
    assert OPERATOR.broken_rule(call(1, 7, sensitive=1, stopwords=("a",))) is None
    assert OPERATOR.broken_rule(call(3, action="upper")) == "case_change_action is LOWER, UPPER or NONE"
    assert OPERATOR.family.output_shapes(OPERATOR, call(1, 7)) == ((1, -1),)


@pytest.mark.parametrize("given", [call(3, action="UPPER"), call(3, stopwords=("a",))])
def test_where_case_counts_the_locale_is_given(given: Call) -> None:
    """A locale that no attribute names is the implementation's."""
    assert OPERATOR.broken_rule(given) == "which locale stands where none is given"
    assert OPERATOR.broken_rule(given._replace(attributes={**given.attributes, "locale": "C"})) is None


def chosen(kind: str, given: Call) -> list[str]:
    entropy = np.arange(500, dtype="<u4") * np.uint32(2654435761)
    found: list[str] = (
        OPERATOR.family.generate(OPERATOR, kind, "X", given, entropy.tobytes()).reshape(-1).tolist()
    )
    return found


def test_kinds_of_texts() -> None:
    given = call(500, stopwords=("monday", "A"))
    assert {"monday", "MONDAY", "mondays", "monda", " monday", "monday\0", "a", "x", ""} <= set(
        chosen("words", given)
    )
    assert {text.lower() for text in chosen("stopwords", given)} == {"monday", "a"}
    assert set(chosen("stopwords", call(500, sensitive=1, stopwords=("A", "b")))) == {"A", "b"}
    assert all(text.upper() == text.lower() for text in chosen("caseless", given))
    assert {len(text) for text in chosen("lengths", given)} >= {7, 15, 16, 17, 255, 256, 4097}
    assert set(chosen("empty_texts", given)) == {""}
    assert [
        each.name for each in KINDS if not OPERATOR.family.applies(OPERATOR, each.name, "X", call(3))
    ] == ["stopwords"]
