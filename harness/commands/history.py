"""`harness history`: shows how results change over many runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from harness.commands.error_line import fail
from harness.commands.named_path import NamedPath
from harness.commands.renderings import Renderings
from harness.model.errors import NothingRan, UsageError
from harness.model.query import Query, parse_all
from harness.render.history import history_data, history_document
from harness.render.history_chart import render_history_svg
from harness.render.text import visible
from harness.results.history.database import HistoryDatabase, NoHistory
from harness.results.history.findings import all_flips, changes, groups_of
from harness.results.history.runs import find_runs, timelines
from harness.results.history.summary import History, limits
from harness.results.runfile import RunReader

RENDERINGS = Renderings(history_document, history_data, svg=render_history_svg)


@click.command("history")
@click.argument("runs", nargs=-1, type=NamedPath(), metavar="DIR...")
@click.option(
    "--db",
    type=NamedPath(dir_okay=False),
    metavar="FILE",
    help="Keep the runs in this file, and add new ones.",
)
@click.option("--case", metavar="ID", help="Show since when this case fails.")
@click.option(
    "-k", "--query", "queries", multiple=True, metavar="QUERY", help="Show since when matching cases fail."
)
@click.option(
    "--flips",
    "asks_flips",
    is_flag=True,
    help="Show which cases change back and forth while nothing else changes.",
)
@click.option(
    "-t",
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    help="Only this target, as the runs name it.",
)
@click.option(
    "--by-release",
    is_flag=True,
    help="Treat cpu@ort-1.24.2 and cpu as one target; order by release, not by run.",
)
@RENDERINGS.options
def history(
    runs: tuple[Path, ...],
    db: Path | None,
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
    if not runs and db is None:
        raise UsageError("name runs, folders with runs, or with --db FILE a history made earlier")
    if case is not None and queries:
        raise UsageError("--case and -k ask the same: give one of them")
    if not runs and db is not None and not db.exists():
        raise UsageError(f"{db}: does not exist; name the runs to make it of")
    parsed = parse_all(queries)
    files = find_runs(runs) if runs else []
    with HistoryDatabase(db) as database:
        left_out = collect(database, files)
        for error in left_out:
            click.echo(f"harness: left out: {visible(str(error))}", err=True)
        if left_out and not database.points():
            sys.exit(UsageError.exit_code)
        found = answer(database, case, parsed, asks_flips, targets, by_release)
    RENDERINGS.show(found, format_, output)
    end(left_out, found)


def end(left_out: list[UsageError], found: History) -> None:
    """End the process where not every run was read, or one is incomplete."""
    if left_out:
        sys.exit(UsageError.exit_code)
    if names := sorted({moment.run_id for moment in found.moments if not moment.point.whole}):
        fail(f"incomplete: {', '.join(names)}", NothingRan.exit_code)


def collect(
    database: HistoryDatabase,
    files: list[Path],
    read: Callable[[Path], RunReader] = RunReader,
) -> list[UsageError]:
    """Add runs to a database; return what is wrong with those that are left out, since they cannot be read to
    their end.

    `read` opens a run that is added. The same run id in two files is an error. Progress goes to standard
    error.
    """
    met: dict[str, Path] = {}
    left_out: list[UsageError] = []
    for path in files:
        try:
            run_id = RunReader(path).header.run_id
        except UsageError as error:
            left_out.append(error)
            continue
        other = met.setdefault(run_id, path)
        if other is not path:
            raise UsageError(f"{path}: run {run_id} is also {other}: move one of them away")
    added = 0
    for path in met.values():
        try:
            added += not database.add(read(path)).known
        except NoHistory:
            raise
        except UsageError as error:
            left_out.append(error)
    if database.path is not None and files:
        print(f"{database.path}: {added:,} of {len(files):,} runs added", file=sys.stderr)
    return left_out


def answer(
    database: HistoryDatabase,
    case: str | None = None,
    queries: tuple[Query, ...] = (),
    asks_flips: bool = False,
    targets: tuple[str, ...] = (),
    by_release: bool = False,
) -> History:
    """Ask a database. Errors: NothingRan if no run has such a target or case."""
    points = database.points()
    if not points:
        raise NothingRan(f"{database.path}: no run in it yet")
    if unknown := sorted(set(targets) - {point.target for point in points}):
        raise NothingRan(
            f"no run has the target {', '.join(unknown)}; there are: {', '.join(sorted({point.target for point in points}))}"
        )
    lines = timelines(
        [point for point in points if not targets or point.target in targets], by_release=by_release
    )
    made = History(lines, tuple(limits(lines)), operators=database.operators() if len(points) > 1 else {})

    def wanted(name: str) -> bool:
        return (case is None or name == case) and (
            not queries or any(query.matches(name) for query in queries)
        )

    if case is not None or queries:
        groups, stand = groups_of(database, lines, wanted, case)
        if not stand:
            raise NothingRan(
                f"no run has the case {case}" if case else f"no run has a case that matches {_asked(queries)}"
            )
        made = made._replace(asked=case or _asked(queries), since=groups, stand=stand)
    if case is not None:
        did = next(did for _, did in database.results(wanted, case))
        made = made._replace(story={target: changes(moments, did) for target, moments in lines.items()})
    if asks_flips:
        flips, number = all_flips(database, lines, wanted, case)
        made = made._replace(flips=flips, flips_number=number)
    return made


def _asked(queries: tuple[Query, ...]) -> str:
    return " or ".join(query.text for query in queries)
