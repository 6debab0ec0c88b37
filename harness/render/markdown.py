"""Renders the report as Markdown for a pull request or a job summary: regressions first, never over `LIMIT`
bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.model.verdict import Reading
from harness.render.directml import cross_check_section, support_summary
from harness.render.markdown_counts import (
    levels_section,
    matrices_section,
    operators_section,
    support_section,
    validities_section,
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
from harness.results.overview import many
from harness.results.reading_rows import BESIDE, EXPLANATIONS
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
        ("known defects", deviations_section(report)),
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
    yield "# Conformance report"
    yield ""
    yield f"**{summary.mark} {escape(summary.sentence)}** {escape(summary.where)}"
    yield ""
    yield from _readings(report)
    for remark in summary.remarks:
        yield f"- {escape(line(remark, 600))}"
    for problem in tables.problems:
        yield f"- expectation: {escape(line(problem, 600))}"
    yield ""
    steps = [
        f"{escape(step.what)}{f': {code(command)}' if (command := whole(step.command)) else ''}"
        for step in report.steps
    ]
    yield f"**What to do next.** {'; '.join(steps)}."
    yield ""
    if summary.notes:
        yield "<details><summary>What is not counted</summary>"
        yield ""
        for note in summary.notes:
            yield f"- {escape(line(note.text, 600))}"
        yield ""
        yield "</details>"
        yield ""


def _readings(report: Report) -> Iterator[str]:
    """Yield the table of the six readings: targets beside each other, then all, and what is unexpected."""
    tables = report.tables
    total = tables.tally()
    if not report.readings:
        return
    several = tables.targets if 1 < len(tables.targets) <= BESIDE else []
    heads = [
        "reading",
        *map(escape, several),
        "results",
        *["unexpected"][: bool(total.unexpected)],
        "what it means",
    ]
    rows = [
        [
            row.reading.value,
            *(f"{row.by_target[target]:,}" for target in several),
            f"{row.number:,}",
            *([f"{row.unexpected:,}"] if total.unexpected else []),
            escape(
                " ".join(filter(None, (EXPLANATIONS[row.reading], row.detail[:1].upper() + row.detail[1:])))
            ),
        ]
        for row in report.readings
    ]
    sums = [f"{tables.tally(target=target).selected:,}" for target in several]
    unexpected = [f"{total.unexpected:,}"] if total.unexpected else []
    rows.append(["all results", *sums, f"{total.selected:,}", *unexpected, ""])
    yield from table(heads, rows, right=range(1, len(heads) - 1))
    if len(tables.targets) > BESIDE:
        of_target = ((target, tables.tally(target=target)) for target in tables.targets)
        lines = (
            [
                escape(target),
                *(f"{n:,}" for n in (*map(tally.__getitem__, Reading), tally.selected, tally.unexpected)),
            ]
            for target, tally in of_target
        )
        columns = ["target", *(reading.value for reading in Reading), "all results", "unexpected"]
        yield from table(columns, lines, right=range(1, len(columns)))
