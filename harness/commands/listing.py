"""`harness list`: lists the cases that a query selects, as ids or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.commands.options import QUERIES, SPECS, flag
from harness.model.progress import PLANNING, telling
from harness.render.text import json_text

if TYPE_CHECKING:
    from harness.model.case import Case
    from harness.specs.selection import Selection


@click.command("list")
@SPECS
@QUERIES
@flag("--json", "as_json", help="Print each case in full, one JSON object per line.")
@flag("--count", help="Print only the number of cases, and of combinations left out, with the reasons.")
@flag("--all", "everything", help="List the whole product of each sweep, as `run --select all` runs it.")
@flag(
    "--thorough",
    help="List triples of factors where a spec covers pairs, as `run --select thorough` runs them.",
)
def list_(
    specs: tuple[Path, ...],
    queries: tuple[str, ...],
    as_json: bool,
    count: bool,
    everything: bool,
    thorough: bool,
) -> None:
    """List the ids of the cases that a query selects."""
    from harness.specs.cache import kept_answers

    question = "list --count"
    everywhere = count and not (specs or queries or everything or thorough)
    if everywhere and (said := kept_answers.answer(question)) is not None:
        click.echo(said)
        return
    from harness import api

    with telling(PLANNING, when=not specs and not queries) as tell:
        selection = api.load(specs, queries, everything=everything, thorough=thorough, progress=tell)
    found = lines(selection, as_json=as_json, count=count)
    if everywhere:
        found = iter([kept_answers.keep(question, "\n".join(found))])
    for line in found:
        click.echo(line)


def lines(selection: Selection, *, as_json: bool, count: bool) -> Iterator[str]:
    """Yield the lines to print of a selection."""
    if not count:
        for case in selection:
            yield _json(case) if as_json else case.id
        return
    from harness.results.summary import count as tally
    from harness.specs.selection import NOT_ASKED

    total, left_out = selection.counted()
    yield tally(total, "case")
    for reason, number in sorted(left_out.items(), key=lambda each: each[0] != NOT_ASKED):
        yield f"{tally(number, 'case' if reason == NOT_ASKED else 'combination')} left out: {reason}"


def _json(case: Case) -> str:
    stated = ("operator", "opset", "attributes", "inputs", "options", "validity", "rule", "source", "levels")
    return json_text({"case": case.id} | {name: getattr(case, name) for name in stated})
