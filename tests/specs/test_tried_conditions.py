from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.specs.expectations.expectations import load_expectations
from harness.specs.expectations.target_expectations import Located
from harness.specs.expectations.tried_conditions import Conditions, not_separating, untried

IDS = {
    "Round": [
        "Round@11:sweep=rank;X=float16[3]",
        "Round@11:sweep=rank;X=float32[3]",
        "Round@22:sweep=rank;X=float16[3]",
        "Round@22:sweep=sizes;X=float16[2,3]",
    ]
}
DEFAULT = Conditions(IDS, IDS.__getitem__)


def located(folder: Path, match: str, more: str = "") -> Located:
    path = folder / "cpu.yaml"
    path.write_text(
        f"- match: {match}\n  expect: crash\n  reason: it does\n  link: https://example.org/1\n{more}",
        encoding="utf-8",
    )
    return load_expectations([path]).entries[0]


def found(entry: Located, thorough: Sequence[str] = ()) -> list[str]:
    return [
        line.partition(": [0]: ")[2] for line in untried(entry, DEFAULT, Conditions(IDS, lambda _: thorough))
    ]


def test_a_condition_is_tried_where_a_case_lacks_it_alone(tmp_path: Path) -> None:
    assert found(located(tmp_path, "'Round@11:X=float16'")) == []


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("Round@22:X=float16", "X=float16"),  # version 22 has no other type here
        ("Round:sweep=sizes;X=*[2,3]", "sweep=sizes"),
        ("Round@11:X=float32", "@11"),
    ],
)
def test_one_that_no_case_lacks_alone_is_named(tmp_path: Path, query: str, condition: str) -> None:
    lines = found(located(tmp_path, f"'{query}'"))
    assert any(line.startswith(f"{condition!r} of {query!r} is tried on one side only") for line in lines)


def test_a_thorough_case_tries_it_too(tmp_path: Path) -> None:
    entry = located(tmp_path, "'Round@22:X=float16'")
    assert found(entry, ["Round@22:sweep=interactions;X=float32[3]"]) == []


def test_a_word_why_there_can_be_none_is_enough(tmp_path: Path) -> None:
    entry = located(tmp_path, "'Round@11:X=float32'", "  one_sided: version 22 has no such kernel\n")
    assert found(entry) == []


def test_what_selects_nothing_is_named(tmp_path: Path) -> None:
    entry = located(tmp_path, "['Round:X=float16', 'Round:X=int8']", "  unless: 'X=float32'\n")
    assert found(entry) == [
        "'Round:X=int8' matches no case; remove it",
        "'unless' 'X=float32' excepts no case that 'match' selects; remove it",
    ]


def test_a_run_contradicts_a_condition_that_separates_nothing(tmp_path: Path) -> None:
    entry = located(tmp_path, "'Round@11:X=float16'")
    otherwise = dict.fromkeys(IDS["Round"], True)
    assert list(not_separating(entry, DEFAULT, otherwise.get)) == []
    otherwise["Round@11:sweep=rank;X=float32[3]"] = False
    (line,) = not_separating(entry, DEFAULT, otherwise.get)
    assert line.endswith(
        "'X=float16' of 'Round@11:X=float16' separates nothing: what lacks it alone ends in crash too "
        "(1 of 1), for example Round@11:sweep=rank;X=float32[3]"
    )
    assert list(not_separating(entry, DEFAULT, {}.get)) == []
