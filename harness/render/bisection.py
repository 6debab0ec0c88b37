"""Renders a bisection as terminal text, Markdown and JSON."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from harness.render.markup import code, escape, table
from harness.render.terminal import grid, indented
from harness.render.text import gist, line, visible
from harness.results.bisection.search import SIGNATURE, By, ReleaseChange
from harness.results.bisection.summary import ReleaseRow, Searched, moves, remarks, rows, sentence

SCHEMA = 1
_DETAIL = 160


def render_bisection_terminal(searched: Searched, console: Console) -> None:
    """Print the finding, what limits it, and a table release × outcome; made for 80 columns."""
    found = searched.found
    console.print(Text(visible(sentence(searched)), style="bold"))
    for remark in remarks(searched):
        indented(console, line(remark, 400), "yellow")
    console.print()
    console.print(
        Text(visible(searched.single or f"{len(searched.cases):,} cases: {searched.asked}")), soft_wrap=True
    )
    if searched.single is not None:
        output = grid(searched.over, "outcome", "", "what happened")
        for row in rows(searched):
            output.add_row(
                row.version, _outcome(row), Text(row.change, style="bold"), Text(_detail(row), style="dim")
            )
    else:
        output = grid(searched.over, "ran", "fail", "outcomes", "against the release above", right=(1, 2))
        for row in rows(searched):
            if row.skipped:
                output.add_row(
                    row.version, "", "", Text("skip", style="yellow"), Text(_detail(row), style="dim")
                )
                continue
            failing = Text(f"{row.failing:,}", style="red" if row.failing else "green")
            output.add_row(
                row.version,
                f"{row.ran:,}",
                failing,
                _plain(row),
                Text(row.change, style="bold"),
            )
    console.print(output)
    console.print(Text(f"{len(found.measured)} of {len(found.versions)} releases measured", style="dim"))


def render_bisection_markdown(searched: Searched) -> str:
    """Write the same as Markdown."""
    shown = (
        code(searched.single)
        if searched.single is not None
        else f"{len(searched.cases):,} cases: {code(searched.asked)}"
    )
    lines = [f"**{escape(sentence(searched))}**", "", shown, ""]
    if searched.single is not None:
        heads = (searched.over, "outcome", "", "what happened")
        lines += table(
            heads, ((row.version, _plain(row), row.change, escape(_detail(row))) for row in rows(searched))
        )
    else:
        wide = (searched.over, "ran", "fail", "outcomes", "against the release above")
        numbers = ((row, (f"{row.ran:,}", f"{row.failing:,}")) for row in rows(searched))
        lines += table(
            wide,
            ((row.version, *two, _plain(row), row.change or escape(_detail(row))) for row, two in numbers),
            right=(1, 2),
        )
    lines += [f"{len(searched.found.measured)} of {len(searched.found.versions)} releases measured.", ""]
    lines += [f"- {escape(remark)}" for remark in remarks(searched)]
    return "\n".join(lines).rstrip("\n") + "\n"


def render_bisection_json(searched: Searched) -> str:
    """Write one document: keys are stable within a schema, new ones may be added."""
    found = searched.found
    document = {
        "schema": SCHEMA,
        "over": searched.over,
        "target": searched.target,
        "asked": searched.asked,
        "by": found.by,
        "cases": searched.cases,
        "summary": sentence(searched),
        "remarks": remarks(searched),
        "first": found.first.after.version if found.first else None,
        "changes": [_change(change, found.by) for change in found.changes],
        "returning": found.returning,
        "versions": found.versions,
        "measured": [
            {
                "version": measured.version,
                "skipped": measured.skipped or None,
                "left_out": measured.left_out,
                "ran": len(measured.seen),
                "outcomes": dict(row.outcomes),
                "not_conforming": {
                    case: seen.outcome.value
                    for case, seen in sorted(measured.seen.items())
                    if seen.failure is not None
                },
            }
            for measured, row in zip(found.measured, rows(searched), strict=True)
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def _change(change: ReleaseChange, by: By) -> dict[str, Any]:
    worse, better, other = moves(change)
    cases = {
        case: {
            side: measured.seen[case].outcome.value
            for side, measured in (("before", change.before), ("after", change.after))
        }
        | {
            f"{side}_signature": str(measured.seen[case].signature)
            for side, measured in (("before", change.before), ("after", change.after))
            if by == SIGNATURE
        }
        for case in change.cases
    }
    return {
        "before": change.before.version,
        "after": change.after.version,
        "skipped": change.skipped,
        "fail_anew": worse,
        "fail_no_longer": better,
        "otherwise": other,
        "cases": cases,
    }


def _outcome(row: ReleaseRow) -> Text:
    return Text(_plain(row), style="yellow" if row.skipped else "red" if row.failing else "green")


def _plain(row: ReleaseRow) -> str:
    if row.skipped:
        return "skip"
    return (
        row.outcomes[0][0]
        if row.ran == 1
        else ", ".join(f"{name} {number:,}" for name, number in row.outcomes)
    )


def _detail(row: ReleaseRow) -> str:
    if row.skipped:
        return line(row.skipped, _DETAIL)
    return ": ".join(filter(None, (visible(row.error), gist(row.message, _DETAIL))))
