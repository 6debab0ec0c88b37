"""A number in the page opens as many results: the list of a cell has the cell's denominator."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Open, wait_until_shown
from tests.browser.test_page import shown
from tests.running import SPECS, harness, script_of

QUERIES = (
    "Round@22",
    "GatherND@13:sweep=api*",
    "GatherND@13:sweep=static_shapes",
    "GatherElements@13:sweep=extent;data=float16",
)
RULES = [
    ("Round@22:sweep=sizes;X=float16", "reject"),
    ("Round@22:sweep=sizes;X=float32", "unsupported"),
    ("Round@22:sweep=rank;X=float16", "ulp"),
    ("GatherElements:indices=int32", "bit"),
    ("GatherND@13:sweep=static_shapes;data=int8", "raise"),
]


@pytest.fixture(scope="module", params=["expectations", pytest.param("baseline", marks=pytest.mark.slow)])
def page_of_a_run(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Return the page of a run with all that is counted: what no graph expresses, variants, failures of
    several classes, improvements."""
    folder = tmp_path_factory.mktemp("counts")
    known = folder / "known.yaml"
    entry = "- {match: '%s', when: {target: cpu}, expect: %s, masked: any will do, reason: a test, link: 'https://example.org/'}\n"
    known.write_text(
        "".join(
            entry % each
            for each in (("Round@22:X=float64", "mismatch"), ("Round@22:X=bfloat16", "unsupported"))
        )
    )
    script = script_of(folder, RULES)
    words = [word for query in QUERIES for word in ("-k", query)]
    against: list[str | Path] = []
    if request.param == "baseline":
        assert harness("run", SPECS, "-t", "cpu", *words, "-o", folder / "base").code == 0
        against = ["--baseline", folder / "base"]
    targets = ["-t", "cpu", "-t", f"fake,script={script}"]
    asked = (*targets, *words, "--expectations", known, *against, "--rerun-unexpected", "1")
    ended = harness("run", SPECS, *asked, "-o", folder / "run")
    assert ended.code == 1
    return folder / "run" / "report.html"


def counted(links: list[dict[str, str]]) -> dict[str, int]:
    """Return the number that each link promises: of a rate the denominator, after a word the number."""
    found = {}
    for link in links:
        if link["href"].startswith("#") and "=" in link["href"] and "case=" not in link["href"]:
            numbers = re.findall(r"(?<![\w.])[\d,]+(?![\w.])", re.sub(r"\d_\d|level.*", "", link["text"]))
            if numbers:
                found[link["href"]] = int(numbers[-1].replace(",", ""))
    return found


def test_every_number_opens_as_many_results(open_page: Open, page_of_a_run: Path) -> None:
    page: Any = open_page(page_of_a_run)
    links = page.eval_on_selector_all(
        "main a[href], section a[href]",
        "all => all.map(a => ({href: a.getAttribute('href'), text: a.textContent}))",
    )
    promised = counted(links)
    assert len(promised) > 50
    wrong = {}
    for href, number in promised.items():
        page.evaluate("fragment => { location.hash = fragment }", href)
        wait_until_shown(page, href)
        if shown(page) != number:
            wrong[href] = (number, shown(page))
    assert wrong == {}
