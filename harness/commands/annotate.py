"""`harness annotate`: writes unexpected results of a run as GitHub annotations, at the spec lines of their
cases.

GitHub shows ten errors per step, so one annotation covers all results of an entry on a target, and the
entries with most results come first.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import click

from harness.commands.options import SPECS, NamedPath
from harness.model.caseid import CaseKey
from harness.model.errors import HarnessError
from harness.model.result import Result
from harness.model.verdict import judged
from harness.render.terminal import describe
from harness.render.text import line, visible
from harness.results.runfile import RunReader
from harness.specs.reading.load import LoadedSpec, default_folder, load_specs, operator_of, yaml_files
from harness.specs.reading.origins import entry_lines


@click.command()
@click.argument("run", type=NamedPath(), metavar="RUN")
@SPECS
def annotate(run: Path, specs: tuple[Path, ...]) -> None:
    """Print unexpected results as annotations of a GitHub workflow, at the lines of their specs.

    SPEC is the current location of the specs (default: their location during the run). The exit code does not
    depend on the results.
    """
    for each in github_annotations(run, specs):
        click.echo(each)


LIMIT = 10
"""Annotations of errors that GitHub shows of a step."""


class Place(NamedTuple):
    """Whose results are one annotation."""

    target: str
    operator: str
    entry: str


def github_annotations(run: Path, specs: Sequence[Path] = ()) -> Iterator[str]:
    """Yield `::error file=…,line=…,title=…::…` for the unexpected results of a run, and for the problems of
    its expectations.

    `specs` are where the specs lie by now, by default where the run had them: one that is no longer there costs
    only the line. Errors: UsageError for a damaged run, SpecError for `specs`.
    """
    reader = RunReader(run)
    asked = reader.header.selection
    counts: Counter[Place] = Counter()
    first: dict[Place, Result] = {}
    for result in reader:
        if result.unexpected(baseline=reader.header.baseline is not None):
            place = Place(result.target, result.operator, CaseKey.of(result.case).origin)
            counts[place] += 1
            first.setdefault(place, result)
    recorded = tuple(map(Path, asked.specs if asked else ()))
    loaded = load_specs(specs) if specs else _still_there(recorded, {place.operator for place in counts})
    where = {
        (spec.model.operator, entry): (spec.source.label, number)
        for spec in loaded
        for entry, number in entry_lines(spec).items()
    }
    for place, number in counts.most_common(LIMIT):
        result = first[place]
        more = f" (and {number - 1:,} more of {place.entry})" if number > 1 else ""
        text = f"{judged(result.outcome, result.verdict)}: {describe(result)}{more}\n{result.case}"
        yield _error(f"{place.operator} on {place.target}", text, where.get((place.operator, place.entry)))
    if len(counts) > LIMIT:
        left = sum(counts.values()) - sum(number for _, number in counts.most_common(LIMIT))
        yield _error(
            "more unexpected results",
            f"{left:,} of {len(counts) - LIMIT:,} other entries: see the summary",
            None,
        )
    for problem in reader.end.problems if reader.end else ():
        yield _error("an expectation", problem, None)


def _still_there(specs: Sequence[Path], operators: set[str]) -> Iterator[LoadedSpec]:
    """Yield the specs of a run that has results of the operators, as far as they can be read."""
    for path in yaml_files(specs or [default_folder()], []) if operators else ():
        if (
            not specs and operator_of(path) not in operators
        ):  # the harness's own specs are called as their operators
            continue
        with suppress(HarnessError):
            yield from load_specs([path])


def _error(title: str, text: str, where: tuple[str, int] | None) -> str:
    properties = {"title": line(title)}
    if where is not None and not os.path.isabs(
        where[0]
    ):  # of a file outside of the checkout GitHub knows nothing
        properties = {"file": where[0], "line": str(where[1]), **properties}
    said = ",".join(
        f"{key}={_escaped(value).replace(':', '%3A').replace(',', '%2C')}"
        for key, value in properties.items()
    )
    return f"::error {said}::{_escaped(visible(text))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
