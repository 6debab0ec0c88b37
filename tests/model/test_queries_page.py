"""docs/queries.md: each example is a query, and selects as many cases of the published sample as the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from harness.model.query import Query, parse_all
from harness.results.runfile import RunReader

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/queries.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([^`]+)` \| .* \| ([\d,]+) \|$", PAGE, re.M)
COMMANDS = re.findall(r"^(harness .*?)(?: +#.*)?$", PAGE, re.M)


@pytest.fixture(scope="module")
def ids() -> set[str]:
    return {result.case for result in RunReader(ROOT / "reports/sample")}


def test_the_page_has_examples() -> None:
    assert len(ROWS) >= 15
    assert len(COMMANDS) >= 3


@pytest.mark.parametrize(("text", "number"), ROWS)
def test_a_query_selects_as_many_cases_as_the_page_says(text: str, number: str, ids: set[str]) -> None:
    queries = parse_all(text.split())
    assert f"{sum(any(query.matches(case) for query in queries) for case in ids):,}" == number != "0"


def test_the_page_says_how_many_cases_the_sample_has(ids: set[str]) -> None:
    assert f"how many of the {len(ids):,} cases" in PAGE.replace("\n", " ")
    (example,) = re.findall(r"^(GatherElements@13:\S+)$", PAGE, re.M)
    assert example in ids


@pytest.mark.parametrize("command", COMMANDS)
def test_the_queries_of_its_commands_select_something(command: str, ids: set[str]) -> None:
    words = shlex.split(command)
    for text in (words[place + 1] for place, word in enumerate(words) if word == "-k"):
        assert any(Query.parse(text).matches(case) for case in ids), text
