"""Every `harness` command of every document is one that the command line takes: its options, their values and the number
of its arguments. Those that need no network, no other machine and no Windows are run as well, on files that stand for the
names in capitals, and on few cases. What the documents show the output of is run elsewhere (`test_readme.py`,
`test_triage.py`, `test_examples.py`, `test_printed_commands.py`)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import numpy as np
import onnx
import pytest

from harness.commands.cli import cli
from tests.models import transformer_block
from tests.running import ROUND, SPECS, harness

ROOT = Path(__file__).resolve().parents[2]
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


RUN_HERE = (
    "directml-cases.md",
    "findings.md",
    "graphs.md",
    "importing.md",
    "models.md",
    "queries.md",
    "reports.md",
    "site.md",
    "specs.md",
)
_FEW = "Round@22:case=*"
_SHORT = {"600": "4", "300": "4", "28800": "4"}
"""Seconds that a command of a document takes, and here."""
_FEWER = {"coverage --transformers cpu": ["-k", "MatMulAdd"], "import onnx": ["Add"]}
"""What keeps commands short that would take minutes."""
_ELSEWHERE = re.compile(r"-t (?!cpu(\s|$))|backend/test")


def _commands_here() -> list[tuple[str, str]]:
    chosen = dict.fromkeys(
        (page, command.split("   ")[0].split("  #")[0]) for page, command, whole in ALL if whole
    )
    return [each for each in chosen if each[0] in RUN_HERE and not _ELSEWHERE.search(each[1])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the names of the documents stand for runs of few cases, and for a model with its inputs."""
    here = tmp_path_factory.mktemp("documents")
    (here / "specs").symlink_to(SPECS)
    for name in ("RUN", "BASE", "HEAD", "reports/one", "reports/two", "runs/one"):
        assert harness("run", ROUND, "-t", "cpu", "-k", _FEW, "-o", here / name).code == 0
    (here / "DIR").symlink_to("runs")
    for name in ("MODEL", "A", "B"):
        onnx.save(transformer_block(), here / f"{name}.onnx")
    np.savez(here / "inputs.npz", ids=np.ones((1, 3), np.int64))
    return here


@pytest.mark.slow
@pytest.mark.parametrize(("page", "command"), _commands_here(), ids=lambda each: each)
def test_runs(page: str, command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A command ends as its page says, with 0; with 1 where it compares, or draws cases that may find something."""
    monkeypatch.chdir(folder)
    arguments = [_SHORT.get(word, word) for word in words(command)]
    arguments += _FEWER.get(command.strip(), [])
    if arguments[0] == "run":
        arguments += [] if "-k" in arguments or "specs/graphs" in arguments else ["-k", _FEW]
        arguments += ["-k", "MatMulAdd:optimization=all"] if "specs/graphs" in arguments else []
    if arguments[0] in ("run", "fuzz", "model", "import") and not {"-o", "--cases"} & set(arguments):
        arguments += ["-o", str(tmp_path / "out")]
    if arguments[0] == "model" and not {"-t", "--cases"} & set(arguments):
        arguments += ["-t", "cpu"]
    ended = harness(*arguments)
    assert ended.code in ((0, 1) if arguments[0] in ("fuzz", "compare") else (0,)), ended.err
