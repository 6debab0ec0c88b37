"""What histories look like: golden files, the chart, hostile text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from harness.commands.history import RENDERINGS, answer, collect
from harness.model.query import parse_all
from harness.render.history_chart import ROWS, sparkline
from harness.results.history.recorded import Rate, RecordedRuns
from harness.results.history.runs import find_runs
from harness.results.history.summary import History
from tests.golden import check_golden
from tests.histories import CASE, cpu, write_days, write_run, write_several
from tests.render.test_html import HOSTILE

GOLDEN = Path(__file__).parent.parent / "golden"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def several(tmp_path: Path) -> Iterator[RecordedRuns]:
    """Six runs with a regression, a fix, a flip and a changed spec."""
    write_several(tmp_path, "cpu", last_specs="cc")
    with RecordedRuns() as recorded:
        collect(recorded, find_runs([tmp_path]))
        yield recorded


@pytest.mark.parametrize("format", ["terminal", "markdown", "svg"])
def test_counts(several: RecordedRuns, format: str) -> None:
    suffix = {"terminal": "txt", "markdown": "md"}.get(format, format)
    text = RENDERINGS.text(answer(several), format)
    assert format != "terminal" or max(map(len, text.splitlines())) <= 80
    check_golden(GOLDEN / f"history_counts.{suffix}", text)


def test_a_query(several: RecordedRuns) -> None:
    found = answer(several, queries=parse_all(["GatherND", "Round"]), asks_flips=True)
    check_golden(GOLDEN / "history_query.txt", RENDERINGS.text(found, "terminal"))


@pytest.mark.parametrize("format", ["terminal", "markdown"])
def test_a_case(several: RecordedRuns, format: str) -> None:
    found = answer(several, CASE)
    check_golden(
        GOLDEN / f"history_case.{'txt' if format == 'terminal' else 'md'}", RENDERINGS.text(found, format)
    )


def test_the_page_is_the_chart_the_table_and_the_answers(several: RecordedRuns) -> None:
    recorded = several
    counts = RENDERINGS.text(answer(recorded), "html")
    assert RENDERINGS.text(answer(recorded), "svg") in counts
    assert re.findall(r'<section id="(\w+)"', counts) == ["counts", "operators"]
    page = RENDERINGS.text(answer(recorded, CASE, asks_flips=True), "html")
    assert re.findall(r'<section id="(\w+)"', page) == ["since", "story", "flips", "counts", "operators"]
    assert "fails since 1.23.0 (2026-01-03 03:04); last correct on 1.22.0 (2026-01-02 03:04)" in page
    assert "onnxruntime 1.22.0 → 1.23.0" in page
    assert "<script" not in page
    assert "src=" not in page


def test_an_operator_has_a_line_over_its_runs(several: RecordedRuns) -> None:
    found = answer(several)
    courses = found.courses()
    assert [course.changed for course in courses] == sorted(
        (course.changed for course in courses), reverse=True
    )
    page = RENDERINGS.text(found, "html")
    for course in courses:
        for target, rates in course.by_target.items():
            assert len(rates) == sum(
                bool(m.point.number in found.operators[course.operator]) for m in found.lines[target]
            )
            (words,) = re.findall(r'aria-label="([^"]*)"', sparkline(rates))
            assert words.startswith(f"{len(rates)} runs, from {rates[0].correct} / {rates[0].judged} to ")
            assert page.count(words) >= 1
    assert sparkline([Rate(0, 4), Rate(4, 4)]).count('points="3.0,17.0 117.0,3.0"') == 1


def test_every_bar_has_its_count_as_text_and_what_deviates_a_sign(several: RecordedRuns) -> None:
    root = ElementTree.fromstring(RENDERINGS.text(answer(several), "svg"))
    words = [text.text for text in root.iter(f"{SVG}text")]
    bars = [bar for bar in root.iter(f"{SVG}rect") if bar.get("class") in ("pass", "fail", "none")]
    failing = [bar for bar in bars if bar.get("class") == "fail"]
    assert sum("\N{MINUS SIGN}" in (word or "") for word in words) == len(failing)
    assert "1 / 2 \N{MINUS SIGN} 1" in words
    assert all(float(bar.get("width") or 0) >= 2 for bar in bars)


def test_a_single_deviation_among_many_is_seen(tmp_path: Path) -> None:
    by_run = {CASE.replace("batched", f"b{number}"): "m" if number == 5 else "p" for number in range(1000)}
    write_run(tmp_path, 1, by_run)
    with RecordedRuns() as recorded:
        collect(recorded, find_runs([tmp_path]))
        root = ElementTree.fromstring(RENDERINGS.text(answer(recorded), "svg"))
    widths = [float(bar.get("width") or 0) for bar in root.iter(f"{SVG}rect") if bar.get("class") == "fail"]
    assert min(widths) == 2
    assert "999 / 1,000 \N{MINUS SIGN} 1" in [text.text for text in root.iter(f"{SVG}text")]


@pytest.mark.slow
def test_the_chart_draws_the_newest_rows(tmp_path: Path) -> None:
    for day in range(1, ROWS + 5):
        write_run(tmp_path / str(day), day, {CASE: "pm"[day % 2]})
    with RecordedRuns() as recorded:
        collect(recorded, find_runs([tmp_path]))
        text = RENDERINGS.text(answer(recorded), "svg")
    assert "cpu, 4 older rows not drawn" in text
    assert text.count("1.23.0") == ROWS


def _hostile(folder: Path) -> History:
    info = msgspec.structs.replace(cpu(" ".join(HOSTILE)), adapter=HOSTILE[0])
    write_days(folder, CASE, "p", version="1.22.0")
    write_run(folder, 2, {CASE: "m"}, {"cpu": info})
    with RecordedRuns() as recorded:
        collect(recorded, find_runs([folder]))
        return answer(recorded, CASE, asks_flips=True)


@pytest.mark.parametrize("format", RENDERINGS.formats)
def test_hostile_text_is_inert(tmp_path: Path, format: str) -> None:
    text = RENDERINGS.text(_hostile(tmp_path), format)
    assert "\x1b" not in text
    if format in ("html", "svg"):
        assert "<script" not in text.lower()
        assert "<img" not in text.lower()
    if format == "svg":
        ElementTree.fromstring(text)


@pytest.mark.parametrize("format", RENDERINGS.formats)
def test_a_level_of_brackets_is_no_markup(tmp_path: Path, format: str) -> None:
    path = write_run(tmp_path, 1, {CASE: "p"})
    path.write_bytes(path.read_bytes().replace(b'"2_1"', b'"[/red]<b>"'))
    with RecordedRuns() as recorded:
        collect(recorded, find_runs([tmp_path]))
        text = RENDERINGS.text(answer(recorded), format)
    assert "[/red]" in text.replace("\\", "")
    assert format not in ("html", "svg") or "<b>" not in text
