"""Known deviations hide no others: planted outputs, memory, an earlier run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.expected import Approx, Exact
from harness.model.result import Diff, Memory
from harness.run.deviation import remembers
from harness.specs.expectations.expectation_entry import Entry
from harness.triage.expect.masked import planted
from tests.running import ROUND, harness, results_of, script_of

ENTRY = """\
- match: "Round@22:sweep=values;X=float32"
  when: {target: "fake*"}
  expect: mismatch
  sometimes: true
  %s
  reason: one element is another
  link: https://example.org/1
"""
QUERY = "Round@22:sweep=values;X=float32"


def expectations(folder: Path, states: str) -> Path:
    path = folder / "known.yaml"
    path.write_text(ENTRY % states, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("states", "code", "said"),
    [
        ("difference: {kind: value, ulp: 1}", 0, "100.0% unexpected; 0 entries say"),
        ("difference: {kind: [value, NaN]}", 1, "hides other wrong outputs: "),
        ("difference: {kind: [value, NaN]}\n  masked: nobody can tell", 1, "1 entry says why"),
    ],
)
def test_planted_outputs_that_an_entry_hides_are_named(
    tmp_path: Path, states: str, code: int, said: str
) -> None:
    script = script_of(tmp_path, [(QUERY, "ulp")])
    known = expectations(tmp_path, states)
    ended = harness("expect", "lint", known, "--masked", "--spec", ROUND, "-t", f"fake,script={script}")
    assert ended.code == code
    assert said in ended.out + ended.err
    assert "in the cases of 1 entry" in ended.out
    if "hides" in said:
        assert ended.err.startswith(f"{known}:1: [0]: hides other wrong outputs: ")


def test_what_is_planted() -> None:
    given = Tensor("float32", np.array([[1.0, 2.0, np.inf]], np.float32))
    expected = Exact(Tensor("float32", np.array([[1.0, 1.5, np.inf]], np.float32)))
    found = {name: outputs[0] for name, outputs in planted((given,), (expected,))}
    assert {name: (each.dtype, each.array.tolist()) for name, each in found.items()} == {
        "every element": ("float32", [[10.0, 13.0, 1.0]]),
        "one element": ("float32", [[1.0, 2.0, 1.0]]),
        "NaN": ("float32", [[1.0, pytest.approx(np.nan, nan_ok=True), np.inf]]),
        "another sign": ("float32", [[-1.0, -2.0, -np.inf]]),
        "ten times the difference": ("float32", [[1.0, 6.5, np.inf]]),
        "another rank": ("float32", [[[1.0, 2.0, np.inf]]]),
        "another type": ("int32", [[0, 0, 0]]),
    }


@pytest.mark.parametrize(
    ("dtype", "array", "names"),
    [
        ("bool", np.array([True]), {"every element", "one element", "another rank", "another type"}),
        ("string", np.array(["a"], object), {"every element", "one element", "another rank", "another type"}),
        ("float32", np.zeros((0, 2), np.float32), set()),
    ],
)
def test_what_a_type_cannot_hold_is_not_planted(dtype: str, array: object, names: set[str]) -> None:
    assert {name for name, _ in planted((Tensor(dtype, array),), None)} == names  # type: ignore[arg-type]


def test_errors_within_a_bound_are_no_difference_to_enlarge() -> None:
    given = Tensor("float32", np.array([1.0000001, 3.0], np.float32))
    expected = Approx("float32", np.array([1.0, 2.0]), np.array([1e-6, 1e-6]))
    found = dict(planted((given,), (expected,)))
    assert found["ten times the difference"][0].array.tolist() == [np.float32(1.0000001), 12.0]


def test_elements_of_which_nothing_is_claimed_stay() -> None:
    given = (
        Tensor("float32", np.array([1.0, 3.0], np.float32)),
        Tensor("float32", np.array([2.0, 3.0], np.float32)),
    )
    nothing = Approx("float32", np.array([1.0, 2.0]), np.array([np.inf, np.inf]))
    half = Approx("float32", np.array([1.0, 2.0]), np.array([np.inf, 1e-6]))
    found = dict(planted(given, (nothing, half)))
    assert [each.array.tolist() for each in found["every element"]] == [[1.0, 3.0], [2.0, 16.0]]
    assert not dict(planted(given[:1], (nothing,)))


def test_neither_the_bits_of_nan_nor_the_sign_of_zero_are_another_sign() -> None:
    given = Tensor("float32", np.array([np.nan, 0.0], np.float32))
    assert "another sign" not in dict(planted((given,), None))
    both = Tensor("float32", np.array([np.nan, 0.0, 1.0], np.float32))
    assert np.signbit(dict(planted((both,), None))["another sign"][0].array[1:]).tolist() == [False, True]


def stating(**keys: object) -> Entry:
    text = {"match": "Round", "expect": "mismatch", "reason": "r", "link": "https://example.org/1"}
    return Entry.model_validate({**text, **keys})


DIFF = Diff(None, 2, 4, (0,), "1", "2")


@pytest.mark.parametrize(
    ("entry", "memory", "known"),
    [
        (stating(difference={"kind": "value"}), Memory(0, 0, 0, 4), True),
        (stating(difference={"kind": "value"}), Memory(0, 1, 0, 4), False),
        (stating(memory="outside"), Memory(0, 2, 0, 4), True),
        (stating(memory="outside"), Memory(0, 1, 0, 4), False),
        (stating(memory="unwritten"), Memory(2, 0, 0, 4), True),
        (stating(memory="unwritten"), Memory(2, 1, 0, 4), False),
        (stating(memory="unwritten"), Memory(0, 0, 2, 4), False),
        (stating(memory=("unwritten", "unstable")), Memory(1, 0, 1, 4), True),
        (stating(memory="outside", masked="any"), Memory(0, 1, 0, 4), True),
        (stating(memory="unstable", masked="any"), Memory(0, 1, 0, 4), False),
        (None, Memory(0, 1, 0, 4), False),
        (None, Memory(4, 0, 0, 4), True),
    ],
)
def test_what_memory_makes_of_elements_is_stated(entry: Entry | None, memory: Memory, known: bool) -> None:
    assert remembers(entry, memory, DIFF) is known


@pytest.mark.slow
def test_another_wrong_output_than_the_earlier_run_s_is_a_change(tmp_path: Path) -> None:
    none = tmp_path / "none.yaml"
    none.write_text("[]\n", encoding="utf-8")

    def run(how: str, *more: str | Path, seed: int = 0) -> tuple[int, set[object]]:
        script = script_of(tmp_path, [(QUERY, how)])
        ended = harness(
            "run", ROUND, "-t", f"fake,script={script}", "-k", QUERY, "--expectations", none,
            "-o", tmp_path / f"{how}{len(more)}{seed}", "--force", "--seed", str(seed), *more,
        )  # fmt: skip
        found = results_of(tmp_path / f"{how}{len(more)}{seed}").values()
        return ended.code, {result["verdict"] for result in found if result["outcome"] == "mismatch"}

    assert run("ulp") == (1, {"regression"})
    baseline = ("--baseline", tmp_path / "ulp00")
    assert run("ulp", *baseline) == (0, {"expected"})
    assert run("nan", *baseline) == (1, {"changed"})
    assert run("ulp", *baseline, seed=1)[0] == 0


def test_nan_is_planted_where_none_is_due() -> None:
    given = Tensor("float32", np.array([0, 0, 7], np.float32))
    due = Tensor("float32", np.array([np.nan, np.nan, 7], np.float32))
    names = {name: outputs[0].array for name, outputs in planted((given,), (Exact(due),))}
    assert np.array_equal(names["NaN"], [0, 0, np.nan], equal_nan=True)
    every = Tensor("float32", np.full(3, np.nan, np.float32))
    assert "NaN" not in dict(planted((given,), (Exact(every),)))
