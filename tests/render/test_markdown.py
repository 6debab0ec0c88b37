from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from harness.model.result import Error
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.render.markup import case_id, code, escape
from harness.render.report import render_markdown
from harness.results.counted import read_tables
from harness.results.report import Report
from harness.results.runfile import RunReader
from harness.results.tables import tabulate
from tests import many, synthetic
from tests.golden import check_golden
from tests.synthetic import ABSENT, CPU, DML

GOLDEN = Path(__file__).parent.parent / "golden"
GITHUB = MarkdownIt("gfm-like", {"linkify": False, "html": True})
HOSTILE = [
    "</script><script>alert(1)</script>",
    "a | b ` c `` d",
    "<img src=x onerror=alert(1)> &lt;b&gt; &amp;",
    "**bold** _em_ ~~gone~~ [link](http://evil.example) ![i](x)",
    "# not a heading\n\n- not a list\n1. nor this",
    "@someone #1 www.example.com https://example.com",
    "\u202ereversed\u202c \x1b[31mred",
    "`" * 40,
    "\\",
    "|",
]


@pytest.mark.parametrize(
    ("name", "targets", "faults"),
    [
        ("report_failures.md", {"cpu": CPU, "dml": DML, "dml@windows": ABSENT}, 0.002),
        ("report_good.md", {"cpu": CPU}, 0.0),
    ],
)
def test_the_report(name: str, targets: dict[str, TargetInfo], faults: float) -> None:
    check_golden(GOLDEN / name, render_markdown(Report(synthetic.tables(3000, targets, faults=faults))))


def test_regressions_come_first() -> None:
    text = render_markdown(Report(synthetic.tables(3000)))
    headings = re.findall(r"^## (.*)", text, re.M)
    assert headings[0].startswith("Defects: ")
    assert headings[1].startswith("Not as expected")


def test_every_table_renders_as_a_table() -> None:
    html = GITHUB.render(render_markdown(Report(synthetic.tables(3000, {"cpu": CPU, "dml": DML}))))
    text = re.sub(r"<[^>]+>", "", html)
    assert "| --- |" not in text
    for row in re.findall(r"<tr>(.*?)</tr>", html, re.S):
        assert row.count("<t") >= 2
    counts = {
        len(re.findall(r"<t[hd]\b", row))
        for row in re.findall(
            r"<tr>(.*?)</tr>", html[html.index("By DirectML") : html.index("Invalid and")], re.S
        )
    }
    assert counts == {3, 4, 9}  # all operators together; the operators with types × ranks; each by level


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_in_a_cell(text: str) -> None:
    for written in (escape(text), code(text)):
        html = GITHUB.render(f"| a | b |\n| --- | --- |\n| {written} | end |\n")
        assert html.count("<td>") == 2
        assert "<td>end</td>" in html
        cell = html[html.index("<td>") + 4 : html.index("</td>")]
        assert re.fullmatch(r"(<code>)?[^<>]*(</code>)?", cell), cell
        assert "\u202e" not in cell


def test_a_report_of_hostile_results() -> None:
    results = synthetic.hostile_results(HOSTILE, 9)
    html = GITHUB.render(render_markdown(Report(tabulate(synthetic.header({"cpu": CPU}), results, None))))
    assert "<script" not in html
    assert "<img" not in html
    assert "<a " not in html


def test_a_limit_leaves_out_whole_rows_and_says_so() -> None:
    results = [
        synthetic.result(
            f"Round@22:sweep=a;X=float32[{n}]",
            Outcome.REJECTED,
            Verdict.REGRESSION,
            error=Error("Fail", "é" * 900),
        )
        for n in range(3000)
    ]
    tables = tabulate(synthetic.header({"cpu": CPU}), results, synthetic.end_of(results))
    whole = render_markdown(Report(tables))
    assert len(whole.encode()) < 900 * 1024
    small = render_markdown(Report(tables), limit=20_000)
    assert len(small.encode()) < 20_000
    assert small.splitlines()[-1].startswith("**Left out to stay under 19 KiB:** ")
    assert "single results" in small.splitlines()[-1]


def test_the_same_tables_give_the_same_text() -> None:
    assert render_markdown(Report(synthetic.tables(500))) == render_markdown(Report(synthetic.tables(500)))


@pytest.mark.slow
def test_many_operators_make_no_endless_file(tmp_path: Path) -> None:
    text = render_markdown(Report(read_tables(RunReader(many.write_run(tmp_path / "run.jsonl", 60, 40)))))
    assert len(text.encode()) < 60_000
    assert "| Operator059 |" in text
    folded = text.index("<details><summary>Operators: all 60 operators</summary>")
    assert text.index("## By DirectML feature level") < folded < text.index("## Errors and bounds")
    for body in re.split(r"\n\n", text.partition("## Errors and bounds")[2]):
        assert body.count("\n| ") <= 42
    assert re.search(r"^\d+ more rows are in report\.html\.$", text, re.M)


@pytest.mark.parametrize("text", ["1 <= r-b[-1]", "a_b", "at [2, 3]: 4 > 1", "x.0: float16"])
def test_plain_text_needs_no_escape(text: str) -> None:
    assert escape(text) == text


@pytest.mark.parametrize("text", HOSTILE)
def test_an_id_is_code_that_can_be_broken(text: str) -> None:
    html = GITHUB.render(f"| a |\n| --- |\n| {case_id(f'Round@22:case=a;{text}')} |\n")
    cell = html[html.index("<td>") + 4 : html.index("</td>")]
    assert re.fullmatch(r"<code>[^<>]*(<wbr>[^<>]*)+</code>", cell), cell
