"""The argument and the options of several commands: which cases they are about, and what results are judged by."""

from __future__ import annotations

import click

from harness.commands.named_path import NamedPath

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
