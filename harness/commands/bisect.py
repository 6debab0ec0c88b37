"""`harness bisect`: finds the release in which the behaviour of a case, or of any case of a query, changes."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click

from harness.commands.options import (
    flag,
    jobs_option,
    seed_option,
    specs_option,
    target_option,
    timeout_option,
)
from harness.commands.renderings import Renderings
from harness.commands.report import writable
from harness.compile.prepare import refusal
from harness.model.case import Case
from harness.model.errors import NothingRan, TargetUnavailable
from harness.model.query import Query
from harness.render.bisection import bisection_data, bisection_document
from harness.results.bisection.search import OUTCOME, SIGNATURE, By, Measured, bisect
from harness.results.bisection.summary import Searched
from harness.results.summary import count
from harness.run.folders import processors
from harness.targets.registry import parse_target
from harness.triage.bisection import AXES, axis, measure

UNCHANGED = 1
"""Exit code where nothing changes."""
RENDERINGS = Renderings(bisection_document, bisection_data)


@click.command("bisect")
@click.argument("asked", metavar="CASE")
@click.option(
    "--over",
    type=click.Choice(sorted(AXES)),
    default="onnxruntime",
    show_default=True,
    help="Package whose releases to search.",
)
@click.option(
    "--good",
    metavar="VERSION",
    help="The older end (default: the oldest release since 1.15 that can run CASE).",
)
@click.option(
    "--bad", metavar="VERSION", help="The newer end (default: the newest release that can run CASE)."
)
@flag("--all", "everything", help="Measure every release between the ends instead of a binary search.")
@click.option(
    "--by",
    type=click.Choice([OUTCOME, SIGNATURE]),
    default=OUTCOME,
    show_default=True,
    help="What changes: the outcome, or also stage, class of error and kind of difference.",
)
@target_option("cpu or dml, with options such as dml,device_id=1 (default: by --over).")
@specs_option("Spec files or folders with the cases.")
@jobs_option("Worker processes (default: the number of processors).")
@timeout_option("Time limit of a case in seconds.")
@seed_option("Seed of the inputs.")
@RENDERINGS.options
def bisect_command(
    asked: str,
    over: str,
    good: str | None,
    bad: str | None,
    everything: bool,
    by: By,
    target: str | None,
    specs: tuple[Path, ...],
    jobs: int | None,
    timeout: float,
    seed: int,
    format_: str,
    output: Path | None,
) -> None:
    """Find the release in which the behaviour of CASE changes.

    CASE is the id of a case, or a query: then the first release in which other cases fail, or fail in another
    way. Exit code 0: found; 1: nothing changes between the ends; 3: no release can run it; 4: no case
    matches.
    """
    writable(output)
    query = Query.parse(asked)
    try:  # before the cases, since an end that is wrong is told at once
        releases = axis(over, target, good, bad)
    except TargetUnavailable:
        _expressible(_cases(specs, query), AXES[over])  # a wrong argument comes before what the machine lacks
        raise
    cases, left_out = _expressible(_cases(specs, query), AXES[over])

    def tell(version: str) -> Measured:
        measured = measure(releases, version, cases, jobs=jobs or processors(), timeout=timeout, seed=seed)
        failing = (
            f"{measured.failing():,} of {len(measured.seen):,} fail"
            if len(cases) > 1
            else "".join(seen.outcome.value for seen in measured.seen.values())
        )
        print(
            f"{version}: {'skipped: ' + measured.skipped if measured.skipped else failing}",
            file=sys.stderr,
            flush=True,
        )
        return measured

    found = bisect(releases.versions, tell, everything=everything, by=by)
    if not found.ran:
        newest = found.measured[-1]
        raise TargetUnavailable(
            f"none of {len(found.measured)} releases can run it; {newest.version}: {newest.skipped}"
        )
    name = f"{releases.head}{releases.options}"
    searched = Searched(
        over,
        name,
        query.text,
        tuple(case.id for case in cases),
        found,
        tuple(filter(None, [releases.remark, left_out])),
    )
    RENDERINGS.show(searched, format_, output)
    sys.exit(0 if found.changes else UNCHANGED)


def _cases(specs: tuple[Path, ...], query: Query) -> list[Case]:
    """Return the case with exactly this id, or all cases that the query selects. Errors: NothingRan, with a
    hint."""
    from harness import api

    selection = api.load(specs, [query.text])
    cases = [case for valid in (True, False) for case in selection.cases(valid=valid)]
    return [case for case in cases if case.id == query.text] or cases


def _expressible(cases: list[Case], head: str) -> tuple[list[Case], str]:
    """Leave out what the provider's API cannot express, and say how many that are and why; NothingRan where
    that is all."""
    provider = parse_target(head).provider
    kept, why = [], Counter[str]()
    for case in cases:
        refused = refusal(case, provider)
        if refused is None:
            kept.append(case)
        else:
            why[refused] += 1
    said = "; ".join(f"{count(number, 'case')} left out: {reason}" for reason, number in why.items())
    if not kept:
        raise NothingRan(f"nothing to bisect on {head}: {said}")
    return kept, said
