"""`harness describe`: what an author of specs can write of an operator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.running import complaint, harness


def test_an_operator_is_described() -> None:
    shown = json.loads(harness("describe", "Softmax", "--format", "json").out)
    assert shown["versions"] == [7, 11, 13]
    assert [each["name"] for each in shown["inputs"]] == ["input"]
    assert shown["attributes"]["axis"] == {"type": "INT", "default": -1, "required": False}
    assert shown["sweeps"]["dtype_rank"] > 0
    assert "dtype_rank" in shown["uses"]["normalising"]
    kinds = {row["kind"]: row for row in shown["kinds"]}
    assert "nan" in kinds["nans"]["elements"]
    assert kinds["nans"]["case"].startswith("Softmax@")
    assert kinds["shifts"]["elements"] == ""


def test_kinds_that_break_a_rule_and_words_of_shapes() -> None:
    shown = json.loads(harness("describe", "GatherElements", "--format", "json").out)
    rows = {(row["input"], row["kind"]): row for row in shown["kinds"]}
    assert rows["indices", "above"]["breaks"] == "index values within [-s, s-1]"
    assert rows["indices", "negative"]["elements"].partition(": ")[2].startswith("-")
    (words,) = [row for row in shown["words"] if row["key"] == "extent"]
    assert {"none", "fewer", "more"} <= set(words["words"])


def test_a_spec_of_ones_own(tmp_path: Path) -> None:
    spec = tmp_path / "Abs.yaml"
    spec.write_text(
        "operator: Abs\nopsets: [13]\nsweeps: [{name: a, X: {dtype: float32, shape: [[3]]}}]\n", "utf-8"
    )
    assert json.loads(harness("describe", spec, "--format", "json").out)["sweeps"] == {"a": 1}


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ("Softmx", "'Softmx' is no operator; did you mean 'Softmax'?"),
        ("softmax", "'softmax' is no operator; did you mean 'Softmax'?"),
        ("absent.yaml", "absent.yaml: cannot read: No such file or directory"),
    ],
)
def test_what_is_not_an_operator(operator: str, said: str) -> None:
    ended = harness("describe", operator)
    assert (ended.code, complaint(ended)) == (2, said)
