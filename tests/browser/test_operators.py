"""Operators at a glance: the table of operators is filtered and opened, its levels are counted again, and
matrices say what tables say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from harness.model.verdict import Reading
from harness.results.counted import read_tables
from harness.results.level_table import MANY, overview, rate, status
from harness.results.matrix import matrices
from harness.results.runfile import RunReader
from harness.results.tables import Tables
from tests import many, synthetic
from tests.browser.conftest import Open, follow, violations, written
from tests.synthetic import CPU, DML

PAGE_BYTES = 3_600_000
"""What a page of 150 operators × 3 targets × 300 cases may hold."""
_MATRICES = """() => {
  const rate = (cell) => (cell.textContent.match(/[\\d,]+\\/[\\d,]+/) ?? [""])[0];
  return [...document.querySelectorAll("details.operator figure")].map((figure) => [
  figure.closest("details").dataset.operator,
  figure.querySelector("figcaption").textContent,
  [...figure.querySelectorAll("tbody th")].map((each) => each.textContent),
  [...figure.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("td")].map((cell) => rate(cell))),
]); }
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic.write_run(
        tmp_path_factory.mktemp("run") / "run.jsonl", 3000, {"cpu": CPU, "dml": DML}, faults=0.01
    )


@pytest.fixture(scope="module")
def report(run: Path) -> Path:
    return written(run.parent, run)


@pytest.fixture(scope="module")
def tables(run: Path) -> Tables:
    return read_tables(RunReader(run))


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bounded")
    return written(folder, many.write_run(folder / "run.jsonl", 25, 160))


def names(page: Any) -> list[str]:
    found: list[str] = page.locator("tr[data-operator]:visible th").all_inner_texts()
    return found


def test_every_matrix_says_what_the_tables_say(open_page: Open, report: Path, tables: Tables) -> None:
    page = open_page(report)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expected = []
    for each in matrices(tables):
        cells = [
            [
                rate(each.cells[row, rank].tally).replace(" ", "") if (row, rank) in each.cells else ""
                for rank in each.ranks
            ]
            for row in each.rows
        ]
        expected.append(
            [each.operator, f"{each.target}: {each.title}", [each.label(row) for row in each.rows], cells]
        )
    told = page.evaluate(_MATRICES)
    assert told == expected
    assert len(told) == 8


def test_a_name_opens_the_operators_matrices_and_a_cell_its_cases(open_page: Open, report: Path) -> None:
    page = open_page(report)
    part = page.locator("details.operator[data-operator=Round]")
    assert part.get_attribute("open") is None
    follow(page.locator("tr[data-operator=Round] th a"))
    assert part.get_attribute("open") is not None
    assert part.locator("figure").count() == 2
    follow(part.locator("td.cell a").first)
    assert (
        page.evaluate("location.hash")
        == "#operator=Round&target=cpu&validity=valid&rank=0&dtype=float16&reading=!does%20not%20apply"
    )
    assert page.locator("#cases tbody tr").count() == 2


def test_the_operators_are_filtered_by_name_and_state(open_page: Open, report: Path, tables: Tables) -> None:
    page = open_page(report)
    assert names(page) == ["GatherElements", "GatherND", "Round"]
    assert page.inner_text("#choose [role=status]") == "3 of 3 operators"
    page.fill("#choose input[name=name]", "gather")
    assert names(page) == ["GatherElements", "GatherND"]
    page.fill("#choose input[name=name]", "")
    for state in ("failing", "known", "pass", "absent"):
        page.select_option("#choose select[name=state]", state)
        wanted = [
            row.operator
            for row in overview(tables)
            if state in {status(tally) for tally in row.by_target.values()}
        ]
        assert names(page) == wanted, state


def test_a_level_counts_the_cells_again(open_page: Open, report: Path, tables: Tables) -> None:
    page = open_page(report)
    page.select_option("#choose select[name=level]", "3_0")
    for operator in tables.operators:
        for target, text in zip(
            ("cpu", "dml"),
            page.locator(f"tr[data-operator={operator}] td.cell").all_text_contents(),
            strict=True,
        ):
            assert rate(tables.tally(operator=operator, target=target, level="3_0")) in text
    page.select_option("#choose select[name=level]", "")
    text = page.locator("tr[data-operator=Round] td").first.text_content()
    assert rate(tables.tally(operator="Round", target="cpu")) in text


@pytest.mark.parametrize("width", [800, 390])
def test_no_name_is_broken_and_each_column_has_its_heading(
    open_page: Open, tmp_path: Path, width: int
) -> None:
    run = many.write_run(tmp_path / "run.jsonl", MANY + 1, 10)
    page = open_page(written(tmp_path, run), width=width)
    assert page.locator("#overview table").count() == 1
    heights = page.eval_on_selector_all(
        "#overview tbody th a", "all => all.map(a => a.getClientRects().length)"
    )
    assert heights == [1] * (MANY + 1)
    lefts = "all => all.map(each => Math.round(each.getBoundingClientRect().left)).filter(Boolean)"
    heads = page.eval_on_selector_all("#overview thead th", lefts)
    assert page.eval_on_selector_all("#overview tbody tr:first-child > *", lefts) == heads


def test_a_bar_has_three_parts(open_page: Open, report: Path, tables: Tables) -> None:
    page = open_page(report)
    for target, cell in zip(
        ("cpu", "dml"), page.locator("tr[data-operator=GatherElements] td.cell").all(), strict=True
    ):
        tally = tables.tally(operator="GatherElements", target=target)
        ends = [int(end) for end in re.findall(r"(\d+)%", cell.get_attribute("style") or "")]
        parts = (tally.correct, tally.defects, tally[Reading.NOT_SUPPORTED])
        assert tally.defects > 0
        for end, begin, part in zip(ends, (0, *ends[:-1]), parts, strict=True):
            assert end - begin == pytest.approx(100 * part / tally.selected, abs=2)
    before = page.locator("td.cell[style]").first.get_attribute("style")
    page.select_option("#choose select[name=level]", "3_0")
    page.select_option("#choose select[name=level]", "")
    assert page.locator("td.cell[style]").first.get_attribute("style") == before


def test_print_of_many_operators_is_short(open_page: Open, tmp_path: Path) -> None:
    """Of each operator a line: its matrices, levels and groups stay in the page."""
    page = open_page(written(tmp_path, many.write_run(tmp_path / "run.jsonl", 150, 12)))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    pdf = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf)) <= 30


def test_a_case_says_error_bound_and_ratio(open_page: Open, bounded: Path) -> None:
    page = open_page(bounded)
    outside = page.locator("#nearness tbody tr", has=page.locator("a.warn"))
    assert outside.locator("th").all_inner_texts() == ["Operator024"] * 3
    assert outside.first.locator("td").all_inner_texts() == ["cpu", "3", "float64", "4", "60", "1", "1"]
    follow(outside.locator("a").first)
    said = page.inner_text("dialog")
    assert "The largest error is 3 of its bound (4 ULP)." in said
    terms = page.locator("dialog dl.terms").last
    pairs = zip(terms.locator("dt").all_inner_texts(), terms.locator("dd").all_inner_texts(), strict=True)
    assert dict(pairs) == {
        "expected at [0, 0, 0]": "0.5 ± 0.001", "actual": "0.503", "error": "0.003, 3 × its bound", "bound": "0.001",
    }  # fmt: skip


def test_what_has_an_infinite_bound_is_not_judged(open_page: Open, bounded: Path) -> None:
    page = open_page(bounded, "#reading=not judged&validity=valid")
    rows = page.locator("#cases tbody tr")
    assert rows.count() > 0
    follow(rows.first.locator("a"))
    assert "The bound is infinite for all 12 elements: nothing is claimed of them." in page.inner_text(
        "dialog"
    )


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_in_a_page_of_many_operators(open_page: Open, tmp_path: Path, width: int) -> None:
    page = open_page(written(tmp_path, many.write_run(tmp_path / "run.jsonl", MANY + 1, 8)), width=width)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_150_operators_stay_small(open_page: Open, tmp_path: Path) -> None:
    run = many.write_run(tmp_path / "run.jsonl")
    path = written(tmp_path, run)
    assert path.stat().st_size < PAGE_BYTES
    page = open_page(path)
    assert len(names(page)) == 150
    assert names(page)[:2] == ["Operator004", "Operator014"]
    page.fill("#choose input[name=name]", "operator007")
    assert names(page) == ["Operator007"]
    follow(page.locator("tr[data-operator=Operator007] th a"))
    assert page.locator("details[data-operator=Operator007] figure").count() == 6
