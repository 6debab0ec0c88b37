"""`harness report`: renders a run in any format, from its run file alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from harness.commands.error_line import check_complete
from harness.commands.options import NamedPath, RunsPath
from harness.model.errors import UsageError
from harness.render.csv_tables import render_case_csv, render_csv
from harness.render.directml import render_cells, render_directml
from harness.render.html import page, read_page, render_html
from harness.render.page_cases import PageCases, Slices, remove_slices, write_slices
from harness.render.report import render_markdown
from harness.results import columns
from harness.results.counted import read_tables
from harness.results.explain.in_common import in_common
from harness.results.history.recorded import RecordedRuns
from harness.results.history.runs import Trend, collect, find_runs, timelines, trends
from harness.results.report import Report
from harness.results.runfile import RunReader

FORMATS = ("html", "markdown", "junit", "ctrf", "csv", "cases", "directml", "cells", "parquet")
_FORMAT_OF = {
    ".html": "html",
    ".md": "markdown",
    ".xml": "junit",
    ".json": "ctrf",
    ".csv": "csv",
    columns.SUFFIX: "parquet",
}
"""What the end of a file's name says where --format does not."""
_RUN = b'{"type":"run",'
"""How a run file begins."""


def rendering(run: Path, format: str, *, only_unexpected: bool = False) -> Iterator[str]:
    """Yield the pieces of one rendering of a run file, or of the one in a folder. Errors: UsageError.

    JUnit and CTRF can hold the unexpected results alone.
    """
    if only_unexpected and format not in ("junit", "ctrf"):
        raise UsageError(
            f"--only unexpected is for junit and ctrf, which list every result; not for {format}"
        )
    if format == "html":
        yield render_html(run)
    elif format == "markdown":
        tables = read_tables(RunReader(run))
        yield render_markdown(Report(tables, in_common(run, tables)))
    elif format == "csv":
        yield from render_csv(read_tables(RunReader(run)))
    elif format == "cases":
        yield from render_case_csv(RunReader(run))
    elif format == "directml":
        yield render_directml(run)
    elif format == "cells":
        yield from render_cells(run)
    elif format in ("junit", "ctrf"):
        from harness.render.foreign import render_ctrf, render_junit  # XML

        render = render_junit if format == "junit" else render_ctrf
        yield from render(lambda: RunReader(run), only_unexpected=only_unexpected)
    elif format == "parquet":
        raise UsageError("parquet is not text: say where to write it with -o FILE")
    else:
        raise UsageError(f"unknown format {format!r}; one of: {', '.join(FORMATS)}")


def write_report(run: Path, format: str, out: Path | None, *, only_unexpected: bool = False) -> None:
    """Render a run to a file, or to standard output; a file is replaced only by a whole one. Errors:
    UsageError."""
    if format == "parquet" and out is not None:
        with replacing(out) as partial:
            columns.write(RunReader(run), partial)
    else:
        write_text(rendering(run, format, only_unexpected=only_unexpected), out)


def write_text(pieces: Iterable[str], out: Path | None) -> None:
    """Write a text to a file, all or nothing, or piece by piece to standard output. Errors: UsageError."""
    if out is not None:
        write_whole(out, pieces)
        return
    for piece in pieces:
        click.echo(piece.encode(), nl=False)


def write_reports(report: Report, cases: PageCases, folder: Path) -> None:
    """Write `report.md`, `report.html` and what that does not hold into a folder, from one reading of a run
    (`render.html.read_page`). Errors: UsageError."""
    slices: Slices = {}
    try:
        write_whole(folder / "report.md", [render_markdown(report)])
        remove_slices(folder)
        if cases.cut:
            slices = write_slices(cases.run, folder)
    except OSError as error:
        raise UsageError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    finally:
        write_whole(folder / "report.html", [page(report, cases, slices)])


def writable(out: Path | None) -> None:
    """Find out before long work whether its result can be written. Errors: UsageError."""
    if out is None:
        return
    if out.is_dir():
        raise UsageError(f"{out}: is a folder; -o names a file")
    _writable_below(out)


def _writable_below(out: Path) -> None:
    if _is_device(out):
        return
    place = next(folder for folder in _behind_links(out).parents if folder.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise UsageError(
            f"{out}: cannot be written: {place} is {'not writable' if place.is_dir() else 'no folder'}"
        )


def _is_device(out: Path) -> bool:
    """Say whether nothing can take the place of a path: a pipe, `/dev/stdout`, `/dev/null`."""
    return out.exists() and not out.is_file() and not out.is_dir()


def _behind_links(out: Path) -> Path:
    return Path(os.path.realpath(out))


def write_whole(out: Path, pieces: Iterable[str]) -> None:
    """Write a text file, all or nothing (`replacing`). Errors: UsageError."""
    with replacing(out) as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(pieces)


def _holds_run(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(len(_RUN)) == _RUN


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Yield the name of another file beside a file, which then replaces it, so that there is never half of it; that of
    a device itself. A link stays, and no run is replaced. Errors: UsageError."""
    whole = _behind_links(out)
    partial = whole.with_name(f"{whole.name}.part")
    _writable_below(out)
    try:
        if _is_device(out):
            yield out
            return
        if out.is_file() and _holds_run(out):
            raise UsageError(f"{out}: holds a run, whose results would be lost; name another file with -o")
        whole.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        os.replace(partial, whole)
    except OSError as error:
        raise UsageError(f"{out}: cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            partial.unlink()


def _trends(run: Path, history: Iterable[Path | str]) -> list[Trend]:
    """Return the results of a run's targets, in this run and in the runs of folders. Errors: UsageError."""
    reader = RunReader(run)
    with RecordedRuns() as recorded:
        others = [
            path for path in find_runs(history) if RunReader(path).header.run_id != reader.header.run_id
        ]
        left_out = collect(recorded, [reader.path, *others])
        if left_out:
            raise left_out[0]
        lines = timelines(recorded.points())
    return [each for target in reader.header.targets for each in trends(target, lines[target])]


@click.command("report")
@click.argument("run", type=NamedPath())
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="Format to render; else the one that the end of -o FILE says (.html, .md, .xml, .json, .csv, .parquet).",
)
@click.option(
    "-o",
    "--output",
    type=NamedPath(),
    metavar="FILE|DIR",
    help="Write here instead of to standard output; a folder gets the page with all cases and the Markdown.",
)
@click.option(
    "--history",
    "history",
    multiple=True,
    type=RunsPath(),
    metavar="DIR",
    help="HTML: show results, defects and time of the same targets over the runs in DIR.",
)
@click.option("--only", type=click.Choice(["unexpected"]), help="JUnit and CTRF: these results alone.")
def report(
    run: Path, format_: str | None, output: Path | None, history: tuple[Path | str, ...], only: str | None
) -> None:
    """Render RUN, a run file or the folder of a run, as a report or as columns.

    Exit code 4, after the report is written: RUN is incomplete.
    """
    RunReader(run)  # a run that is not there is told of before anything else
    if format_ is None and output is not None and (output.is_dir() or not output.suffix):
        if only:
            raise UsageError(
                f"--only {only} is for junit and ctrf, which list every result; not for a folder"
            )
        found, cases = read_page(run)
        found.trends = _trends(run, history) if history else ()
        write_reports(found, cases, output)
        check_complete(run)
        return
    if format_ is None and output is not None:
        format_ = _FORMAT_OF.get(output.suffix)
        if format_ is None:
            ends = ", ".join(_FORMAT_OF)
            raise UsageError(
                f"-o {output}: no report ends with {output.suffix}, only with {ends}; or say --format {'|'.join(FORMATS)}"
            )
    if format_ is None:
        raise UsageError(f"say what to render: --format {'|'.join(FORMATS)}, or -o DIR for a folder")
    if history and format_ != "html":
        raise UsageError(f"--history is for html, which shows trends; not for {format_}")
    if history:
        write_text([render_html(run, _trends(run, history))], output)
    else:
        write_report(run, format_, output, only_unexpected=only is not None)
    check_complete(run)
