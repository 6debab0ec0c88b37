"""`harness history`: shows how results change over many runs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.commands.error_line import fail
from harness.commands.options import RunsPath, flag, targets_option
from harness.commands.renderings import Renderings
from harness.model.errors import NothingRan, UsageError
from harness.model.query import Query, parse_all
from harness.render.history import history_data, history_document
from harness.render.history_chart import render_history_svg
from harness.render.text import visible
from harness.results.history.findings import all_flips, changes, groups_of
from harness.results.history.recorded import RecordedRuns
from harness.results.history.runs import collect, find_runs, timelines
from harness.results.history.summary import History, limits

RENDERINGS = Renderings(history_document, history_data, svg=render_history_svg)


@click.command("history")
@click.argument("runs", nargs=-1, required=True, type=RunsPath(), metavar="DIR...")
@click.option("--case", metavar="ID", help="Show since when this case fails.")
@click.option(
    "-k", "--query", "queries", multiple=True, metavar="QUERY", help="Show since when matching cases fail."
)
@flag("--flips", "asks_flips", help="Show which cases change back and forth while nothing else changes.")
@targets_option("Only this target, as the runs name it.")
@flag("--by-release", help="Treat cpu@ort-1.24.2 and cpu as one target; order by release, not by run.")
@RENDERINGS.options
def history(
    runs: tuple[Path | str, ...],
    case: str | None,
    queries: tuple[str, ...],
    asks_flips: bool,
    targets: tuple[str, ...],
    by_release: bool,
    format_: str,
    output: Path | None,
) -> None:
    """Show pass counts by version and level of all runs in DIR..., since when cases fail, and which flip.

    Exit code 2: a run is damaged and was left out, or is present twice; 4: there is no run, none has the
    case or target, or, after the output, a run is incomplete.
    """
    if case is not None and queries:
        raise UsageError("--case and -k ask the same: give one of them")
    parsed = parse_all(queries)
    files = find_runs(runs)
    with RecordedRuns() as recorded:
        left_out = collect(recorded, files)
        for error in left_out:
            click.echo(f"harness: left out: {visible(str(error))}", err=True)
        if left_out and not recorded.points():
            sys.exit(UsageError.exit_code)
        found = answer(recorded, case, parsed, asks_flips, targets, by_release)
    RENDERINGS.show(found, format_, output)
    end(left_out, found)


def end(left_out: list[UsageError], found: History) -> None:
    """End the process where not every run was read, or one is incomplete."""
    if left_out:
        sys.exit(UsageError.exit_code)
    if names := sorted({moment.run_id for moment in found.moments if not moment.point.whole}):
        fail(f"incomplete: {', '.join(names)}", NothingRan.exit_code)


def answer(
    recorded: RecordedRuns,
    case: str | None = None,
    queries: tuple[Query, ...] = (),
    asks_flips: bool = False,
    targets: tuple[str, ...] = (),
    by_release: bool = False,
) -> History:
    """Query the recorded runs. Errors: NothingRan if no run has such a target or case."""
    points = recorded.points()
    if not points:
        raise NothingRan("no run is there")
    if unknown := sorted(set(targets) - {point.target for point in points}):
        raise NothingRan(
            f"no run has the target {', '.join(unknown)}; there are: {', '.join(sorted({point.target for point in points}))}"
        )
    lines = timelines(
        [point for point in points if not targets or point.target in targets], by_release=by_release
    )
    made = History(lines, tuple(limits(lines)), operators=recorded.operators() if len(points) > 1 else {})

    def wanted(name: str) -> bool:
        return (case is None or name == case) and (
            not queries or any(query.matches(name) for query in queries)
        )

    if case is not None or queries:
        groups, stand = groups_of(recorded, lines, wanted, case)
        if not stand:
            raise NothingRan(
                f"no run has the case {case}" if case else f"no run has a case that matches {_asked(queries)}"
            )
        made = made._replace(asked=case or _asked(queries), since=groups, stand=stand)
    if case is not None:
        by_run = next(by_run for _, by_run in recorded.results(wanted, case))
        made = made._replace(story={target: changes(moments, by_run) for target, moments in lines.items()})
    if asks_flips:
        flips, number = all_flips(recorded, lines, wanted, case)
        made = made._replace(flips=flips, flips_number=number)
    return made


def _asked(queries: tuple[Query, ...]) -> str:
    return " or ".join(query.text for query in queries)
