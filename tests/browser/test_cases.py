"""The table of cases: queries as the command line takes them, words of messages, order, groups, and the keys
from case to case."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from harness.model.errors import UsageError
from harness.model.header import Origin
from harness.model.query import Query, parse_all
from harness.model.result import Result
from harness.model.verdict import Outcome
from harness.render.html import render_html
from tests import synthetic
from tests.browser.conftest import Open, follow
from tests.browser.test_page import shown
from tests.synthetic import CPU, DML

TARGETS = {"cpu": CPU, "dml": DML}
RESULTS = list(synthetic.results(1500, TARGETS, faults=0.02))
QUERIES = (
    "Round",
    "Gather*@13",
    "*@1?:data=*16",
    "GatherElements@13:data=float16;indices=int64",
    "data=*[*,*]",
    "data=*[3,*,...]",
    "data=*[...]",
    "axis>=1",
    "axis<=-1;axis>=-1",
    "GatherND Round",
    "data=int8 data=uint8",
    "data=float",
    "Elements",
    RESULTS[0].case,
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    head = RESULTS[0].case.partition(";")[0]
    told = {
        re.sub(r"@\d+", "", head): Origin("ONNX GatherElements, axis", None, "specs/GatherElements.yaml:12")
    }
    run = synthetic.write_results(folder / "run.jsonl", RESULTS, TARGETS, end=False, origins=told)
    path = folder / "report.html"
    path.write_text(render_html(run), encoding="utf-8", newline="\n")
    return path


def test_a_query_selects_what_the_command_line_selects(open_page: Open, report: Path) -> None:
    page = open_page(report)
    for text in QUERIES:
        page.fill("input[name=query]", text)
        wanted = parse_all(text.split())
        assert shown(page) == sum(any(each.matches(result.case) for each in wanted) for result in RESULTS), (
            text
        )
        assert page.locator("#filter-problem").is_hidden()
    page.get_by_role("button", name="Copy command").wait_for()


@pytest.mark.parametrize("text", ["GatherND@x", "axis>1", "axis=1;axis=2", "axis>=x", "=1", "@13"])
def test_a_bad_query_says_what_is_wrong_and_changes_nothing(open_page: Open, report: Path, text: str) -> None:
    page = open_page(report)
    page.fill("input[name=query]", text)
    with pytest.raises(UsageError) as told:
        Query.parse(text)
    assert page.inner_text("#filter-problem").replace("'", '"') == str(told.value).replace("'", '"')
    assert shown(page) == len(RESULTS)
    assert page.get_attribute("input[name=query]", "aria-invalid") == "true"


def test_words_are_found_in_messages_too(open_page: Open, report: Path) -> None:
    page = open_page(report, f"#q={quote('data BOUNDS gathernd')}")
    expected = sum(
        result.error is not None and "data bounds" in result.error.message and "GatherND" in result.case
        for result in RESULTS
    )
    assert shown(page) == expected > 0


def messages(page: Any) -> list[str]:
    found: list[str] = page.locator("#cases tbody th").all_inner_texts()
    return found


def test_groups_of_messages_hold_every_result_once(open_page: Open, report: Path) -> None:
    page = open_page(report, "#group=message")
    rows = page.locator("#cases tbody tr")
    numbers = [int(text.replace(",", "")) for text in page.locator("#cases tbody td.num").all_inner_texts()]
    assert sum(numbers) == len(RESULTS)
    assert numbers == sorted(numbers, reverse=True)
    outcomes = Counter(result.outcome for result in RESULTS)
    crash = rows.filter(has_text="crash").first
    assert "InvalidArgument: indices element out of data bounds, idx=N" in crash.inner_text()
    follow(crash.locator("td.num a"))
    assert shown(page) == outcomes[Outcome.CRASH]
    follow(page.locator("#cases [role=status] a"))
    assert shown(page) == outcomes[Outcome.CRASH]


def test_a_head_sorts_up_and_down_and_keeps_the_focus(open_page: Open, report: Path) -> None:
    page = open_page(report)
    head = page.locator("#cases thead th", has_text="Case")
    assert head.get_attribute("aria-sort") is None
    firsts = []
    for way in ("ascending", "descending"):
        page.locator("#cases thead button", has_text="Case").click()
        assert head.get_attribute("aria-sort") == way
        assert page.evaluate("document.activeElement.className") == "sort"
        firsts.append(page.locator("#cases tbody a").first.inner_text().replace("\n", ""))
    ids = {result.case for result in RESULTS}
    assert firsts == [min(ids), max(ids)]
    page.select_option("select[name=sort]", "level")
    levels = page.locator("#cases tbody td:nth-child(4)").all_inner_texts()
    assert set(levels) == {"2_1"}


def test_from_case_to_case_and_back_to_the_row(open_page: Open, report: Path) -> None:
    page = open_page(report, "#outcome=rejected&target=cpu")
    links = page.locator("#cases tbody a").all_inner_texts()
    links = [text.replace("\n", "") for text in links]
    page.locator("#cases tbody a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    seen = []
    for key in ("n", "n", "p"):
        page.keyboard.press(key)
        seen.append(page.inner_text("dialog h2").replace("\n", ""))
    assert seen == [links[1], links[2], links[1]]
    page.keyboard.press("p")
    page.keyboard.press("p")
    assert page.inner_text("dialog h2").replace("\n", "") == links[0]
    for _ in range(50):
        page.keyboard.press("n")
    beyond = page.inner_text("dialog h2").replace("\n", "")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="hidden")
    assert page.evaluate("document.activeElement.textContent") == beyond
    assert page.inner_text("#cases [role=status]").startswith("51–")


def test_the_focus_returns_to_where_a_case_was_opened(open_page: Open, report: Path) -> None:
    page = open_page(report)
    link = page.locator("#unexpected a.open").first
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="hidden")
    assert page.evaluate("document.activeElement.className") == "open"


def test_a_case_says_where_it_stands_and_what_to_do_with_it(open_page: Open, report: Path) -> None:
    known: Result = next(result for result in RESULTS if result.outcome is Outcome.UNSUPPORTED)
    page = open_page(report, f"#case={quote(known.case)}&on={known.target}")
    commands = page.locator("dialog .command pre").all_inner_texts()
    assert [command.split()[1] for command in commands] == ["run", "repro", "reduce"]
    assert all(f"-t {known.target}" in command and known.case in command for command in commands)
    conforming = next(result for result in RESULTS if result.outcome is Outcome.PASS)
    page = open_page(report, f"#case={quote(conforming.case)}&on={conforming.target}")
    assert page.locator("dialog .command pre").count() == 1
    page = open_page(report, f"#case={quote(RESULTS[0].case)}&on=cpu")
    assert "specs/GatherElements.yaml:12" in page.inner_text("dialog dl.terms")
    source = page.locator("dialog dl.terms a")
    assert source.inner_text() == "ONNX GatherElements, axis"
    assert source.get_attribute("href") == "https://onnx.ai/onnx/operators/onnx__GatherElements.html"
