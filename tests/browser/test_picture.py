"""README's picture: it can be taken again, and shows the published sample as it is."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests import synthetic
from tests.browser.conftest import CHROMIUM
from tests.browser.test_page import written
from tools import picture


def test_the_picture_shows_the_published_sample() -> None:
    assert picture.shown(picture.PICTURE) == picture.digest(picture.PAGE), "run: python -m tools.picture"


def test_a_picture_knows_its_page(chromium: Any, tmp_path: Path) -> None:
    page = written(tmp_path, synthetic.write_run(tmp_path / "run.jsonl", 60))
    code = (
        "import sys; from pathlib import Path; from tools.picture import take; take(*map(Path, sys.argv[1:]))"
    )
    subprocess.run(
        [sys.executable, "-c", code, page, tmp_path / "report.png"],
        env={**os.environ, "CHROMIUM": str(CHROMIUM)},
        check=True,
    )
    data = (tmp_path / "report.png").read_bytes()
    assert struct.unpack(">II", data[16:24]) == (1200, 1120)
    assert picture.shown(tmp_path / "report.png") == picture.digest(page)
    page.write_text("another", encoding="utf-8")
    assert picture.shown(tmp_path / "report.png") != picture.digest(page)
