"""What several commands take: the types of paths and of durations, and the arguments that say which cases a command is
about and what results are judged by."""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


class Seconds(click.FloatRange):
    """A time that a program can wait for: from a tenth of a second to eleven days, and neither `nan` nor
    `inf`."""

    def __init__(self) -> None:
        super().__init__(min=0.1, max=1e6)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the seconds as a float."""
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return seconds


_URL = re.compile(r"[A-Za-z][\w+.:-]+://")
"""One letter is a drive of Windows and no scheme."""


class NamedPath(click.Path):
    """A path that names something: the empty text, which a script's unset variable leaves, is not the current
    folder."""

    def __init__(self, *, dir_okay: bool = True) -> None:
        super().__init__(path_type=Path, dir_okay=dir_okay)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the Path."""
        if not str(value):
            self.fail("the path is empty; write . for the current folder", param, ctx)
        if _URL.match(str(value)):
            self.fail(f"{value} is a URL, and this takes a path; copy the files to or from there", param, ctx)
        return super().convert(value, param, ctx)


class RunsPath(NamedPath):
    """A path of runs, or the URL of runs in a store, which stays a text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the Path, or the URL."""
        return value if _URL.match(str(value)) else super().convert(value, param, ctx)


SPECS = click.argument("specs", nargs=-1, type=NamedPath(), metavar="[SPEC]...")
QUERIES = click.option(
    "-k",
    "--query",
    "queries",
    multiple=True,
    metavar="QUERY",
    help="Only cases that match, e.g. 'Round@22:X=float16'.",
)
EXPECTATIONS = click.option(
    "--expectations",
    multiple=True,
    type=NamedPath(),
    help="Expectation files or folders (default: the harness's own).",
)
BASELINE = click.option("--baseline", type=NamedPath(), metavar="RUN", help="Judge against this earlier run.")


_Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def flag(*names: str, help: str) -> _Option:
    """Return an option without a value."""
    return click.option(*names, is_flag=True, help=help)


def targets_option(help: str) -> _Option:
    """Return `-t`, which can be repeated."""
    return click.option("-t", "--target", "targets", multiple=True, metavar="TARGET", help=help)


def target_option(help: str, *names: str, default: str | None = None) -> _Option:
    """Return an option that names one target, `-t` unless it has other names."""
    names = names or ("-t", "--target")
    return click.option(
        *names, metavar="TARGET", default=default, show_default=default is not None, help=help
    )


def specs_option(help: str) -> _Option:
    """Return `--spec`, which can be repeated, of a command whose arguments are no specs."""
    return click.option("--spec", "specs", multiple=True, type=NamedPath(), help=help)


def seed_option(help: str) -> _Option:
    """Return `--seed` of inputs, 0 by default."""
    return click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help=help)


def jobs_option(help: str) -> _Option:
    """Return `-j`, a number of worker processes."""
    return click.option("-j", "--jobs", type=click.IntRange(1, 256), help=help)


def timeout_option(help: str, default: float = 30.0) -> _Option:
    """Return `--timeout` in seconds."""
    return click.option("--timeout", type=Seconds(), default=default, show_default=True, help=help)


def folder_option(help: str, **settings: Any) -> _Option:
    """Return `-o`, the folder that a command writes."""
    return click.option("-o", "--output", type=NamedPath(), metavar="DIR", help=help, **settings)


def command_line() -> str:
    """Return the command that runs, as a shell takes it."""
    return shlex.join(["harness", *sys.argv[1:]]).encode(errors="backslashreplace").decode()
