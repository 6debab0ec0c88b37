"""Renders the report as Markdown for a pull request or a job summary: regressions first, never over `LIMIT`
bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.render.directml import cross_check_section, support_summary
from harness.render.markdown_counts import (
    levels_section,
    matrices_section,
    operators_section,
    support_section,
    validities_section,
    verdict_numbers,
)
from harness.render.markdown_results import (
    deviations_section,
    differences_section,
    environment_section,
    in_common_section,
    left_out_section,
    listing_section,
    nearness_section,
    unexpected_section,
)
from harness.render.markup import code, escape, table
from harness.render.text import line, whole
from harness.results.guidance import Guidance
from harness.results.level_table import (
    counts,
)
from harness.results.overview import many
from harness.results.report import Report
from harness.results.summary import count

LIMIT = 900 * 1024
"""A job summary may have 1 MiB; the rest is left to whatever else writes into it."""
_MANY_ROWS = 40
"""Rows of a table where a run has many operators; the page has them all."""


def render_markdown(report: Report, *, limit: int = LIMIT) -> str:
    """Write the report.

    What does not fit in `limit` bytes is left out by whole rows and named at the end.
    """
    tables = report.tables
    sections: list[tuple[str, Iterator[str]]] = [
        ("verdict", _verdict(report)),
        ("unexpected results", unexpected_section(tables)),
        ("what failures have in common", in_common_section(report.common)),
        ("level table", levels_section(report)),
        ("operators", operators_section(report)),
        ("other validities", validities_section(tables)),
        ("matrices", matrices_section(report)),
        ("known deviations", deviations_section(tables)),
        ("where targets differ", differences_section(tables)),
        ("cross-check", cross_check_section(tables)),
        ("errors and bounds", nearness_section(tables)),
        ("support", support_section(report)),
        ("DirectML's tensor support", support_summary(tables)),
        ("single results", listing_section(tables)),
        ("combinations left out", left_out_section(tables)),
        ("what ran where", environment_section(tables)),
    ]
    if many(tables):
        whole = ("verdict", "operators")
        sections = [(name, lines if name in whole else _first_rows(lines)) for name, lines in sections]
    return assemble(sections, limit)


def _first_rows(lines: Iterable[str]) -> Iterator[str]:
    """Keep of each table its first rows, and say how many more the page has."""
    rows = left_out = 0
    for text in lines:
        rows = rows + 1 if text.startswith("| ") else 0
        if rows > _MANY_ROWS + 1:  # the head is a row as well
            left_out += 1
            continue
        if left_out and not rows:
            yield ""
            yield f"{count(left_out, 'more row is', 'more rows are')} in report.html."
            left_out = 0
        yield text


def assemble(sections: Iterable[tuple[str, Iterator[str]]], limit: int) -> str:
    """Join named sections of lines to a document; what does not fit in `limit` bytes is left out by whole
    lines and named at the end."""
    budget = limit - 1024
    written: list[str] = []
    left_out = []
    for name, lines in sections:
        missing = 0
        for text in lines:
            cost = len(text.encode()) + 1
            if missing or cost > budget:
                missing += 1
                continue
            budget -= cost
            written.append(text)
        if missing:
            left_out.append(f"{missing:,} lines of {name}")
            written.append("")
    if left_out:
        written.append(
            f"**Left out to stay under {limit // 1024:,} KiB:** {', '.join(left_out)}. The whole is in the HTML report and the run file."
        )
    return "\n".join(written).rstrip() + "\n"


def _verdict(report: Report) -> Iterator[str]:
    tables = report.tables
    summary = report.summary
    total = tables.tally()
    yield "# Conformance report"
    yield ""
    yield f"**{summary.mark} {escape(summary.sentence)}**"
    yield ""
    for remark in summary.remarks:
        yield f"- {escape(line(remark, 600))}"
    for problem in tables.problems:
        yield f"- expectation: {escape(line(problem, 600))}"
    yield ""
    yield from _guidance(report.guidance)
    if summary.notes:
        yield "<details><summary>What is not counted</summary>"
        yield ""
        for note in summary.notes:
            yield f"- {escape(line(note.text, 600))}"
        yield ""
        yield "</details>"
        yield ""
    if len(tables.targets) > 0:
        rows = []
        for target in tables.targets:
            tally = tables.tally(target=target)
            rows.append([escape(target), *verdict_numbers(tally), escape(counts(tally))])
        if len(rows) > 1:
            rows.append(["all", *verdict_numbers(total), escape(counts(total))])
        heads = [
            "target",
            "selected",
            "run",
            "conform",
            "known deviations",
            "unexpected",
            "outcomes other than pass",
        ]
        yield from table(heads, rows, right=range(1, 6))


def _guidance(guidance: Guidance) -> Iterator[str]:
    """What holds, why deviations are accepted, what to do next: a paragraph each."""
    for question, said in (
        ("What holds", guidance.holds),
        ("Why deviations are accepted", guidance.accepted),
    ):
        if said:
            yield f"**{question}.** {escape(line(' '.join(said), 1000))}"
            yield ""
    steps = [
        f"{escape(step.what)}{f': {code(command)}' if (command := whole(step.command)) else ''}"
        for step in guidance.steps
    ]
    yield f"**What to do next.** {'; '.join(steps)}."
    yield ""
