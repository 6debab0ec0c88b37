"""Renders the summary that ends a run in the terminal; made for 80 columns."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from harness.model.result import Accuracy, Repeats, Result
from harness.model.verdict import DEFECTS, NOT_EXECUTED, Outcome, judged
from harness.render.text import gist, line, one_line, ranks
from harness.results import memory
from harness.results.bound_ratios import in_words, ratio_text, ulp_text
from harness.results.defects import defect_words
from harness.results.explain.in_common import InCommon, rules
from harness.results.explain.words import title
from harness.results.level_table import MARKS, counts, legend, levels, many, rate, status, validity_table
from harness.results.reading_rows import MEANINGS
from harness.results.report import Report
from harness.results.summary import count
from harness.results.tables import Tables
from harness.results.tally import Tally

SHOWN = 8
EXPLAINED = 3
_BESIDE = 24
"""Columns that the words beside a number need."""
TONES = {"good": "bold green", "bad": "bold red", "warn": "bold yellow"}
_DEFECTS = 4
"""Known defects of each reading that have a line."""
_UNBOUNDED = 10_000
_TIED = "\N{NO-BREAK SPACE}"
_STYLES = {
    "none": "dim",
    "absent": "yellow",
    "pass": "green",
    "failing": "red",
    "known": "cyan",
    "partial": "yellow",
    "unjudged": "",
}


def render_terminal(report: Report, console: Console) -> None:
    """Print verdict, readings, unexpected results with their common facts, the known defects in a line each, and, for
    few operators, the level table with the remaining tables.

    Colour is the console's affair.
    """
    tables = report.tables
    summary = report.summary
    indented(console, f"{summary.mark} {summary.sentence}  {summary.where}", TONES[summary.tone], 0)
    if summary.ran:
        indented(console, " · ".join(line(each, 400) for each in summary.ran), "dim")
    _readings(report, console)
    for remark in summary.remarks:
        indented(console, line(remark, 400), "yellow")
    if short := [note.short for note in summary.notes if note.short]:
        indented(console, f"{'; '.join(short)}: report.md says why.", "dim")
    for problem in tables.problems:
        indented(console, f"expectation: {line(problem, 400)}", "red")
    _unexpected(tables, console)
    _in_common(report.common, console)
    _defects(report, console)
    if not many(tables):
        console.print()
        columns = levels(tables) if report.lowers_to_directml else []
        whole = _fits(by_level := _levels(report, columns), console)
        console.print(by_level if whole else _levels(report, []))
        by = (
            " by the feature level that first allows them"
            if whole
            else "; the report has them by feature level"
        )
        console.print(Text(f"correct / selected valid cases{by if columns else ''}", style="dim"))
        shown = (tally for row in report.levels for tally in (*row.by_level.values(), row.total))
        indented(console, legend(shown), "dim", 0)
        _others(report, console)
        _nearness(tables, console)
    _differences(tables, console)
    _disagreements(report, console)


def _readings(report: Report, console: Console) -> None:
    """Print a line for each reading: its numbers on each target, or their sum if they do not fit, and
    remarks."""
    rows = report.readings
    if not rows:
        return
    targets = report.tables.targets
    several = len(targets) > 1
    heads = [*targets, "all"] if several else []
    cells = [[row.by_target[target] for target in targets] if several else [] for row in rows]
    numbers = [[f"{number:,}" for number in [*of, row.number]] for of, row in zip(cells, rows, strict=True)]
    width = max(len(row.reading.value) for row in rows)
    widths = [max(map(len, column)) for column in zip(*numbers, *([heads] if several else []), strict=True)]
    if several and 2 + width + sum(widths) + 2 * len(widths) > console.width:
        heads, numbers, widths = [], [each[-1:] for each in numbers], widths[-1:]
    if heads:
        shown = "".join(f"  {line(name, 80):>{wide}}" for name, wide in zip(heads, widths, strict=True))
        console.print(Text(f"  {'':{width}}{shown}", style="bold"), soft_wrap=True)
    for row, each in zip(rows, numbers, strict=True):
        columns = "".join(f"  {number:>{wide}}" for number, wide in zip(each, widths, strict=True))
        red = f"{row.unexpected:,} unexpected" if row.unexpected else ""
        head = f"  {row.reading.value:{width}}{columns}"
        said = (
            Text(red, style="red").append("; " if red and row.detail else "").append(row.detail, style="dim")
        )
        lead, beside = f"{head}   ", console.width - len(head) - 3
        if beside < _BESIDE:
            console.print(Text(head), soft_wrap=True)
            lead, beside = "    ", console.width - 4
        _hanging(Text(lead), said, beside, console)
    meanings = (f"{row.reading.value}: {MEANINGS[row.reading]}".replace(" ", _TIED) for row in rows)
    for meaning in wrap(" · ".join(meanings), console.width - 2):
        console.print(Text(f"  {meaning}".replace(_TIED, " "), style="dim"), soft_wrap=True)


def indented(console: Console, text: str, style: str = "", indent: int = 2) -> None:
    """Print a text that is indented as a whole, also where it is broken."""
    _hanging(Text(" " * indent), Text(text, style=style), max(20, console.width - indent), console)


def _hanging(lead: Text, text: Text, width: int, console: Console) -> None:
    """Print a text of this width beside what leads it, also where it is broken."""
    for part in text.wrap(console, width) if text else [text]:
        part.rstrip()
        console.print(lead + part if part else Text(lead.plain.rstrip()), soft_wrap=True)
        lead = Text(" " * len(lead))


def _title(text: str, console: Console) -> None:
    console.print()
    console.print(Text(text, style="bold"))


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
    _title("what they have in common", console)
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
    if bound:
        return f"error {error:.3g}, {error / bound:,.3g} × its bound"
    return f"error {error:.3g} where none is admissible"


def details(result: Result) -> list[str]:
    """Return the known facts beside the outcome."""
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
    if isinstance(result.sampled, tuple):
        words.append(f"{result.sampled[0]:,} of {result.sampled[1]:,} elements judged")
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
    mark = "" if state in ("none", "pass") else f" {MARKS[state]}"
    return Text(rate(tally).replace(" / ", "/").replace(",", "") + mark, style=_STYLES[state])


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


def _defects(report: Report, console: Console) -> None:
    """Print a line for each known defect; unexpected results are printed above."""
    known = [row for row in report.defects if not row.unexpected]
    if not known:
        return
    _title(f"known defects: {defect_words(known)}", console)
    by_reading = [[row for row in known if row.reading is reading] for reading in DEFECTS]
    shown = [row for rows in by_reading for row in rows[:_DEFECTS]]
    width = max(len(f"{row.cases:,}") for row in shown)
    for row in shown:
        named = line(row.title if row.operator in row.title else f"{row.operator}: {row.title}", 200)
        said = named if row.everywhere or not row.state else f"{named}; {row.state}"
        said = f"{said}; {row.where}" if len(report.tables.targets) > 1 and row.where else said
        head = f"  {row.reading.value:8}  {row.cases:>{width},}  "
        _hanging(Text(head, style="dim"), Text(said), max(_BESIDE, console.width - len(head)), console)
    if more := len(known) - len(shown):
        console.print(Text(f"  and {more:,} more in the report", style="dim"))


def _nearness(tables: Tables, console: Console) -> None:
    rows = sorted(
        tables.nearnesses.rows(tables.targets), key=lambda row: (-row.all.ratio, row.operator, row.target)
    )
    if not rows:
        return
    _title("largest error / bound", console)
    for row in rows[:SHOWN]:
        near = row.all
        said = [f"{ratio_text(near.ratio)} ({row.worst}, {ulp_text(near.ulp)})"] if near.example else []
        said.append(f"{near.results:,} results")
        said += [f"{near.outside:,} wrong"] * bool(near.outside) + [f"{near.unclaimed:,} not judged"] * bool(
            near.unclaimed
        )
        indented(console, f"{one_line(row.operator)} on {one_line(row.target)}: {', '.join(said)}")
    if len(rows) > SHOWN:
        console.print(Text(f"  and {len(rows) - SHOWN:,} more in the report", style="dim"))


def _others(report: Report, console: Console) -> None:
    """Print the readings other than correct, of valid cases by operator and target and of the other validities."""
    rows = [(row.operator, row.target, "valid", row.total) for row in report.levels]
    rows += [
        (row.operator, row.target, row.validity.value, row.tally) for row in validity_table(report.tables)
    ]
    rows = [row for row in rows if row[-1].others()]
    if rows:
        _title("what is not correct", console)
    for operator, target, validity, tally in rows:
        indented(console, f"{operator} on {target}, {validity}: {counts(tally)}")


def _differences(tables: Tables, console: Console) -> None:
    groups = tables.differences.groups()
    if not groups:
        return
    _title(f"targets differ on {sum(group.number for group in groups):,} cases", console)
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
        places = count(len(rows), "group")
        _title(f"documented, registered and measured support disagree in {places}: see the report", console)
