"""The comparison page in a browser: it opens without network, its counts lead to its cases, axe finds nothing
serious."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.commands.compare import RENDERINGS
from tests.browser.conftest import Open, follow, violations
from tests.browser.test_page import shown
from tests.render.test_compare_render import hostile_runs, two


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    path = folder / "compare.html"
    path.write_text(RENDERINGS.text(two(folder, faults=0.03), "html"), encoding="utf-8", newline="\n")
    return path


def test_from_a_count_to_its_cases_to_one_case(open_page: Open, comparison: Path) -> None:
    page = open_page(comparison)
    link = page.locator("#counts tbody td.failing a").first
    number = int(re.sub(r"\D", "", link.inner_text()))
    follow(link)
    assert shown(page) == number
    assert page.locator("select[name=change]").input_value() == "regression"
    group = page.locator("#changes li > a:not(.open)").first
    number = int(group.inner_text().split(" ")[0].replace(",", ""))
    follow(group)
    assert shown(page) == number
    follow(page.locator("#cases tbody a").first)
    heads = page.locator("dialog[open] thead th").all_inner_texts()
    assert heads[:4] == ["Target", "BASE", "HEAD", "Change"]
    page.keyboard.press("Escape")
    cell = page.locator("#levels td.failing a").first
    follow(cell)
    assert shown(page) > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_page: Open, comparison: Path, scheme: str) -> None:
    page = open_page(comparison, color_scheme=scheme)
    assert violations(page) == []
    follow(page.locator("#cases tbody a").first)
    assert violations(page) == []


def test_a_narrow_page_does_not_scroll_sideways(open_page: Open, comparison: Path) -> None:
    page = open_page(comparison, width=400)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_hostile_text_does_nothing(open_page: Open, tmp_path: Path) -> None:
    path = tmp_path / "compare.html"
    path.write_text(RENDERINGS.text(hostile_runs(tmp_path), "html"), encoding="utf-8", newline="\n")
    page = open_page(path)
    assert page.locator("#cases tbody tr").count() == shown(page) == 7
    follow(page.locator("#changes a.open").first)
    assert page.locator("dialog[open]").count() == 1
