"""Renders an explanation as Markdown for an issue, a pull request or a job summary."""

from __future__ import annotations

from collections.abc import Iterator

from harness.render.markdown import LIMIT, assemble
from harness.render.markup import code, escape
from harness.render.terminal import describe
from harness.render.text import line
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
from harness.results.summary import count, target_facts

_MARKS = {"good": "✓", "bad": "✗", "warn": "!"}


def render_explain_markdown(found: Explanation, *, limit: int = LIMIT) -> str:
    """Write the explanation; what does not fit in `limit` bytes is left out by whole lines and named at the
    end."""
    sections = [("the headline", _headline(found))]
    sections += [(f"group {number}", _group(group)) for number, group in enumerate(found.groups, start=1)]
    sections.append(("what ran where", _environment(found)))
    return assemble(sections, limit)


def _headline(found: Explanation) -> Iterator[str]:
    tone, sentence = headline(found)
    yield "# What the failures have in common" if found.base is None else "# What the changes have in common"
    yield ""
    yield f"**{_MARKS[tone]} {escape(sentence)}**"
    yield ""
    for remark in found.remarks:
        yield f"- {escape(line(remark, 600))}"
    if found.unexplained:
        yield f"- {count(found.unexplained, 'smaller group')} not explained: narrow with `-k`"
    if found.remarks or found.unexplained:
        yield ""


def _group(group: FailureGroup) -> Iterator[str]:
    yield f"## {escape(title(group))}"
    yield ""
    yield escape(describe(group.example))
    yield ""
    rules = group.separation.rules
    if len(rules) != 1 or not group.separation.exact or not group.population or group.all_changed:
        yield f"- {escape(verdict_of(group))}"
    if group.population:
        for rule in rules:
            yield f"- **{escape(statement(group, rule))}**"
            for remark in (*thresholds(rule), *inseparable(rule)):
                yield f"  - {escape(remark)}"
        if len(rules) > 1:
            yield f"- {elsewhere(group)}"
    for told in (differences(group), apart(group), cross_checked(group)):
        if told:
            yield f"- {escape(told)}"
    for how, ids, number in (
        ("fails", group.missed, len(group.separation.missed)),
        ("passes", group.wrong, len(group.separation.wrong)),
    ):
        for case in ids:
            yield f"- {how} all the same: {code(line(case, 400))}"
        if number > len(ids):
            yield f"- {how} all the same: {number - len(ids):,} more"
    yield f"- for instance {code(line(group.example.case, 400))}"
    yield ""


def _environment(found: Explanation) -> Iterator[str]:
    yield "## What ran where"
    yield ""
    for name, header in (("BASE ", found.base), ("HEAD " if found.base else "", found.header)):
        if header is None:
            continue
        for target, info in header.targets.items():
            facts = "; ".join(f"{fact} {escape(line(value, 400))}" for fact, value in target_facts(info))
            yield f"- {name}**{escape(target)}**: {facts}"
        yield f"- {name}run {code(header.run_id)}, seed {header.seed}, command {code(line(header.command, 400))}"
    yield ""
