"""A real Chromium for the HTML report: the system's, found by name, with every request but the page's own
refused."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from harness.render.html import render_html
from tests.needs import need

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
Open = Callable[..., Any]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """Return the browser, which ends with the tests of this folder: others look for processes left behind."""
    if CHROMIUM is None:
        need("browser", "install the system's package chromium, or set CHROMIUM")
    from playwright import sync_api as playwright

    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Open]:
    """Open a file with the network blocked; an error in the page, a message on its console or a request fails
    the test."""
    contexts, troubles = [], []

    def opened(
        path: Path,
        fragment: str = "",
        *,
        width: int = 1280,
        height: int = 900,
        within: Path | None = None,
        **options: Any,
    ) -> Any:
        """A page that is alone says when its script has drawn it; one of a site, whose files are `within` a
        folder, needs none."""
        context = chromium.new_context(viewport={"width": width, "height": height}, offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda message: troubles.append(message.text))
        page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((within or path).as_uri()) else troubles.append(request.url)
            ),
        )
        page.goto(path.as_uri() + fragment)
        if within is None:
            page.wait_for_selector("html[data-shows]", timeout=60_000)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def violations(page: Any) -> list[tuple[str, str, str]]:
    """Return what axe finds in a page: rule, element, and what is wrong with it."""
    return [
        (each["id"], each["nodes"][0]["html"], each["nodes"][0]["failureSummary"])
        for each in Axe().run(page, options={"preload": False}).response["violations"]
        if each["impact"] in ("moderate", "serious", "critical")
    ]


def follow(link: Any) -> None:
    """Click a link of the page to a part of itself, and wait until that part is shown: the address changes
    first."""
    target = link.evaluate("link => link.hash")
    link.click()
    wait_until_shown(link.page, target)


def wait_until_shown(page: Any, fragment: str) -> None:
    wait_until(
        page,
        f"document.documentElement.dataset.shows === {json.dumps(fragment)} && location.hash === {json.dumps(fragment)}",
    )


def wait_until(page: Any, condition: str) -> None:
    """Wait for a condition in JavaScript. `wait_for_function` evaluates text in the page from its second look on,
    which the page's Content-Security-Policy forbids."""
    ends = time.monotonic() + 30
    while not page.evaluate(condition):
        assert time.monotonic() < ends, condition
        page.wait_for_timeout(20)


def written(folder: Path, run: Path) -> Path:
    """Write the page of a run."""
    path = folder / "report.html"
    path.write_text(render_html(run), encoding="utf-8", newline="\n")
    return path
