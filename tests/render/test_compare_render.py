"""What comparisons look like: golden files, hostile text, limits."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.commands.compare import RENDERINGS
from harness.model.case import Validity
from harness.model.result import Error
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from harness.render.compare import compare_document
from harness.render.document_markdown import write_markdown
from harness.results.compare import joined
from harness.results.compare.comparison import Comparison
from harness.results.compare.joined import compare_runs
from harness.results.runfile import RunReader
from tests import synthetic
from tests.golden import check_golden
from tests.render.test_html import HOSTILE, parsed
from tests.synthetic import ABSENT, CPU, DML

GOLDEN = Path(__file__).parent.parent / "golden"
NEWER = msgspec.structs.replace(DML, onnxruntime="1.23.0", directml="1.15.5", driver="32.0.13")


def two(folder: Path, number: int = 3000, faults: float = 0.003) -> Comparison:
    """Two runs that differ in a few results, in versions, in length and in one target."""
    old, new = {"cpu": CPU, "dml": DML}, {"cpu": CPU, "dml": NEWER, "dml@windows": ABSENT}
    base = synthetic.write_results(
        folder / "base.jsonl", list(synthetic.results(number, old, faults=faults, seed=1)), old
    )
    found = list(synthetic.results(number - 5, new, faults=faults, seed=2))
    return compare_runs(
        RunReader(base), RunReader(synthetic.write_results(folder / "head.jsonl", found, new))
    )


def test_markdown(tmp_path: Path) -> None:
    check_golden(GOLDEN / "compare.md", RENDERINGS.text(two(tmp_path), "markdown"))


def test_terminal(tmp_path: Path) -> None:
    text = RENDERINGS.text(two(tmp_path), "terminal")
    check_golden(GOLDEN / "compare_terminal.txt", text)
    assert all(len(line) <= 80 for line in text.splitlines() if "@" not in line)


def test_what_the_page_says(tmp_path: Path) -> None:
    check_golden(GOLDEN / "compare_page.txt", parsed(RENDERINGS.text(two(tmp_path), "html")).text())


@pytest.mark.slow
def test_markdown_stays_under_its_limit(tmp_path: Path) -> None:
    text = write_markdown(compare_document(two(tmp_path, faults=0.5)), limit=40_000)
    assert len(text.encode()) <= 40_000
    assert "**Left out to stay under" in text
    assert "## Changes" in text


@pytest.mark.slow
def test_what_is_not_kept_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "KEEP", 3)
    found = two(tmp_path, faults=0.5)
    assert all(len(kept) <= 3 for kept in found.kept.values())
    assert sum(group.number for group in found.groups()) == found.total.changes.total()
    assert "left out to keep the page small" in RENDERINGS.text(found, "html")


def hostile_runs(folder: Path) -> Comparison:
    targets = {"cpu": TargetInfo("CPUExecutionProvider", adapter=HOSTILE[0], driver=HOSTILE[3])}
    runs = []
    for name, error in (("a", "Before"), ("b", HOSTILE[1])):
        results = [
            synthetic.result(
                f"{text}@22:case={n};{text}",
                Outcome.REJECTED,
                validity=Validity.INVALID,
                levels={"directml": text},
                error=Error(error + text, text * 20_000),
            )
            for n, text in enumerate(HOSTILE)
        ]
        runs.append(synthetic.write_results(folder / f"{name}.jsonl", results, targets))
    return compare_runs(*map(RunReader, runs))


def test_hostile_text_is_never_markup(tmp_path: Path) -> None:
    page = RENDERINGS.text(hostile_runs(tmp_path), "html")
    harmless = parsed(RENDERINGS.text(two(tmp_path, 100), "html"))
    read = parsed(page)
    assert set(read.tags) <= set(harmless.tags) | {"details", "summary"}
    assert not [name for _, name, _ in read.attributes if name.startswith("on")]
    assert "\u202e" not in page
    assert len(page) < 400_000


def test_the_terminal_gets_no_control_characters(tmp_path: Path) -> None:
    text = RENDERINGS.text(hostile_runs(tmp_path), "terminal")
    assert not {"\x1b", "\u202e", "\u2066"} & set(text)
