"""Takes README's picture, docs/report.png, of a defect in the published sample in a real browser: python -m tools.picture

Needs the extra `test` and the system's Chromium, or another by the variable CHROMIUM. The picture keeps the
SHA-256 of the page that it shows, so that a test sees when it is stale.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import sys
import zlib
from pathlib import Path

from harness.model.errors import HarnessError, TargetUnavailable

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "reports/sample/report.html"
PICTURE = ROOT / "docs/report.png"
_KEYWORD = b"Page SHA-256\0"
_START = 8 + 25
"""Bytes of a PNG up to where chunks of text may stand: its signature and its header."""


DEFECT = "#case=Round%4022:case=below_one_half_away_from_zero;X=float32[2];variant=halves_away_from_zero&on=directml"
"""The case that the picture shows: a wrong result."""


def take(page: Path, picture: Path, fragment: str = "") -> None:
    """Write a picture of a page, of its top or of what a fragment opens. Errors: TargetUnavailable without a browser."""
    from playwright.sync_api import sync_playwright

    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        raise TargetUnavailable(
            f"{picture.name}: no browser: install the system's package chromium, or set CHROMIUM"
        )
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        tab = browser.new_context(
            viewport={"width": 1200, "height": 1120}, offline=True, color_scheme="light"
        ).new_page()
        tab.goto(page.resolve().as_uri() + fragment)
        tab.wait_for_selector("html[data-shows]")
        taken = tab.screenshot()
        browser.close()
    chunk = b"tEXt" + _KEYWORD + digest(page).encode()
    framed = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    picture.write_bytes(taken[:_START] + framed + taken[_START:])


def digest(page: Path) -> str:
    """Return the SHA-256 of a page in hexadecimal digits."""
    return hashlib.sha256(page.read_bytes()).hexdigest()


def shown(picture: Path) -> str:
    """Return the SHA-256 of the page that a picture shows, empty where it does not say."""
    _, found, rest = picture.read_bytes().partition(_KEYWORD)
    return rest[:64].decode("ascii", "replace") if found else ""


def main() -> int:
    """Take README's picture; return the exit code."""
    try:
        take(PAGE, PICTURE, DEFECT)
    except HarnessError as error:
        print(f"harness: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
