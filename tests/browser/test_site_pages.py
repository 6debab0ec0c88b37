"""A site in a browser: it reads without JavaScript, its search leads to pages and cases, axe finds nothing."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from harness.model.result_key import case_anchor
from tests import synthetic
from tests.browser.conftest import Open, violations
from tests.histories import CASE
from tests.results.test_site import make, write_several
from tests.sampled import one_of
from tests.synthetic import DML

SCRIPTS = {"with JavaScript": True, "without": False}


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    return make(folder / "site", write_several(folder / "runs"))


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faulty")
    targets = {"cpu": synthetic.CPU, "dml": DML}
    return make(folder / "site", synthetic.write_run(folder / "run.jsonl", 3000, targets, faults=0.02))


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_from_the_index_to_an_operator_to_a_case(open_page: Open, several: Path, script: bool) -> None:
    page = open_page(several / "index.html", within=several, java_script_enabled=script)
    assert page.locator("#search").is_visible() is script
    page.locator(".map tbody tr", has_text="GatherND").locator("td.known a").first.click()
    page.wait_for_url("**/operators/GatherND.html#on-cpu")
    assert page.locator("#on-cpu tbody tr").count() == 2
    page.get_by_role("link", name=CASE).click()
    page.wait_for_url(f"**#{case_anchor(CASE)}")
    assert page.locator("li:target").inner_text() == CASE
    page.get_by_role("link", name="cpu").last.click()
    page.wait_for_url("**/targets/cpu.html")
    page.get_by_role("link", name="ONNX Runtime conformance").click()
    page.wait_for_url("**/index.html")


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_an_address_opens_the_fold_of_its_case(open_page: Open, faulty: Path, script: bool) -> None:
    page = open_page(faulty / "operators" / "GatherND.html", within=faulty)
    anchor = page.locator("details li").last.get_attribute("id")
    page = open_page(
        faulty / "operators" / "GatherND.html", f"#{anchor}", within=faulty, java_script_enabled=script
    )
    assert page.locator("li:target").is_visible()


@pytest.mark.parametrize("where", ["index.html", "operators/GatherND.html", "targets/dml.html"])
def test_the_search_finds_pages_and_cases(open_page: Open, several: Path, where: str) -> None:
    page = open_page(several / where, within=several)
    page.keyboard.press("/")
    page.keyboard.type("gathernd BATCHED")
    found = page.locator("#found a")
    found.first.wait_for()
    assert found.all_inner_texts() == [CASE]
    assert page.locator("#search [role=status]").inner_text() == "1 found"
    found.first.click()
    page.wait_for_url(f"**/operators/GatherND.html#{case_anchor(CASE)}")
    page.locator("#search input").fill("dml")
    assert page.locator("#found li").first.inner_text() == "target dml"
    page.locator("#search input").fill("nothing is called so")
    assert page.locator("#search [role=status]").inner_text() == "0 found"
    page.locator("#search input").fill("")
    assert page.locator("#found li").count() == 0


@pytest.mark.parametrize(
    ("where", "scheme", "width"),
    one_of(
        5,
        product(
            ["index.html", "support.html", "operators/Round.html", "targets/cpu.html"],
            ["light", "dark"],
            [1280, 400],
        ),
    ),
)
def test_axe_finds_nothing(open_page: Open, several: Path, width: int, where: str, scheme: str) -> None:
    page = open_page(several / where, within=several, width=width, color_scheme=scheme)
    page.locator("#search input").fill("round")
    page.locator("#found a").first.wait_for()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture
def served(several: Path) -> Iterator[str]:
    """The site on a file host that sends nothing but the files."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=several))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_file_host_serves_it(chromium: object, served: str) -> None:
    context = chromium.new_context()  # type: ignore[attr-defined]
    page = context.new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("requestfailed", lambda request: troubles.append(request.url))
    page.goto(f"{served}/operators/GatherND.html#{case_anchor(CASE)}")
    assert page.locator("li:target").inner_text() == CASE
    colour = "cell => getComputedStyle(cell).backgroundColor"
    assert page.locator(".numbers .cell.known").first.evaluate(colour) == "rgb(220, 236, 251)"
    assert page.locator(".heat .cell.known").first.evaluate(colour) != "rgba(0, 0, 0, 0)"
    page.locator("#search input").fill("round")
    page.locator("#found a").first.wait_for()
    context.close()
    assert [said for said in troubles if "favicon" not in said] == []
