"""Takes README's picture of the published sample: python -m tests.browser.picture"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import sync_playwright

REPOSITORY = Path(__file__).resolve().parents[2]
CHROMIUM = "/usr/bin/chromium"


def main() -> None:
    """Open the top of the page in a real browser without a network."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        page = browser.new_context(
            viewport={"width": 1200, "height": 1120}, offline=True, color_scheme="light"
        ).new_page()
        page.goto((REPOSITORY / "reports/sample/report.html").as_uri())
        page.screenshot(path=REPOSITORY / "docs/report.png")
        browser.close()


if __name__ == "__main__":
    main()
