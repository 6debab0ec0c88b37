"""The help of every command: whole sentences at 80 columns, and examples that the command line takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from harness.commands.cli import cli
from harness.commands.help_texts import EXAMPLES, GROUPS, IN_ONE_LINE
from harness.model import interrupt
from harness.model.errors import HarnessError


def _commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        path = f"{context.command_path} {name}"
        yield path, command
        if isinstance(command, click.Group):
            yield from (
                (deeper, each) for deeper, each in _commands(command, click.Context(command, context, name))
            )


ROOT = click.Context(cli, info_name="harness")
ALL = {"harness": cli, **dict(_commands(cli, ROOT))}


def _help(path: str) -> str:
    context = click.Context(ALL[path], info_name=path, terminal_width=80, max_content_width=80)
    return ALL[path].get_help(context)


@pytest.mark.parametrize("path", ALL)
def test_help_fits_80_columns(path: str) -> None:
    assert [line for line in _help(path).splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("path", [path for path, command in ALL.items() if isinstance(command, click.Group)])
def test_no_line_of_a_list_of_commands_is_cut(path: str) -> None:
    commands = _help(path).partition("Commands:\n" if path != "harness" else "Run:\n")[2]
    assert commands
    assert "..." not in commands


def test_every_command_stands_in_one_group() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(IN_ONE_LINE)
    heads = [line[:-1] for line in _help("harness").splitlines() if line[:1].isupper() and line.endswith(":")]
    assert heads == ["Options", *GROUPS]


def test_the_help_of_run_has_every_exit_code() -> None:
    said = " ".join(_help("harness run").split()).partition("Exit code ")[2].partition(" Options:")[0]
    classes = (HarnessError, *HarnessError.__subclasses__())
    codes = {0, 1, interrupt.EXIT_CODE, *(each.exit_code for each in classes)}
    assert {int(code) for code in re.findall(r"(\d+):", said)} == codes


def test_every_command_has_its_line_and_every_one_without_others_below_it_examples() -> None:
    names = {path.split()[1]: command for path, command in ALL.items() if path.count(" ") == 1}
    assert set(IN_ONE_LINE) == set(names)
    assert set(EXAMPLES) == {name for name, command in names.items() if not isinstance(command, click.Group)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_in_the_help_and_are_taken(name: str) -> None:
    shown = _help(f"harness {name}").partition("Examples:\n")[2].splitlines()
    assert [line.strip() for line in shown] == list(EXAMPLES[name])
    for example in EXAMPLES[name]:
        program, command, *arguments = shlex.split(example)
        assert (program, command) == ("harness", name)
        ALL[f"harness {name}"].make_context(name, arguments)  # an unknown option or a missing argument raises
