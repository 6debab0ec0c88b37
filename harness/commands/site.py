"""`harness site`: makes static pages of many runs, for any file host."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click
import msgspec

from harness.commands.history import end
from harness.commands.options import RunsPath, folder_option
from harness.commands.report import write_whole
from harness.model.errors import UsageError, naming
from harness.render.site import render_site
from harness.render.text import visible
from harness.results.history.recorded import RecordedRuns
from harness.results.history.runs import collect, find_runs
from harness.results.history.site import SiteRuns
from harness.results.summary import count

LISTING = "site.json"
"""Names the files of a site, beside them: all that a later site may replace."""


class Listing(msgspec.Struct, frozen=True):
    """What `site.json` holds: the runs' ids, and the paths of the files below the site's folder."""

    runs: list[str]
    files: list[str]


@click.command("site")
@click.argument("runs", nargs=-1, required=True, type=RunsPath(), metavar="RUN...")
@folder_option("Folder of the site: a new or an empty one, or one that holds an earlier site.", required=True)
def site(runs: tuple[Path | str, ...], output: Path) -> None:
    """Make static pages of many runs: operators by target and release, with the history of each.

    RUN is a run file, or a folder with runs at any depth. Exit code 2: a run is damaged and was left out, or
    is present twice, or DIR holds other files; 4: there is no run, or, after the pages are written, one is
    incomplete.
    """
    before = earlier(output)
    files = find_runs(runs)
    counted = SiteRuns()
    with RecordedRuns() as recorded:
        left_out = collect(recorded, files, counted.count)
        for error in left_out:
            click.echo(f"harness: left out: {visible(str(error))}", err=True)
        if not counted.runs:
            raise UsageError(f"no run could be read: {output} stays as it is")
        shown = counted.site(recorded)
        made = dict(render_site(shown))
    write_site(output, made, sorted(counted.runs), before)
    size = sum(len(text.encode()) for text in made.values())
    click.echo(
        f"{output}: {count(len(made), 'file')}, {size / (1 << 20):.1f} MiB, of {count(len(counted.runs), 'run')}"
    )
    end(left_out, shown.history)


def earlier(folder: Path) -> list[str]:
    """Return the files of the site in a folder, none if it is empty or absent. Errors: UsageError if it holds
    other files."""
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise UsageError(f"{folder}: is a file; -o names a folder")
    with naming(folder, "read"):
        found = sorted(path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
        listed = _listed(folder / LISTING) if found else []
    own = {LISTING, *listed, *(f"{name}.part" for name in (LISTING, *listed))}
    names = {path.relative_to(folder).as_posix(): path for path in found}
    for name, path in names.items():
        if name not in own or path.is_symlink():
            raise UsageError(
                f"{folder}: holds {visible(name)}, which no site wrote: name another folder, or move it away"
            )
    return [name for name in names if name != LISTING]


def _listed(path: Path) -> list[str]:
    """Return the files that a listing names; none where it is no listing."""
    with suppress(FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(path.read_bytes(), type=Listing).files
    return []


def write_site(folder: Path, files: dict[str, str], runs: list[str], before: Iterable[str] = ()) -> None:
    """Write the files of a site, and remove those of the one `before` that it lacks.

    The listing names old and new files as long as both may be there, so that a site that was cut short can
    be made again. Errors: UsageError.
    """
    gone = sorted(set(before) - set(files))
    _list(folder, runs, [*files, *gone])
    for name, text in files.items():
        write_whole(folder / name, [text])
    with naming(folder, "written"):
        for name in gone:
            (folder / name).unlink(missing_ok=True)
    _list(folder, runs, [*files])


def _list(folder: Path, runs: list[str], files: list[str]) -> None:
    text = msgspec.json.format(msgspec.json.encode(Listing(runs, files)), indent=1).decode()
    write_whole(folder / LISTING, [text, "\n"])
