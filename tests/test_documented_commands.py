"""Every `harness` command of every document is one that the command line takes: its options, their values and the number
of its arguments. Nothing is run: names in capitals stand for files, and many commands need a network, another machine,
Windows or hours. What the documents show the output of is run elsewhere (`test_readme.py`, `test_examples.py`,
`test_printed_commands.py`)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from harness.commands.cli import cli

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), ROOT / "reports/README.md"]
)
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
_INLINE = re.compile(r"`([^`\n]*(?:\n[^`\n]+)?)`")
_SHELLS = ("", "sh", "bash", "console", "powershell", "yaml", "groovy")
_IN_A_LINE = re.compile(r"(?:^(?:PS )?|[$&>(] *|- +|\w=\S* |run: |/)harness +(?=[a-z-])")
_COMMAND = re.compile(r"(?:^|[$&;(] *|\w=\S* )harness +(?=[a-z-])")


def commands(page: str) -> Iterator[tuple[str, bool]]:
    """Yield the commands of a page and whether they stand in a block, of a shell or of plain text: inline code may be a part
    of a command."""
    for language, block in _FENCED.findall(page):
        for line in re.split(r"\n|&& ", block.replace("\\\n", " ")) if language in _SHELLS else ():
            if (found := _IN_A_LINE.search(line)) and not line.lstrip().startswith("#"):
                yield line[found.end() :].removesuffix("'" if "sh '" in line else ""), True
    for code in _INLINE.findall(_FENCED.sub("", page)):
        if found := _COMMAND.match(code.strip()):
            yield " ".join(code.strip()[found.end() :].split()), False


def words(command: str) -> list[str]:
    """Return the arguments of a command, of a synopsis with all that it leaves free and the first of alternatives."""
    command = re.sub(r"\s+#.*$|\s{3,}\S.*$", "", command.replace("\\|", "|"))
    command = re.sub(r" \[([-A-Z][^\]]*)\]", r" \1", command)
    lexer = shlex.shlex(command, posix=True, punctuation_chars="&;>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    found = []
    for word in lexer:
        if word in ("|", "||") or set(word) <= set("&;>"):
            break
        found.append({"N": "3"}.get(word, word.partition("|")[0] if word[:1].islower() else word))
    return found


ALL = sorted({(path.name, *each) for path in PAGES for each in commands(path.read_text(encoding="utf-8"))})


@pytest.mark.parametrize(
    ("page", "command", "whole"), ALL, ids=[f"{page}: {command}" for page, command, _ in ALL]
)
def test_is_accepted(page: str, command: str, whole: bool) -> None:
    found: click.Command = cli
    arguments = words(command)
    while isinstance(found, click.Group) and arguments:
        name, *arguments = arguments
        one = found.get_command(click.Context(found), name)
        assert one is not None, f"no command {name}"
        found = one
    if whole or arguments:
        part = (click.MissingParameter,) if not whole else ()
        last = len(arguments) - 1
        values = [*arguments, "3"] if not whole and arguments[last] in ("-k", "-t") else arguments
        with suppress(*part):
            found.make_context(found.name, values)


def test_commands_are_found() -> None:
    """A page whose commands none of the patterns finds would test nothing."""
    assert {"README.md", "triage.md", "reports.md", "queries.md", "windows-pc.md", "CONTRIBUTING.md"} <= {
        page for page, _, _ in ALL
    }
    assert sum(whole for _, _, whole in ALL) > 60
