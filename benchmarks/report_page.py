"""How large and how fast the HTML report is, in a real Chromium: `python -m benchmarks.report_page [CASES…]`,
results on three targets.

Needs the extra `test` and the system's Chromium. Prints the rows of the table in docs/performance.md; the
runs are synthetic.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from harness.commands.report import write_report
from harness.results.counted import read_tables
from harness.results.runfile import RunReader
from tests import synthetic
from tests.synthetic import CPU, DML, TargetInfo

TARGETS: dict[str, TargetInfo] = {"cpu": CPU, "dml": DML, "cpu@ort-1.22.1": CPU}
FILTERS = {
    "by target": ("select[name=target]", "dml"),
    "by element type": ("select[name=dtype]", "float16"),
    "by text": ("input[name=q]", "axis=1 negative"),
}
_TIMED = """([selector, value]) => {
  const input = document.querySelector(selector);
  const before = performance.now();
  input.value = value;
  input.dispatchEvent(new Event("input", {bubbles: true}));
  document.body.offsetHeight;
  const taken = performance.now() - before;
  document.querySelector("button[type=reset]").form.reset();
  input.dispatchEvent(new Event("input", {bubbles: true}));
  return taken;
}"""


def measure(browser: Any, cases: int, folder: Path) -> list[str]:
    """Return the cells of one row."""
    run = synthetic.write_run(folder / "run.jsonl", cases, TARGETS)
    started = time.perf_counter()
    read_tables(RunReader(run))
    tables = time.perf_counter() - started
    started = time.perf_counter()
    write_report(run, "html", folder / "report.html")
    rendered = time.perf_counter() - started
    size = (folder / "report.html").stat().st_size
    paints, ready = [], []
    for _ in range(3):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto((folder / "report.html").as_uri())
        page.wait_for_selector("html[data-shows]", timeout=120_000)
        paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        ready.append(page.evaluate("performance.getEntriesByName('cases-ready')[0].startTime"))
        filters = {
            name: statistics.median(page.evaluate(_TIMED, list(what)) for _ in range(5))
            for name, what in FILTERS.items()
        }
        page.close()
    cells = [f"{cases * len(TARGETS):,}", f"{tables:.1f} s", f"{rendered:.1f} s", f"{size / 2**20:.2f} MiB"]
    cells += [f"{statistics.median(paints):.0f} ms", f"{statistics.median(ready):.0f} ms"]
    return cells + [f"{taken:.0f} ms" for taken in filters.values()]


def main(sizes: list[int]) -> None:
    """Print the table."""
    heads = [
        "results",
        "tables",
        "rendering",
        "page",
        "first paint",
        "cases ready",
        *(f"filter {name}" for name in FILTERS),
    ]
    print(f"| {' | '.join(heads)} |\n|{'---:|' * len(heads)}", flush=True)
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        for cases in sizes:
            print(f"| {' | '.join(measure(browser, cases, Path(folder)))} |", flush=True)
        browser.close()
    print(
        f"\nPeak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB"
    )


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [1_000, 20_000, 66_667])
