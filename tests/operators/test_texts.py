"""RegexFullMatch reads patterns as RE2 does, where Python's expressions differ."""

from __future__ import annotations

import numpy as np
import pytest

from harness.operators import OPERATORS
from harness.operators.base import Call, TensorType, Undefined
from harness.operators.text.texts import regex_full_match


def matched(pattern: str, *texts: str) -> list[bool]:
    found: list[bool] = regex_full_match(np.array(texts, object), Call({}, {"pattern": pattern})).tolist()
    return found


@pytest.mark.parametrize(
    ("pattern", "texts", "wanted"),
    [
        (r"a$\n?", ("a", "a\n"), [True, False]),
        (r"(?m)a$\nb", ("a\nb",), [True]),
        (r"\s", (" ", "\v", "\n"), [True, False, True]),
        (r"[\s,]", (",", "\v", "\n"), [True, False, True]),
        (r"\S", (" ", "\v"), [False, True]),
        (r"[$]\$", ("$$",), [True]),
        (r"(?i)ab", ("Ab", "\u00e9"), [True, False]),
    ],
)
def test_what_python_reads_otherwise_is_read_as_re2_does(
    pattern: str, texts: tuple[str, ...], wanted: list[bool]
) -> None:
    assert matched(pattern, *texts) == wanted


@pytest.mark.parametrize(
    "pattern",
    [
        "[[:alpha:]]+",
        r"\pL",
        r"a\z",
        r"\Qa\E",
        "a{,3}",
        r"\x{41}",
        r"\101",
        "(?<n>a)",
        "(?U)a+",
        "(?i)\u00e9",
    ],
)
def test_nothing_is_claimed_of_a_pattern_that_python_does_not_have(pattern: str) -> None:
    assert broken(pattern) is None
    with pytest.raises(Undefined):
        matched(pattern, "a")


@pytest.mark.parametrize("pattern", [r"a\Z", "a++", "(?x)a", r"\u0061", "(?=a)", "a{1001}", "("])
def test_what_re2_does_not_have_breaks_the_rule(pattern: str) -> None:
    assert broken(pattern) == "pattern is valid RE2 syntax"


def broken(pattern: str) -> str | None:
    call = Call({"X": TensorType("string", (1,))}, {"pattern": pattern})
    return OPERATORS["RegexFullMatch"].broken_rule(call)
