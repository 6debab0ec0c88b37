"""Renders the summary that ends a run in the terminal; made for 80 columns."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from harness.model.case import Validity
from harness.model.result import Accuracy, Repeats, Result
from harness.model.verdict import NOT_EXECUTED, Outcome, judged
from harness.render.text import gist, line, one_line, ranks
from harness.results import memory
from harness.results.explain.in_common import InCommon, rules
from harness.results.explain.words import title
from harness.results.level_table import apart, counts, levels, rate, status, validity_table
from harness.results.nearness import in_words, ratio_text
from harness.results.overview import conform, many
from harness.results.report import Report
from harness.results.summary import count
from harness.results.tables import Tables
from harness.results.tally import Tally

SHOWN = 8
EXPLAINED = 3
TONES = {"good": "bold green", "bad": "bold red", "warn": "bold yellow"}
_BESIDE = 4
"""Targets that stand beside each other where each operator has one line."""
_UNBOUNDED = 10_000
_STYLES = {
    "none": "dim",
    "absent": "yellow",
    "pass": "green",
    "failing": "red",
    "known": "cyan",
    "partial": "yellow",
    "unclaimed": "yellow",
}
_MARKS = {
    "none": "",
    "absent": " ?",
    "pass": "",
    "failing": " ✗",
    "known": " ~",
    "partial": " !",
    "unclaimed": " ∞",
}


def render_terminal(report: Report, console: Console) -> None:
    """Print verdict, unexpected results and what they have in common, level table, validity table and where
    targets differ.

    Colour is the console's affair.
    """
    tables = report.tables
    summary = report.summary
    console.print(Text(f"{summary.mark} {summary.sentence}", style=TONES[summary.tone]), soft_wrap=False)
    for remark in summary.remarks:
        indented(console, line(remark, 400), "yellow")
    if short := [note.short for note in summary.notes if note.short]:
        indented(console, f"{'; '.join(short)}: report.md says why.", "dim")
    for problem in tables.problems:
        indented(console, f"expectation: {line(problem, 400)}", "red")
    _unexpected(tables, console)
    _in_common(report.common, console)
    console.print()
    folded = many(tables)
    if folded:
        beside = _operators(report, beside=True)
        console.print(
            beside
            if len(tables.targets) <= _BESIDE and _fits(beside, console)
            else _operators(report, beside=False)
        )
        console.print(
            Text(
                "conforming / selected cases; levels and validities of each operator are in the report",
                style="dim",
            )
        )
    elif _fits(by_level := _levels(report, levels(tables)), console):
        console.print(by_level)
        console.print(
            Text("passed / selected valid cases by the feature level that first allows them", style="dim")
        )
    else:
        console.print(_levels(report, []))
        console.print(
            Text("passed / selected valid cases; the report has them by feature level", style="dim")
        )
    if marks := _legend(report, folded=folded):
        console.print(Text(marks, style="dim"))
    if not folded:
        _others(report, console)
        _validities(tables, console)
    _nearness(tables, console)
    _differences(tables, console)
    _disagreements(report, console)


def indented(console: Console, text: str, style: str = "", indent: int = 2) -> None:
    """Print a text that is indented as a whole, also where it is broken."""
    for part in Text(text, style=style).wrap(console, max(20, console.width - indent)):
        part.rstrip()
        console.print(Text(" " * indent) + part, soft_wrap=True)


def _unexpected(tables: Tables, console: Console) -> None:
    groups = tables.unexpected.groups()
    for group in groups[:SHOWN]:
        kind = group.kind
        console.print()
        head = Text(f"{judged(kind.outcome, kind.verdict)} ", style="bold").append(
            f"{group.number:,} × {one_line(group.cases)} on {one_line(kind.target)}", style=""
        )
        console.print(head)
        indented(console, describe(group.example), "dim")
        console.print(Text(f"  {one_line(group.example.case)}"), soft_wrap=True)
    if len(groups) > SHOWN:
        console.print(Text(f"and {count(len(groups) - SHOWN, 'more group')} in the report", style="dim"))


def _in_common(common: InCommon, console: Console) -> None:
    found = [group for group in common.groups if group.population and group.separation.rules]
    if not (found or common.remark):
        return
    console.print()
    console.print(Text("what they have in common", style="bold"))
    for group in found[:EXPLAINED]:
        indented(console, one_line(title(group)))
        for rule in rules(group):
            indented(console, one_line(rule), "dim", 4)
    if len(found) > EXPLAINED:
        console.print(Text(f"  and {count(len(found) - EXPLAINED, 'more group')} in the report", style="dim"))
    if common.remark:
        indented(console, one_line(common.remark), "dim")


def describe(result: Result) -> str:
    """Say in one line what happened."""
    return " · ".join((result.outcome.value, *details(result)))


def error_words(error: object, bound: float) -> str:
    """Say how an error compares with its bound."""
    if not isinstance(error, float):
        return f"no number within {bound:.3g}"
    return (
        f"error {error:.3g}, {error / bound:,.3g} × its bound"
        if bound
        else f"error {error:.3g} where none is admissible"
    )


def details(result: Result) -> list[str]:
    """Say what is known beside the outcome."""
    words = []
    if said := repeated(result):
        words.append(said)
    if result.as_function:
        words.append(result.as_function)
    if result.outcome is Outcome.ACCEPTED_INVALID:
        words.append("it ran without an error")
    if over := memory.in_words(result):
        words.append(over)
    if result.diff is not None:
        diff = result.diff
        at = f" at [{', '.join(map(str, diff.first_index))}]" if diff.first_index is not None else ""
        which = f"output {diff.output}: " if isinstance(diff.output, int) else ""
        words.append(
            f"{which}{diff.differing:,} of {diff.total:,} differ{at}: expected {line(diff.expected, 60)}, actual {line(diff.actual, 60)}"
        )
        if diff.max_ulp is not None:
            words.append(f"max {diff.max_ulp:,} ULP")
        if isinstance(diff.bound, float):
            words.append(error_words(diff.error, diff.bound))
    if result.apart == "empty":
        words.append("its outputs have no element")
    if result.apart == "unclaimed" and isinstance(result.accuracy, Accuracy):
        words.append(in_words(result.accuracy))
    if result.error is not None:
        words.append(": ".join(filter(None, [line(result.error.class_, 60), gist(result.error.message)])))
        words += ["by ONNX Runtime's core, before any provider was asked"] * (result.error.by == "core")
    return words


def repeated(result: Result) -> str:
    """Say how a repeated result came out: `flaky: failed 2 of 5 repeats (mismatch 2, pass 3)`; empty for one
    that was not repeated."""
    repeats = result.repeats
    if not isinstance(repeats, Repeats):
        return ""
    outcomes = ", ".join(f"{outcome} {number}" for outcome, number in repeats.outcomes.items())
    said = f"failed {repeats.failed} of {repeats.runs} repeats"
    return f"flaky: {said} ({outcomes})" if result.flaky else said


def grid(*columns: str, right: Iterable[int] = (), gap: int = 2) -> Table:
    """Make a table without lines; `right` names the columns of numbers. What the first column names is broken
    last."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, gap, 0, 0))
    numeric = set(right)
    for place, column in enumerate(columns):
        justify: JustifyMethod = "right" if place in numeric else "left"
        table.add_column(Text(one_line(column)), justify=justify, overflow="fold", no_wrap=place == 0)
    return table


def _cell(tally: Tally) -> Text:
    state = status(tally)
    return Text(rate(tally).replace(" / ", "/").replace(",", "") + _MARKS[state], style=_STYLES[state])


def _fits(table: Table, console: Console) -> bool:
    """Say whether a table fits the console with no name and no number broken in two."""
    wide = console.options.update(width=_UNBOUNDED)
    return Measurement.get(console, wide, table).maximum <= console.width


def _levels(report: Report, columns: list[str]) -> Table:
    """A line for each operator and target, with a column for each of these levels and one for all."""
    table = grid("", *columns, "all", right=range(1, 2 + len(columns)), gap=1)
    before = ""
    for row in report.levels:
        if row.operator != before:
            table.add_row(Text(one_line(row.operator), style="bold"))
        table.add_row(
            Text(f"  {row.target}"), *(_cell(row.by_level[level]) for level in columns), _cell(row.total)
        )
        before = row.operator
    return table


def _operators(report: Report, *, beside: bool) -> Table:
    """A line for each operator, those with unexpected results first; targets `beside` each other, else their
    sum and what is unexpected."""
    tables = report.tables
    columns = [*tables.targets, ""] if beside else ["all", ""]
    shown = grid("", *columns, right=range(1, len(columns)), gap=1)
    for row in report.overview:
        tallies = [*row.by_target.values()] if beside else [row.total]
        cells = [
            Text(
                conform(tally).replace(" / ", "/").replace(",", "") + _MARKS[status(tally)],
                style=_STYLES[status(tally)],
            )
            for tally in tallies
        ]
        where = [target for target, tally in row.by_target.items() if tally.unexpected]
        on = "" if beside else f" on {count(len(where), 'target')}"
        said = f"{row.total.unexpected:,} unexpected{on}" if where else ""
        shown.add_row(
            Text(one_line(row.operator), style="bold" if where else ""), *cells, Text(said, style="red")
        )
    return shown


def _nearness(tables: Tables, console: Console) -> None:
    rows = sorted(
        tables.nearnesses.rows(tables.targets), key=lambda row: (-row.all.ratio, row.operator, row.target)
    )
    if not rows:
        return
    console.print()
    console.print(Text("largest error / bound", style="bold"))
    for row in rows[:SHOWN]:
        near = row.all
        said = (
            [f"{ratio_text(near.ratio)}{' ✗' if near.ratio > 1 else ''} ({row.worst}, {near.ulp:.2g} ULP)"]
            if near.example
            else []
        )
        said.append(f"{near.results:,} results")
        said += [f"{near.outside:,} outside"] * bool(near.outside) + [
            f"nothing claimed of {near.unclaimed:,}"
        ] * bool(near.unclaimed)
        indented(console, f"{one_line(row.operator)} on {one_line(row.target)}: {', '.join(said)}")
    if len(rows) > SHOWN:
        console.print(Text(f"  and {len(rows) - SHOWN:,} more in the report", style="dim"))


def _legend(report: Report, *, folded: bool = False) -> str:
    if folded:
        states = {status(tally) for row in report.overview for tally in row.by_target.values()}
    else:
        states = {status(tally) for row in report.levels for tally in (*row.by_level.values(), row.total)}
    words = {
        "failing": "✗ unexpected results",
        "known": "~ known deviations",
        "partial": "! not all ran",
        "unclaimed": "∞ some test nothing",
        "absent": "? nothing ran",
    }
    return "  ".join(word for state, word in words.items() if state in states)


def _others(report: Report, console: Console) -> None:
    rows = [row for row in report.levels if row.total.others()]
    if rows:
        console.print()
        console.print(Text("valid cases that did not pass", style="bold"))
    for row in rows:
        indented(console, f"{row.operator} on {row.target}: {counts(row.total)}")


def _validities(tables: Tables, console: Console) -> None:
    rows = validity_table(tables)
    if not rows:
        return
    console.print()
    table = grid("operator", "target", "validity", "conform", "outcomes", right=(3,))
    for row in rows:
        said = [
            f"{outcome.value} {row.tally.outcomes[outcome]:,}"
            for outcome in Outcome
            if row.tally.outcomes[outcome]
        ]
        outcomes = ", ".join([*said, *apart(row.tally)])
        conform = (
            f"{row.tally.conforming:,}/{row.tally.selected:,}"
            if row.validity is Validity.INVALID
            else "recorded"
        )
        table.add_row(
            Text(row.operator), Text(row.target), Text(row.validity.value), Text(conform), Text(outcomes)
        )
    console.print(table)


def _differences(tables: Tables, console: Console) -> None:
    groups = tables.differences.groups()
    if not groups:
        return
    console.print()
    console.print(Text(f"targets differ on {sum(group.number for group in groups):,} cases", style="bold"))
    for group in groups[:SHOWN]:
        said = [
            f"{target}: {o.value}"
            for target, o in zip(tables.targets, group.outcomes, strict=True)
            if o and o not in NOT_EXECUTED
        ]
        dtypes = ", ".join(group.dtypes) if len(group.dtypes) <= 3 else f"{len(group.dtypes)} dtypes"
        kind = " ".join(
            part
            for part in (group.operator, dtypes, f"rank {ranks(group.ranks)}" if group.ranks else "")
            if part
        )
        indented(console, f"{group.number:,} × {kind} ({group.validity.value}): {', '.join(said)}")
    if len(groups) > SHOWN:
        console.print(Text(f"  and {len(groups) - SHOWN:,} more groups in the report", style="dim"))


def _disagreements(report: Report, console: Console) -> None:
    rows = [row for row in report.support if row.disagreements]
    if rows:
        console.print()
        places = count(len(rows), "group")
        console.print(
            Text(
                f"documented, registered and measured support disagree in {places}: see the report",
                style="bold",
            )
        )
