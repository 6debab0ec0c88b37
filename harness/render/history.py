"""Renders a history as terminal text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.model.verdict import Reading
from harness.render.markup import code, escape, table
from harness.render.terminal import grid, indented
from harness.render.text import line, one_line
from harness.results.history.database import INVALID, Rate, RecordedResult
from harness.results.history.runs import HistoryRow, Moment, differing
from harness.results.history.summary import (
    History,
    did,
    explained,
    flipping,
    headline,
    seen,
    sentence,
    standing,
)

SCHEMA = 2
SHOWN = 20
_ROOM = 40
"""Columns of a terminal that rates may take; larger ones are written in two lines."""
RATES = "correct / judged valid cases, by the feature level that first allows them; invalid: the same of invalid cases"


def render_history_terminal(history: History, console: Console) -> None:
    """Print the counts by version and level, and the answers that were asked for; made for 80 columns."""
    console.print(Text(line(headline(history)), style="bold"))
    for remark in history.remarks:
        indented(console, line(remark, 400), "yellow")
    if history.since is None and history.flips is None:
        console.print()
        console.print(_counts(history))
        console.print(Text(RATES, style="dim"))
        console.print()
        console.print(_readings(history))
    if history.since is not None:
        _since(history, console)
    if history.flips is not None:
        _flips(history, console)


def _counts(history: History) -> Table:
    levels = history.levels
    invalid = ["invalid"] * history.has_invalid
    found = grid(
        "since", "runs", "version", *levels, "all", *invalid, right=(1, *range(3, 5 + len(levels))), gap=1
    )
    rates = {
        target: [
            (
                row,
                [
                    *(row.rates.get(level) for level in levels),
                    row.total,
                    *(row.rates.get(each) for each in invalid),
                ],
            )
            for row in rows
        ]
        for target, rows in history.rows.items()
    }
    widest = max(
        (len(rate(each)) for rows in rates.values() for _, cells in rows for each in cells), default=0
    )
    folded = widest * (len(levels) + 1 + len(invalid)) > _ROOM
    for target, rows in rates.items():
        found.add_row(Text(one_line(target), style="bold"))
        for row, cells in rows:
            facts = (line(row.first.when), f"{row.runs:,}", line(row.last.version, 40))
            found.add_row(*map(Text, facts), *(_cell(each, folded=folded) for each in cells))
    return found


def _readings(history: History) -> Table:
    """Return the six numbers of each row of the counts."""
    heads = [each.value for each in Reading]
    found = grid("since", "version", *heads, right=range(2, 2 + len(heads)), gap=1)
    for target, rows in history.rows.items():
        found.add_row(Text(one_line(target), style="bold"))
        for row in rows:
            numbers = (f"{row.last.point.readings[each]:,}" for each in Reading)
            found.add_row(*map(Text, (line(row.first.when), line(row.last.version, 20), *numbers)))
    return found


def rate(found: Rate | None) -> str:
    """Write a rate; a dash where nothing is judged."""
    return f"{found.correct}/{found.judged}" if found and found.judged else "–"


def _cell(found: Rate | None, *, folded: bool) -> Text:
    if found is None or not found.judged:
        return Text("–", style="dim")
    written = rate(found).replace("/", "\n/") if folded else rate(found)
    return Text(written, style="green" if found.correct == found.judged else "")


def _since(history: History, console: Console) -> None:
    console.print()
    console.print(Text(one_line(history.asked)), soft_wrap=True)
    console.print(Text(standing(history), style="bold"))
    for group in (history.since or [])[:SHOWN]:
        finding = group.finding
        console.print()
        head = f"{group.number:,} × {one_line(group.cases)} ({finding.validity.value}) on {one_line(finding.target)}"
        console.print(Text(head, style="bold"))
        console.print(
            _indented(Text(line(sentence(finding), 400), style="green" if finding.until else "red"))
        )
        was = f"{did(finding.before)} → " if finding.before else ""
        runs = " → ".join(
            moment.run_id for moment in (finding.last_good, finding.since, finding.until) if moment
        )
        for said in (f"{was}{did(finding.after)}", explained(finding), f"runs: {runs}"):
            if said:
                console.print(_indented(Text(line(said, 400), style="dim")))
        if group.example != history.asked:
            console.print(Text(f"  {one_line(group.example)}"), soft_wrap=True)
    if len(history.since or []) > SHOWN:
        console.print(
            Text(f"and {len(history.since or []) - SHOWN:,} more groups: see --format html", style="dim")
        )
    if history.story:
        console.print()
        console.print(Text("what changed", style="bold"))
        found = grid("target", "since", "version", "outcome")
        for target, moment, what in _story(history):
            found.add_row(*(Text(line(text)) for text in (target, moment.when, moment.version, did(what))))
        console.print(found)


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 2), expand=False)


def _story(history: History) -> Iterable[tuple[str, Moment, RecordedResult]]:
    return (
        (target, moment, what) for target, turns in (history.story or {}).items() for moment, what in turns
    )


def _flips(history: History, console: Console) -> None:
    console.print()
    console.print(Text(flipping(history), style="bold"))
    for flip in (history.flips or [])[:SHOWN]:
        console.print()
        console.print(
            Text(
                f"{flip.changes:,} changes in {flip.runs:,} runs on {one_line(flip.target)} ({line(flip.version)})",
                style="bold",
            )
        )
        console.print(_indented(Text(line(seen(flip)), style="dim")))
        console.print(Text(f"  {one_line(flip.case)}"), soft_wrap=True)
    if history.flips_number > SHOWN:
        console.print(Text(f"and {history.flips_number - SHOWN:,} more: see --format html", style="dim"))


def render_history_markdown(history: History) -> str:
    """Write the same as Markdown."""
    lines = [f"**{escape(headline(history))}**", ""]
    lines += [f"- {escape(remark)}" for remark in history.remarks]
    lines += [""] * bool(history.remarks)
    if history.since is not None:
        lines += ["## Since when", "", code(history.asked), "", escape(standing(history)), ""]
        lines += table(
            ("cases", "target", "on", "finding", "outcome", "for example"),
            (
                (
                    f"{group.number:,}",
                    escape(group.finding.target),
                    escape(f"{group.cases} ({group.finding.validity.value})"),
                    escape("; ".join(filter(None, (sentence(group.finding), explained(group.finding))))),
                    escape(" → ".join(filter(None, (did(group.finding.before), did(group.finding.after))))),
                    code(group.example),
                )
                for group in history.since
            ),
            right=(0,),
        )
    if history.story:
        told = (
            (escape(target), escape(moment.when), escape(moment.version), did(what))
            for target, moment, what in _story(history)
        )
        lines += table(("target", "since", "version", "outcome"), told)
    if history.flips is not None:
        lines += ["## Flips", "", escape(flipping(history)), ""]
        if history.flips:
            flips = (
                (
                    f"{flip.changes:,}",
                    f"{flip.runs:,}",
                    escape(flip.target),
                    escape(flip.version),
                    escape(seen(flip)),
                    code(flip.case),
                )
                for flip in history.flips
            )
            lines += table(("changes", "runs", "target", "version", "outcomes", "case"), flips, right=(0, 1))
    lines += ["## By version and level", "", f"{RATES[0].upper()}{RATES[1:]}.", ""]
    heads = (
        "target",
        "since",
        "runs",
        "version",
        *map(escape, history.levels),
        "all",
        *(["invalid"] * history.has_invalid),
        *(each.value for each in Reading),
    )
    counted = (
        (
            escape(target),
            escape(row.first.when),
            f"{row.runs:,}",
            escape(row.last.version),
            *(rate(row.rates.get(level)) for level in history.levels),
            rate(row.total),
            *([rate(row.rates.get(INVALID))] * history.has_invalid),
            *(f"{row.last.point.readings[each]:,}" for each in Reading),
        )
        for target, found in history.rows.items()
        for row in found
    )
    lines += table(heads, counted, right=(2, *range(4, len(heads))))
    return "\n".join(lines)


def render_history_json(history: History) -> str:
    """Write the same, complete, as one JSON document."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "remarks": history.remarks,
        "counts": [_row(target, row) for target, found in history.rows.items() for row in found],
    }
    if history.since is not None:
        document |= {"asked": history.asked, "standing": history.stand}
        document["since"] = [
            {
                "target": group.finding.target,
                "operator": group.operator,
                "validity": group.finding.validity,
                "number": group.number,
                "example": group.example,
                "since": _moment(group.finding.since),
                "last_good": _moment(group.finding.last_good),
                "until": _moment(group.finding.until),
                "before": _did(group.finding.before),
                "after": _did(group.finding.after),
                "differs": differing(*group.finding.turn) if group.finding.turn else [],
            }
            for group in history.since
        ]
    if history.story is not None:
        document["changes"] = [
            {"target": target, "at": _moment(moment), "did": _did(what)}
            for target, moment, what in _story(history)
        ]
    if history.flips is not None:
        document["flips_number"] = history.flips_number
        document["flips"] = [
            {
                "target": flip.target,
                "case": flip.case,
                "version": flip.version,
                "changes": flip.changes,
                "runs": flip.runs,
                "seen": [{**_did(what), "runs": number} for what, number in flip.seen],
            }
            for flip in history.flips
        ]
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _row(target: str, row: HistoryRow) -> dict[str, Any]:
    rates = {level: found._asdict() for level, found in row.rates.items()}
    ends = {"first": _moment(row.first), "last": _moment(row.last)}
    readings = {each.value: row.last.point.readings[each] for each in Reading}
    return {
        "target": target,
        **ends,
        "runs": row.runs,
        "levels": rates,
        "all": row.total._asdict(),
        "readings": readings,
    }


def _moment(moment: Moment | None) -> dict[str, Any] | None:
    if moment is None:
        return None
    info = moment.point.info
    return {
        "run_id": moment.run_id,
        "target": moment.point.target,
        "onnxruntime": info.onnxruntime,
        "directml": info.directml,
    }


def _did(what: RecordedResult | None) -> dict[str, Any]:
    return {} if what is None else {"outcome": what.outcome, "error_class": what.error or None}
