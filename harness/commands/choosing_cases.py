"""The argument and the option by which commands are told which cases they are about."""

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
