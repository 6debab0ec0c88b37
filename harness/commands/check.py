"""`harness check`: validates specs and expectations."""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from harness.commands.options import EXPECTATIONS, SPECS
from harness.model.errors import SpecError
from harness.model.progress import PLANNING, telling


@click.command()
@SPECS
@EXPECTATIONS
def check(specs: tuple[Path, ...], expectations: tuple[Path, ...]) -> None:
    """Validate specs and expectations; report all errors at once."""
    from harness.specs.cache import kept_answers

    release = ""
    with suppress(PackageNotFoundError):
        release = version("onnxruntime")
    question = f"check {date.today()} {release}"  # entries expire; a release changes signatures
    own = not specs and not expectations
    if own and (said := kept_answers.answer(question)) is not None:
        click.echo(said)
        return
    from harness.commands.examine import contradictions, opsets_without_a_version, unquoted_bits
    from harness.model import signatures
    from harness.results.summary import count
    from harness.specs.expand import expand
    from harness.specs.expectations.expectation_lint import lint
    from harness.specs.expectations.expectations import load_expectations
    from harness.specs.expectations.target_expectations import ExpectationScope
    from harness.specs.reading.load import load_each
    from harness.targets import contributed

    loaded, wrong = load_each(specs)
    try:
        with telling(PLANNING, when=own) as tell:
            plan = expand(loaded, tell=tell)
    except SpecError as error:
        wrong.extend(error.problems)
    try:
        known = load_expectations(expectations)
    except SpecError as error:
        wrong.extend(error.problems)
    if wrong:
        raise SpecError(wrong)
    cases = list(plan)
    ids = [case.id for case in cases]
    problems = contradictions(plan.specs, cases) + lint(
        known, date.today(), ids, ExpectationScope.of(plan.specs)
    )
    warnings = [*unquoted_bits(plan.specs), *opsets_without_a_version(plan.specs)]
    if release and any(spec.model.operator in signatures.names() for spec in plan.specs):
        warnings += contributed.changes()
    for line in (*warnings, *problems):
        click.echo(line, err=True)
    numbers = (
        count(len(plan.specs), "spec"),
        count(len(ids), "case"),
        count(len(known.entries), "expectation"),
    )
    said = f"{numbers[0]} with {numbers[1]}, {numbers[2]}: {'ok' if not problems else 'see above'}"
    click.echo(kept_answers.keep(question, said) if own and not (warnings or problems) else said)
    sys.exit(1 if problems else 0)
