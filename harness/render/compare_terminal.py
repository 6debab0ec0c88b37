"""Renders a comparison in the terminal; made for 80 columns."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from harness.render.terminal import TONES, details, grid, indented
from harness.render.text import line, one_line
from harness.results.compare.comparison import Change, ComparedCounts, Comparison
from harness.results.compare.tables import (
    BothCell,
    both_levels,
    both_readings,
    both_rows,
    environment_differences,
    outcome_of,
    said,
    summarize_comparison,
)
from harness.results.summary import count

SHOWN = 12
_STYLES = {"none": "dim", "same": "dim", "worse": "red", "better": "green", "other": "yellow"}
_SIGNS = {
    Change.REGRESSION: "✗",
    Change.FIX: "+",
    Change.CHANGED: "≠",
    Change.NEW: "new ",
    Change.MISSING: "missing ",
}


def render_compare_terminal(comparison: Comparison, console: Console) -> None:
    """Print the verdict, how the environments differ, groups of changes, counts, and the changes by feature
    level."""
    summary = summarize_comparison(comparison)
    console.print(Text(f"{summary.mark} {summary.sentence}", style=TONES[summary.tone]))
    for remark in summary.remarks:
        indented(console, line(remark, 400), "yellow")
    _environment(comparison, console)
    _groups(comparison, console)
    console.print()
    _counts(comparison, console)
    console.print()
    _readings(comparison, console)
    _levels(comparison, console)


def _environment(comparison: Comparison, console: Console) -> None:
    found = environment_differences(comparison)
    if not found:
        return
    console.print()
    console.print(Text("what differs between the runs", style="bold"))
    table = grid("", "BASE", "HEAD")
    before = ""
    for name, fact in found:
        if name != before and len(comparison.pairs) > 1:
            table.add_row(Text(one_line(name), style="bold"))
        table.add_row(*(Text(_short(text)) for text in (fact.name, fact.base, fact.head)))
        before = name
    console.print(table)


def _short(text: str) -> str:
    """Abbreviate a hash."""
    return f"{text[:12]}…" if len(text) == 64 and text.isalnum() else line(text, 100) or "–"


def _groups(comparison: Comparison, console: Console) -> None:
    groups = comparison.groups()
    for group in groups[:SHOWN]:
        kind, example = group.kind, group.example
        console.print()
        head = Text(f"{kind.change.value} ", style="bold")
        console.print(
            head.append(
                f"{group.number:,} × {one_line(group.cases)} ({kind.validity.value}) on {one_line(kind.pair.name)}",
                style="",
            )
        )
        outcomes = f"{outcome_of(kind.before)} → {outcome_of(kind.after)}"
        happened = [outcomes, *filter(None, [line(said(example))]), *details(example.result)]
        indented(console, " · ".join(happened), "dim")
        console.print(Text(f"  {one_line(example.result.case)}"), soft_wrap=True)
    if len(groups) > SHOWN:
        console.print(Text(f"and {count(len(groups) - SHOWN, 'more group')}: see --format html", style="dim"))


def _counts(comparison: Comparison, console: Console) -> None:
    table = grid(
        "target", "compared", "equal", "regr.", "fixes", "changed", "new", "missing", right=range(1, 8)
    )
    rows = [(pair.name, counts) for pair, counts in comparison.counts.items()]
    if len(rows) > 1:
        rows.append(("all", comparison.total))
    for name, counts in rows:
        table.add_row(Text(one_line(name)), f"{counts.compared:,}", f"{counts.equal:,}", *_numbers(counts))
    console.print(table)


def _readings(comparison: Comparison, console: Console) -> None:
    table = grid("reading", "BASE", "HEAD", "HEAD \N{MINUS SIGN} BASE", right=range(1, 4))
    for name, base, head in both_readings(comparison):
        table.add_row(Text(name), f"{base:,}", f"{head:,}", f"{head - base:+,}")
    console.print(table)


def _numbers(counts: ComparedCounts) -> list[Text]:
    return [
        Text(f"{counts.changes[c]:,}", style="red" if c is Change.REGRESSION and counts.changes[c] else "")
        for c in Change
    ]


def _levels(comparison: Comparison, console: Console) -> None:
    rows = [row for row in both_rows(comparison) if row.total.changes.total()]
    if not rows:
        return
    columns = both_levels(comparison)
    console.print()
    table = grid("", *columns, "all", right=range(1, 2 + len(columns)), gap=1)
    for row in rows:
        if len(comparison.pairs) > 1:
            table.add_row(Text(f"{one_line(row.operator)} on {one_line(row.pair.name)}", style="bold"))
        name = "" if len(comparison.pairs) > 1 else one_line(row.operator)
        table.add_row(
            Text(name, style="bold"), *(_cell(row.by_level[level]) for level in columns), _cell(row.total)
        )
    console.print(table)
    console.print(
        Text(
            "changed valid cases by feature level: ✗ regressions  + fixes  ≠ changed",
            style="dim",
        )
    )


def _cell(cell: BothCell) -> Text:
    words = " ".join(f"{_SIGNS[change]}{cell.changes[change]}" for change in Change if cell.changes[change])
    return Text(words or ("=" if cell.status != "none" else ""), style=_STYLES[cell.status])
