"""The page of a run with more results than it holds: it says what it lacks, and loads an operator's slice from beside it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.commands.report import write_reports
from harness.model.verdict import Reading
from harness.render import page_cases
from harness.render.html import read_page, render_html
from harness.results.counted import read_tables
from harness.results.runfile import RunReader
from harness.results.tables import Tables
from tests import many
from tests.browser.conftest import Open, follow, violations, wait_until, wait_until_shown
from tests.browser.test_operators import _MATRICES

OPERATORS = 12
CASES = 90


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many.write_run(tmp_path_factory.mktemp("run") / "run.jsonl", OPERATORS, CASES)


@pytest.fixture(scope="module")
def tables(run: Path) -> Tables:
    return read_tables(RunReader(run))


@pytest.fixture(scope="module")
def folder(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page and its slices."""
    made = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(page_cases, "WHOLE", 1000)
        patched.setattr(page_cases, "PICKED", 200)
        write_reports(*read_page(run), made)
    return made


@pytest.fixture
def opened(open_page: Open, folder: Path) -> Any:
    """Opens the page at a fragment."""

    def at(fragment: str = "", place: Path = folder) -> Any:
        page = open_page(place / "report.html", fragment, within=place)
        page.wait_for_selector("html[data-shows]")
        return page

    return at


def shown(page: Any) -> int:
    found = re.search(r"([\d,]+) results", page.inner_text("#browser p.count"))
    assert found is not None
    return int(found.group(1).replace(",", ""))


def test_the_page_says_what_it_holds(opened: Any, tables: Tables) -> None:
    page = opened()
    total = OPERATORS * CASES * len(many.TARGETS)
    about = page.inner_text("#cases > p.note")
    assert f"of {total:,} results" in about
    assert f"{shown(page):,}" in about
    assert (
        f"Of the {total:,} such results of the run, {total - shown(page):,} are not here"
        in page.inner_text("p.others")
    )


@pytest.mark.slow
def test_axe_finds_nothing(opened: Any) -> None:
    """Neither in the page as it opens, nor with an operator's results from beside it."""
    page = opened()
    assert violations(page) == []
    follow(page.locator("tr[data-operator=Operator003] td.cell a").first)
    assert violations(page) == []


@pytest.mark.parametrize("way", ["link", "form"])
def test_an_operator_shows_all_of_its_results(opened: Any, tables: Tables, way: str) -> None:
    page = opened()
    if way == "link":
        cell = page.locator("tr[data-operator=Operator003] td.cell a").first
        follow(cell)
        number = int(cell.inner_text().split("/")[1].split()[0].replace(",", ""))
        if "unexpected" in cell.inner_text():
            number = tables.tally(operator="Operator003", target="cpu").unexpected
    else:
        page.focus("select[name=operator]")
        page.select_option("select[name=operator]", "Operator003")
        wait_until_shown(page, "#operator=Operator003")
        number = CASES * len(many.TARGETS)
        assert page.evaluate("document.activeElement.name") == "operator"
    assert shown(page) == number
    assert page.locator("p.others").is_hidden()
    page.click("button[type=reset]")
    wait_until(page, "!location.hash.includes('operator')")
    wait_until_shown(page, page.evaluate("location.hash"))
    assert page.locator("select[name=operator] option").count() == OPERATORS + 1


def test_a_case_is_found_by_its_address(opened: Any, run: Path) -> None:
    result = next(each for each in RunReader(run) if each.outcome.value == "pass")
    page = opened(f"#case={result.case}&on={result.target}")
    assert page.inner_text("dialog[open] h2").replace("\n", "") == result.case
    assert page.inner_text("dialog tr[aria-current] td") == "pass"
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="hidden")
    follow(page.locator("tr[data-operator=Operator005] td.cell a").first)
    follow(page.locator("#cases tbody a").first)
    assert page.inner_text("dialog[open] h2").startswith("Operator005@")


def test_what_is_elsewhere_is_counted_by_operator(opened: Any, tables: Tables) -> None:
    page = opened(f"#reading={Reading.CORRECT.value}")
    assert page.inner_text("#browser p.count").startswith("0 of")
    said = dict(re.findall(r"(Operator\d+) (\d+)", page.inner_text("p.others")))
    by_operator = tables.by("operator")
    assert said == {
        str(operator): str(tally.correct) for (operator,), tally in by_operator.items() if tally.correct
    }
    follow(page.locator("p.others a").first)
    assert shown(page) == max(map(int, said.values()))


def test_words_are_looked_for_in_what_is_here(opened: Any) -> None:
    page = opened("#q=float16")
    assert page.inner_text("p.others").startswith("Looked for in the ")


def test_matrices_are_those_of_the_whole_page(
    open_page: Open, opened: Any, run: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "report.html"
    whole.write_text(render_html(run), encoding="utf-8", newline="\n")
    pages = [open_page(whole), opened("#operator=Operator001")]
    for page in pages:
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        wait_until(page, "document.querySelectorAll('details.operator[data-filled]').length === 12")
    one, other = (page.evaluate(_MATRICES) for page in pages)
    assert len(one) >= OPERATORS
    assert one == other


def test_a_slice_of_another_run_is_refused(opened: Any, folder: Path, run: Path, tmp_path: Path) -> None:
    copy, other = shutil.copytree(folder, tmp_path / "copy"), tmp_path / "run.jsonl"
    run_id = RunReader(run).header.run_id
    other.write_text(run.read_text().replace(f'"{run_id}"', '"20260102-030405-another"', 1))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(page_cases, "WHOLE", 1000)
        write_reports(*read_page(other), tmp_path / "other")
    file = f"{page_cases.FOLDER}/Operator003.js"
    shutil.copy(tmp_path / "other" / file, copy / file)
    page = opened("#operator=Operator003", copy)
    assert (
        page.inner_text("#browser p[role=alert]:not([hidden])") == f"{file} is of another run than this page"
    )
    assert shown(page) < CASES


def test_a_whole_page_removes_the_slices_of_a_longer_one(run: Path, folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert len(list((copy / page_cases.FOLDER).iterdir())) == OPERATORS
    write_reports(*read_page(run), copy)
    assert [each.name for each in copy.rglob("*.js")] == []
    assert "report-cases" not in (copy / "report.html").read_text(encoding="utf-8")
