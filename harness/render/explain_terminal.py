"""Renders an explanation in the terminal; made for 80 columns."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from harness.render.terminal import TONES, describe, indented
from harness.render.text import line, one_line, visible
from harness.results.explain.explanation import Explanation
from harness.results.explain.failures import FailureGroup
from harness.results.explain.words import (
    apart,
    cross_checked,
    differences,
    elsewhere,
    headline,
    inseparable,
    statement,
    thresholds,
    title,
    verdict_of,
)
from harness.results.summary import count

_MARKS = {"good": "✓", "bad": "✗", "warn": "!"}
SHOWN_EXCEPTIONS = 3


def render_explain_terminal(found: Explanation, console: Console) -> None:
    """Print the headline, then each group with its rules, their counts, and what they cannot tell apart."""
    tone, sentence = headline(found)
    console.print(Text(f"{_MARKS[tone]} {sentence}", style=TONES[tone]))
    for remark in found.remarks:
        indented(console, line(remark, 400), "yellow")
    for group in found.groups:
        _group(group, console)
    if found.unexplained:
        console.print()
        console.print(
            Text(f"{count(found.unexplained, 'smaller group')} not explained: narrow with -k", style="yellow")
        )


def _group(group: FailureGroup, console: Console) -> None:
    console.print()
    console.print(Text(one_line(title(group)), style="bold"))
    _line(console, describe(group.example), "dim")
    if told := differences(group):
        _line(console, told, "dim")
    rules = group.separation.rules
    if len(rules) != 1 or not group.separation.exact or not group.population or group.all_changed:
        _line(console, verdict_of(group), "yellow")
    if group.population:
        for rule in rules:
            _line(console, statement(group, rule), "")
            for remark in (*thresholds(rule), *inseparable(rule)):
                _line(console, remark, "dim", 4)
        if len(rules) > 1:
            _line(console, elsewhere(group), "")
    if told := apart(group):
        _line(console, told, "dim")
    if told := cross_checked(group):
        _line(console, told, "")
    _exceptions(console, "fails all the same", group.missed, len(group.separation.missed))
    _exceptions(console, "passes all the same", group.wrong, len(group.separation.wrong))
    console.print(Text(f"  {one_line(group.example.case)}"), soft_wrap=True)


def _exceptions(console: Console, how: str, ids: tuple[str, ...], number: int) -> None:
    for case in ids[:SHOWN_EXCEPTIONS]:
        console.print(Text(f"  {how}: {one_line(case)}", style="yellow"), soft_wrap=True)
    if number > SHOWN_EXCEPTIONS:
        _line(console, f"{how}: {number - SHOWN_EXCEPTIONS:,} more", "yellow")


def _line(console: Console, text: str, style: str, indent: int = 2) -> None:
    indented(console, visible(text), style, indent)
