"""`harness import`: turns backend tests of ONNX, its own or a folder of them, into specs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import onnx

from harness.commands.options import flag, folder_option
from harness.compile.backend_folders import BackendTest, Damaged, folders_of, onnx_tests, read_test
from harness.compile.protos import LeftOut
from harness.model.errors import NothingRan, UsageError
from harness.model.onnx_schemas import operator_versions
from harness.operators import OPERATORS
from harness.render.text import one_line
from harness.results.summary import count, some
from harness.run.importing import Import, entries_of, write_specs
from harness.specs.reading.source import suggestion

ONNX = "onnx"
_NAMED = 6


@click.command("import")
@click.argument("source", metavar="onnx|DIR")
@click.argument("operators", nargs=-1, metavar="[OPERATOR]...")
@folder_option("Folder of the specs.", default=Path("imported"), show_default=True)
@flag("--force", help="Replace specs that are there.")
@flag("--all", "every", help="Name every test that is left out, not the first few.")
def import_command(source: str, operators: tuple[str, ...], output: Path, force: bool, every: bool) -> None:
    """Write backend tests as specs, one file an operator, that `harness run` runs.

    `onnx` stands for the cases of the installed onnx, DIR for a folder of tests (TEST/model.onnx,
    TEST/test_data_set_0/input_0.pb, output_0.pb). The outputs become documented results: where the oracle
    contradicts one, that is said here, and a run shows the case as oracle_error. Exit code 0: written; 4: no
    test can be.
    """
    _check(operators)
    done = Import()
    origin = f"ONNX {onnx.__version__} backend test" if source == ONNX else "backend test"
    tests = onnx_tests(operators) if source == ONNX else _tests(Path(source), operators, done)
    found = entries_of(tests, origin, done)
    where = f"onnx {onnx.__version__}" if source == ONNX else "a folder of backend tests"
    write_specs(found, output, f"Imported by `harness import` from {where}.", done, force=force)
    for reason, names in sorted(done.left_out.items(), key=lambda item: (-len(item[1]), item[0])):
        click.echo(one_line(f"left out: {len(names):,}: {reason}: {_few(names, every=every)}"))
    if not done.written:
        raise NothingRan(_nothing(source, operators))
    for line in _summary(done, output, every=every):
        click.echo(one_line(line))


def _check(operators: tuple[str, ...]) -> None:
    for name in operators:
        if name in OPERATORS:
            continue
        if name in operator_versions():
            raise UsageError(
                f"{name}: the harness has no formula for this operator, so nothing could judge its cases; add one (CONTRIBUTING.md)"
            )
        hint = suggestion(name, OPERATORS) or "; docs/operators.md lists those with a formula"
        raise UsageError(f"ONNX has no operator {name!r}{hint}")


def _tests(folder: Path, operators: tuple[str, ...], done: Import) -> Iterator[BackendTest]:
    for each in folders_of(folder):
        try:
            test = read_test(each)
        except Damaged as error:
            done.leave_out(each.name, LeftOut("a folder that is no whole backend test", str(error)))
            continue
        if operators and not any(node.op_type in operators for node in test.model.graph.node):
            done.leave_out(each.name, LeftOut("another operator than those that are named"))
            continue
        yield test


def _few(names: list[str], *, every: bool) -> str:
    hint = "" if every or len(names) <= _NAMED else " (--all names them)"
    return some(names, len(names) if every else _NAMED) + hint


def _nothing(source: str, operators: tuple[str, ...]) -> str:
    what = "ONNX has no case" if source == ONNX else f"{source}: no test"
    of = f" of {' and '.join(operators)}" if operators else ""
    return f"{what}{of} that a spec can hold; nothing is written"


def _summary(done: Import, output: Path, *, every: bool) -> Iterator[str]:
    number = sum(done.written.values())
    yield f"{count(number, 'case')} written to {count(len(done.written), 'file')} in {output}"
    agree = f"{len(done.agreeing):,} of the {number:,} expected outputs agree with the oracle"
    wrong = done.contradicting
    yield agree + (
        f"; {len(wrong):,} contradict it (oracle_error in a run): {_few(wrong, every=every)}" if wrong else ""
    )
    yield f"run them: harness run {output} -t cpu"
