"""A history as a document, and as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harness.model.verdict import Reading
from harness.render.document import (
    Block,
    Document,
    Item,
    Items,
    Paragraph,
    Picture,
    Remark,
    Row,
    Section,
    Span,
    Style,
    Table,
)
from harness.render.history_chart import render_history_svg, sparkline
from harness.results.history.findings import FindingGroup, Flip
from harness.results.history.recorded import INVALID, Rate, RecordedResult
from harness.results.history.runs import HistoryRow, Moment, differing
from harness.results.history.summary import (
    History,
    explained,
    flipping,
    headline,
    result_text,
    seen,
    sentence,
    standing,
)

SCHEMA = 2
_ROWS = 2000
"""Rows of each target's table, the newest ones."""
_RATES = "Correct / judged valid cases, by the feature level that first allows them; invalid: the same of invalid cases."
_COURSES = (
    "Correct results, of those that are judged, over the runs: the line goes from none at the bottom to all at the top. "
    "What changed comes first."
)


def history_document(history: History) -> Document:
    """Show the requested answers, the counts by version and level, and each operator's course."""
    asked = history.since is not None or history.flips is not None
    counts = Section(
        "counts",
        "By version and level",
        [
            Picture(render_history_svg(history)),
            Paragraph(Span(_RATES, "soft")),
            _counts(history),
            _readings(history),
        ],
        ("markdown", "html") if asked else ("terminal", "markdown", "html"),
    )
    sections = [*_since(history), *_flips(history), counts, *_courses(history)]
    return Document("", headline(history), sections, history.remarks)


def _counts(history: History) -> Table:
    levels = [*history.levels, "", *([INVALID] * history.has_invalid)]
    rows: list[Row] = [
        (
            target,
            row.first.when,
            f"{row.runs:,}",
            row.last.version,
            *(_rate(row.rates.get(level) if level else row.total) for level in levels),
        )
        for target, found in history.rows.items()
        for row in found[-_ROWS:]
    ]
    heads = ("target", "since", "runs", "version", *(level or "all" for level in levels))
    return Table(heads, rows, (2, *range(4, len(heads))), grouped=True)


def _readings(history: History) -> Table:
    """Return the six numbers of each row of the counts."""
    rows = [
        (
            target,
            row.first.when,
            row.last.version,
            *(f"{row.last.point.readings[each]:,}" for each in Reading),
        )
        for target, found in history.rows.items()
        for row in found[-_ROWS:]
    ]
    heads = ("target", "since", "version", *(each.value for each in Reading))
    return Table(heads, rows, range(3, len(heads)), grouped=True)


def _rate(found: Rate | None) -> Span:
    """Write a rate; a dash where nothing is judged."""
    if found is None or not found.judged:
        return Span("–", "soft")
    return Span(f"{found.correct:,}/{found.judged:,}", "good" if found.correct == found.judged else "")


def _since(history: History) -> Iterator[Section]:
    if history.since is None:
        return
    asked: list[Block] = [
        Paragraph(Span(history.asked, code=True)),
        Paragraph(Span(standing(history), "bold")),
    ]
    yield Section("since", "Since when", [*asked, Items([_group(history, group) for group in history.since])])
    if history.story:
        rows = [
            (target, moment.when, moment.version, result_text(what))
            for target, moment, what in _story(history)
        ]
        table = Table(("target", "since", "version", "outcome"), rows[-_ROWS:], grouped=True)
        yield Section("story", "What changed", [table])


def _group(history: History, group: FindingGroup) -> Item:
    finding = group.finding
    turn = " → ".join(filter(None, (result_text(finding.before), result_text(finding.after))))
    runs = " → ".join(moment.run_id for moment in (finding.last_good, finding.since, finding.until) if moment)
    style: Style = "good" if finding.until else "bad"
    remarks = [Remark(sentence(finding), style)]
    remarks += [Remark(words, "soft") for words in (turn, explained(finding), f"runs: {runs}") if words]
    head = f"{group.number:,} × {group.cases} ({finding.validity.value}) on {finding.target}"
    return Item(head, remarks, group.example if group.example != history.asked else "")


def _story(history: History) -> Iterable[tuple[str, Moment, RecordedResult]]:
    return (
        (target, moment, what) for target, turns in (history.story or {}).items() for moment, what in turns
    )


def _flips(history: History) -> Iterator[Section]:
    if history.flips is None:
        return
    blocks: list[Block] = [
        Paragraph(Span(flipping(history), "bold")),
        Items([_flip(flip) for flip in history.flips]),
    ]
    if more := history.flips_number - len(history.flips):
        blocks.append(Paragraph(Span(f"and {more:,} more", "soft")))
    yield Section("flips", "Flips", blocks)


def _flip(flip: Flip) -> Item:
    head = f"{flip.changes:,} changes in {flip.runs:,} runs on {flip.target} ({flip.version})"
    return Item(head, [Remark(seen(flip), "soft")], flip.case)


def _courses(history: History) -> Iterator[Section]:
    courses = history.courses()
    if not courses:
        return
    rows: list[Row] = [
        (
            course.operator,
            *(
                _rate(rates[-1])._replace(picture=sparkline(rates))
                if (rates := course.by_target.get(target))
                else "–"
                for target in history.lines
            ),
        )
        for course in courses[:_ROWS]
    ]
    table = Table(("operator", *history.lines), rows, range(1, 1 + len(history.lines)))
    yield Section("operators", "By operator", [Paragraph(Span(_COURSES, "soft")), table], ("html",))


def history_data(history: History) -> dict[str, Any]:
    """Return the JSON document: keys are stable within a schema, new ones may be added."""
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
                "before": _result(group.finding.before),
                "after": _result(group.finding.after),
                "differs": differing(*group.finding.turn) if group.finding.turn else [],
            }
            for group in history.since
        ]
    if history.story is not None:
        document["changes"] = [
            {"target": target, "at": _moment(moment), "did": _result(what)}
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
                "seen": [{**_result(what), "runs": number} for what, number in flip.seen],
            }
            for flip in history.flips
        ]
    return document


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


def _result(what: RecordedResult | None) -> dict[str, Any]:
    return {} if what is None else {"outcome": what.outcome, "error_class": what.error or None}
