"""`harness coverage`: shows which interactions of factors the cases show, and which they could."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from harness.commands.choosing_cases import QUERIES, SPECS
from harness.specs.coverage import Coverage, Levels, coverages

_NAMES = {1: "levels", 2: "pairs", 3: "triples"}


@click.command("coverage")
@SPECS
@QUERIES
@click.option(
    "--strength",
    type=click.IntRange(1, 3),
    default=2,
    show_default=True,
    help="Count levels, pairs of levels or triples.",
)
@click.option("--thorough", is_flag=True, help="Count the cases of `run --select thorough`.")
@click.option("--missing", is_flag=True, help="List what could be covered and is not.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per operator and validity.")
def coverage_command(
    specs: tuple[Path, ...],
    queries: tuple[str, ...],
    strength: int,
    thorough: bool,
    missing: bool,
    as_json: bool,
) -> None:
    """Count the pairs of levels of different factors that the default cases show, by operator.

    Factors are element types, rank, size, attributes, kinds of values, options. What is possible, and what a
    constraint forbids, say the sweeps with `cover`; of an operator without one, every pair counts as possible.
    """
    from harness import api

    for each in coverages(api.load(specs, queries, thorough=thorough), strength):
        for line in [_json(each, missing=missing)] if as_json else _lines(each, missing=missing):
            click.echo(line)


def _lines(found: Coverage, *, missing: bool) -> Iterator[str]:
    name = _NAMES[found.strength]
    share = f" ({100 * found.covered / found.possible:.1f} %)" if found.possible else ""
    counted = f"{found.covered:,} of {found.possible:,} possible {name}{share}"
    yield f"{found.operator}, {found.validity.value}: {counted} in {found.cases:,} cases"
    yield "  factors: " + ", ".join(f"{factor} {len(levels)}" for factor, levels in found.factors.items())
    if not found.declared:
        yield "  no sweep covers interactions: whether a missing one is possible is not known"
    for reason, number in sorted(found.forbidden.items()):
        yield f"  {number:,} forbidden: {reason}"
    if found.elsewhere:
        yield f"  {found.elsewhere:,} that no sweep asks for"
    for levels in found.missing if missing else ():
        yield f"  missing: {_written(levels)}"


def _written(levels: Levels) -> str:
    return " × ".join(f"{factor}={level}" for factor, level in levels)


def _json(found: Coverage, *, missing: bool) -> str:
    described = found._asdict() | {"validity": found.validity.value, "forbidden": dict(found.forbidden)}
    described["missing"] = [dict(levels) for levels in found.missing] if missing else len(found.missing)
    return json.dumps(described)
