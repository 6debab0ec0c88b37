"""`harness expect`: checks expectation files, and updates them from a run."""

from __future__ import annotations

import difflib
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from datetime import date
from functools import partial
from pathlib import Path

import click

from harness.commands.options import NamedPath, flag, specs_option, targets_option
from harness.commands.report import write_whole
from harness.model.errors import UsageError
from harness.model.progress import PLANNING, PLANTING, telling
from harness.model.query import parse_all
from harness.render.text import one_line
from harness.results.runfile import RunReader
from harness.results.summary import count
from harness.specs.expand import expand
from harness.specs.expectations.expectation_lint import lint, shadowed
from harness.specs.expectations.expectations import Expectations, load_expectations
from harness.specs.expectations.target_expectations import ExpectationScope
from harness.specs.expectations.tried_conditions import Conditions, not_separating, untried
from harness.specs.reading.load import are_own, default_folder, load_specs
from harness.specs.reading.source import label_of
from harness.targets.registry import parse_targets
from harness.targets.target import Target
from harness.triage.expect.masked import LEAST_RED, Masking, maskings
from harness.triage.expect.run_rows import RunOutcomes, RunRows
from harness.triage.expect.updates import update


@click.group("expect")
def expect() -> None:
    """Check expectation files, and update them from a run."""


@expect.command("lint", short_help="Show what is wrong with the entries of expectation files.")
@click.argument("files", nargs=-1, type=NamedPath(), metavar="[FILE]...")
@specs_option("Specs with the cases that the entries name.")
@click.option(
    "--run",
    type=NamedPath(),
    help="Hold each condition against RUN: what lacks it alone should do otherwise.",
)
@flag("--masked", help="Plant other wrong outputs in the cases of entries; each that stays green is a fault.")
@targets_option("Where --masked runs the cases.  [default: cpu]")
def lint_files(
    files: tuple[Path, ...], specs: tuple[Path, ...], run: Path | None, masked: bool, targets: tuple[str, ...]
) -> None:
    """Report faulty entries: not reviewed yet, expired, written twice, matching no case, shadowed by an earlier
    one, or with a condition that is tried on one side only."""
    known = load_expectations(files)
    if masked:
        sys.exit(_masked(known, specs, parse_targets(targets or ("cpu",))))
    with telling(PLANNING, when=not specs) as tell:
        plan = expand(load_specs(specs), tell=tell)
    ids: dict[str, list[str]] = {}
    for case in plan:
        ids.setdefault(case.operator, []).append(case.id)
    scope = ExpectationScope.of(plan.specs)
    problems = lint(known, date.today(), (case for cases in ids.values() for case in cases), scope)
    judged = [located for located in known.entries if scope.judges(located) and not located.entry.pending]
    default, thorough = Conditions(ids, ids.__getitem__), Conditions.thorough(load_specs(specs))
    problems += [problem for located in judged for problem in untried(located, default, thorough)]
    problems += shadowed(judged, default)
    if run is not None:
        outcomes = RunOutcomes(RunReader(run))
        for located in judged:
            problems += not_separating(located, default, partial(outcomes.otherwise, located))
    for line in problems:
        click.echo(line, err=True)
    click.echo(f"{count(len(known.entries), 'expectation')}: {'ok' if not problems else 'see above'}")
    sys.exit(1 if problems else 0)


def _maskings(target: Target, known: Expectations, specs: tuple[Path, ...]) -> Iterator[Masking]:
    with telling(PLANNING, when=not specs) as tell:
        plan = expand(load_specs(specs), tell=tell)
    with telling(PLANTING, when=not specs) as tell:
        yield from maskings(target, known, plan, tell)


def _masked(known: Expectations, specs: tuple[Path, ...], targets: Iterable[Target]) -> int:
    """Print for each target what stays green of other wrong outputs, and return the exit code."""
    failed = False
    for target in targets:
        planted = green = excused = entries = 0
        for masking in _maskings(target, known, specs):
            entries += bool(masking.planted)
            planted += masking.planted.total()
            green += masking.green.total()
            if masking.green and masking.located.entry.masked is not None:
                excused += 1
            elif masking.green:
                failed = True
                said = ", ".join(
                    f"{name} {number} of {masking.planted[name]}" for name, number in masking.green.items()
                )
                click.echo(
                    masking.located.problem(
                        f"hides other wrong outputs: {said}, for example in {masking.example}"
                    ),
                    err=True,
                )
        red = (planted - green) / planted if planted else 0.0
        failed = failed or red < LEAST_RED
        click.echo(
            f"{target.name}: {count(planted, 'other wrong output')} in the cases of {count(entries, 'entry', 'entries')}, "
            f"{red:.1%} unexpected; {count(excused, 'entry says', 'entries say')} why some cannot be"
        )
    return int(failed)


@expect.command("update", short_help="Make the entries of a file describe a run.")
@click.argument("run", type=NamedPath())
@click.argument("file", required=False, type=NamedPath())
@flag(
    "--check",
    "--dry-run",
    "only_check",
    help="Write nothing; print the difference, and exit 1 if there is one.",
)
def update_files(run: Path, file: Path | None, only_check: bool) -> None:
    """Make the entries of FILE (default: the harness's own, for a run of its specs) describe RUN; you fill in reason and link."""
    if file is not None and file.is_dir():
        raise UsageError(f"{file}: is a folder; name the file, which may be new")
    reader = RunReader(run)
    asked = reader.header.selection
    if file is None and asked is not None and not are_own(asked.specs):
        raise UsageError(
            f"{run}: is a run of specs that are not the harness's own; name the file for its entries, which may be "
            f"new: `{shlex.join(['harness', 'expect', 'update', str(run), 'expectations.yaml'])}`"
        )
    known = _known(file)
    rows = RunRows(reader, known)
    if not rows.complete:
        operators = parse_all(sorted(rows.operators))
        paths = () if asked is None else tuple(map(Path, asked.specs))
        rows.lacks(case.id for case in expand(load_specs(paths, operators), operators))
    folder = default_folder() / "expectations"
    done = update(rows, known, lambda target: file or folder / f"{re.split('[@,]', target)[0]}.yaml")
    texts = {path: edited.checked() for path, edited in done.files.items() if edited.text() != edited.before}
    for path, text in texts.items():
        edited = done.files[path]
        if only_check:
            label = label_of(path)
            lines = difflib.unified_diff(
                edited.before.splitlines(), text.splitlines(), label, label, lineterm=""
            )
            click.echo("\n".join(lines))
        else:
            write_whole(path, [text])
    for note in done.notes:
        click.echo(one_line(note), err=True)
    if not texts:
        click.echo("the expectations describe the run: nothing to change")
    elif not only_check:
        lint_it = "harness expect lint" if file is None else f"harness expect lint {shlex.quote(str(file))}"
        click.echo(f"{count(len(texts), 'file')} written; `{lint_it}` names what is to be filled in")
    sys.exit(1 if only_check and texts else 0)


def _known(file: Path | None) -> Expectations:
    if file is None:
        return load_expectations()
    return load_expectations([file]) if file.exists() else Expectations()
