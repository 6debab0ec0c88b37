"""The search: the first change is found from few measurements, past releases that cannot run, and what is not
monotone is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.case import Validity
from harness.model.signature import Signature
from harness.model.verdict import Outcome
from harness.results.bisection.search import Bisection, Measured, Seen, bisect, difference
from harness.results.bisection.summary import Searched, remarks, sentence

_OUTCOMES = {"g": Outcome.PASS, "b": Outcome.MISMATCH, "c": Outcome.CRASH}
Measurer = Callable[[str], Measured]


def releases(history: str) -> tuple[list[str], Measurer, list[str]]:
    """Return versions, how to measure them, and what was measured: one letter a release, `-` for one that
    cannot run the case."""
    versions = [f"1.{place}" for place in range(len(history))]
    asked: list[str] = []

    def measure(version: str) -> Measured:
        asked.append(version)
        letter = history[versions.index(version)]
        if letter == "-":
            return Measured(version, skipped="the opset does not load")
        return Measured(version, {"case": Seen(Validity.VALID, Signature(_OUTCOMES[letter]))})

    return versions, measure, asked


def search(history: str, *, everything: bool = False) -> tuple[Bisection, list[str]]:
    versions, measure, asked = releases(history)
    return bisect(versions, measure, everything=everything), asked


def first(found: Bisection) -> tuple[str, str, tuple[str, ...]] | None:
    return (
        None
        if found.first is None
        else (found.first.before.version, found.first.after.version, found.first.skipped)
    )


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("gggbb", ("1.2", "1.3", ())),
        ("bbbbg", ("1.3", "1.4", ())),
        ("ccbbb", ("1.1", "1.2", ())),
        ("---gb", ("1.3", "1.4", ())),
        ("gg--bb", ("1.1", "1.4", ("1.2", "1.3"))),
        ("-bbcbbbbbbbbb", ("1.2", "1.3", ())),
        ("gb---", ("1.0", "1.1", ())),
        ("gb", ("1.0", "1.1", ())),
        ("ggggg", None),
        ("----b", None),
        ("b", None),
        ("---", None),
    ],
)
def test_the_first_change_is_found(history: str, expected: tuple[str, str, tuple[str, ...]] | None) -> None:
    assert first(search(history)[0]) == expected
    assert first(search(history, everything=True)[0]) == expected


@given(st.integers(1, 40), st.integers(0, 12), st.integers(1, 40))
def test_one_change_is_found_wherever_it_is_with_a_logarithm_of_measurements(
    good: int, skipped: int, bad: int
) -> None:
    history = "-" * skipped + "g" * good + "b" * bad
    found, asked = search(history)
    assert first(found) == (f"1.{skipped + good - 1}", f"1.{skipped + good}", ())
    assert len(asked) == len(set(asked)) <= 2 + 2 * len(history).bit_length()


@given(st.text("gbc-", min_size=1, max_size=24))
def test_a_search_tells_nothing_but_the_truth_and_everything_tells_all(history: str) -> None:
    ran = [place for place, letter in enumerate(history) if letter != "-"]
    changes = [(f"1.{a}", f"1.{b}") for a, b in pairwise(ran) if history[a] != history[b]]
    complete, asked = search(history, everything=True)
    assert asked == list(complete.versions)
    assert [(change.before.version, change.after.version) for change in complete.changes] == changes
    found, asked = search(history)
    assert len(asked) == len(set(asked))
    if found.first is not None:  # nothing that runs lies between the two, and they differ
        assert (found.first.before.version, found.first.after.version) in changes


def test_what_returns_is_said() -> None:
    found, _ = search("ggbgb", everything=True)
    assert found.returning == ("1.3",)
    assert search("gggbb", everything=True)[0].returning == ()


def test_later_changes_are_kept() -> None:
    found, _ = search("ggggccbb")
    assert first(found) == ("1.3", "1.4", ())
    assert [change.after.version for change in found.changes] == ["1.4", "1.7"]


def _rejected(version: str, error: str, message: str = "") -> Measured:
    return Measured(
        version, {"case": Seen(Validity.INVALID, Signature(Outcome.REJECTED, "run", error), message)}
    )


def test_by_signature_another_class_of_error_is_a_change_and_by_outcome_a_remark() -> None:
    errors = dict(zip(("1.1", "1.2", "1.3", "1.4"), ("Fail", "Fail", "Other", "Other"), strict=True))

    def measure(version: str) -> Measured:
        return _rejected(version, errors[version], f"a wording of {version}")

    by_outcome = Searched("onnxruntime", "cpu", "case", ("case",), bisect(list(errors), measure))
    assert by_outcome.found.first is None
    assert sentence(by_outcome) == "nothing changes from 1.1 to 1.4: rejected (correct)"
    assert remarks(by_outcome)[0] == (
        "the outcome is the same in 1.1 and 1.4, but its signature is not: rejected at run (Fail), then "
        "rejected at run (Other); --by signature finds the release"
    )
    by_signature = by_outcome._replace(found=bisect(list(errors), measure, by="signature"))
    assert first(by_signature.found) == ("1.2", "1.3", ())
    assert sentence(by_signature) == (
        "1.3 is the first release that does otherwise: rejected at run (Other) (correct); "
        "1.2: rejected at run (Fail) (correct)"
    )
    assert remarks(by_signature) == ()


def _measured(**outcomes: Outcome) -> Measured:
    return Measured(
        "1",
        {
            case: Seen(Validity.UNSPECIFIED if case == "open" else Validity.INVALID, Signature(o))
            for case, o in outcomes.items()
        },
    )


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"x": Outcome.REJECTED}, {"x": Outcome.CRASH}, ("x",)),
        ({"x": Outcome.CRASH}, {"x": Outcome.ACCEPTED_INVALID}, ("x",)),
        ({"x": Outcome.REJECTED, "y": Outcome.CRASH}, {"y": Outcome.CRASH, "z": Outcome.CRASH}, ()),
        ({"open": Outcome.PASS}, {"open": Outcome.REJECTED}, ("open",)),
    ],
)
def test_releases_differ_where_a_case_that_both_ran_fails_otherwise(
    a: dict[str, Outcome], b: dict[str, Outcome], expected: Sequence[str]
) -> None:
    assert difference(_measured(**a), _measured(**b)) == expected
