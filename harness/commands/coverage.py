"""`harness coverage`: shows which interactions of factors the cases show, and which they could; and which cells of
type, rank and attribute value have no case."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from harness.commands.options import QUERIES, SPECS, flag
from harness.model.case import Case
from harness.model.progress import FUSING, PLANNING, telling
from harness.run.probe import Probes
from harness.run.transformer_coverage import transformer_coverage
from harness.specs.coverage.attribute_cells import KINDS, RANK, TYPE, CellCount, CellCoverage, cell_coverages
from harness.specs.coverage.coverage import Coverage, Levels, coverages, kind_counts
from harness.specs.coverage.kind_matrix import KindCount
from harness.specs.coverage.kinds import KINDS as KINDS_OF_INPUT
from harness.specs.reading.load import GRAPHS, default_folder
from harness.targets.registry import parse_target

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
@flag("--thorough", help="Count the cases of `run --select thorough`.")
@flag("--missing", help="List all that could be covered and is not.")
@click.option(
    "--interactions", "only", flag_value="interactions", help="Count interactions of factors alone."
)
@click.option(
    "--cells", "only", flag_value="cells", help="Count cells of type, rank and attribute value alone."
)
@click.option(
    "--kinds", "only", flag_value="kinds", help="Print the matrix of operators' inputs and kinds of input."
)
@click.option(
    "--transformers",
    "target",
    metavar="TARGET",
    help="Run the specs of graphs on TARGET, and count the optimizer's transformers that change them.",
)
@flag("--json", "as_json", help="Print one JSON object per operator and validity.")
def coverage_command(
    specs: tuple[Path, ...],
    queries: tuple[str, ...],
    strength: int,
    thorough: bool,
    missing: bool,
    only: str | None,
    target: str | None,
    as_json: bool,
) -> None:
    """Count the pairs of levels of different factors that the default cases show, by operator, and the cells of
    type × rank × attribute value that have a case.

    Factors are element types, rank, size, attributes, kinds of values, options. What is possible, and what a
    constraint forbids, say the sweeps with `cover`; of an operator without one, every pair counts as possible.
    Cells are of the types that ONNX allows, the ranks that a case has or DirectML documents, and the values that
    ONNX documents; those that break a rule of the operator count as forbidden. `--kinds` looks at every input:
    which kinds of elements, shapes and sessions no case has, and why none could. `--transformers` exits with 1
    where a graph does not become what its spec says (`fuses_to`).
    """
    from harness import api

    if target is not None:
        _transformers(api.load(specs or [default_folder() / GRAPHS], queries), target, as_json=as_json)
        return
    with telling(PLANNING, when=not specs and not queries) as tell:
        cases = api.load(specs, queries, thorough=thorough, progress=tell)
    if only == "kinds":
        kinds = kind_counts(cases)
        for line in map(_kinds_json, kinds) if as_json else _matrix(kinds, missing=missing):
            click.echo(line)
        return
    for pairs in coverages(cases, strength) if only != "cells" else ():
        for line in [_json(pairs, missing=missing)] if as_json else _lines(pairs, missing=missing):
            click.echo(line)
    for cells in cell_coverages(cases) if only != "interactions" else ():
        for line in [_cells_json(cells)] if as_json else _cell_lines(cells, missing=missing):
            click.echo(line)


def _transformers(cases: Iterable[Case], name: str, *, as_json: bool) -> None:
    """Print which transformers change the graphs of cases on a target; exit with 1 if one is not fused as it should."""
    with Probes(parse_target(name), jobs=2) as probes, telling(FUSING) as tell:
        found = transformer_coverage(cases, probes, tell)
        release = probes.hello.onnxruntime
    if as_json:
        click.echo(json.dumps(found._asdict() | {"never": found.never, "onnxruntime": release}))
        sys.exit(bool(found.unfused))
    total = len(found.triggered) + len(found.never)
    click.echo(
        f"{name}, onnxruntime {release}: {len(found.triggered)} of {total} transformers change a graph"
    )
    for transformer, ids in sorted(found.triggered.items()):
        click.echo(f"  {transformer}: {len(ids):,} case{'s' * (len(ids) != 1)}, {ids[0]}")
    click.echo(f"never: {', '.join(found.never) or 'none'}")
    for line in found.unfused:
        click.echo(f"not fused: {line}")
    sys.exit(bool(found.unfused))


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


def _cell_lines(found: CellCoverage, *, missing: bool) -> Iterator[str]:
    counted = ", ".join(
        f"{' × '.join(each.kind)} {each.covered:,} of {each.possible:,}" for each in found.counts
    )
    yield f"{found.operator}, cells with a case: {counted}"
    levels = (f"{level} {covered:,} of {possible:,}" for level, (covered, possible) in found.levels.items())
    yield f"  type × rank by feature level: {', '.join(levels)}"
    for each in found.counts:
        for reason, number in sorted(each.forbidden.items()):
            yield f"  {number:,} {' × '.join(each.kind)} forbidden: {reason}"
        if missing or each.kind != KINDS[-1]:
            yield from (f"  no case: {line}" for line in _joined(each))


def _joined(count: CellCount) -> Iterator[str]:
    """Write missing cells together that differ in their types alone, and then those that differ in ranks."""
    groups: dict[tuple[tuple[str, str], ...], dict[str, list[str]]] = {}
    for levels in count.missing:
        parts = dict(levels)
        dtype, rank = parts.pop(TYPE, ""), parts.pop(RANK, "")
        parts.pop("level", None)
        groups.setdefault(tuple(parts.items()), {}).setdefault(rank, []).append(dtype)
    for rest, ranks in groups.items():
        alike: dict[tuple[str, ...], list[str]] = {}
        for rank, dtypes in ranks.items():
            alike.setdefault(tuple(dtypes), []).append(rank)
        for types, several in alike.items():
            written = [f"{name}={value}" for name, value in rest]
            written += [f"rank {', '.join(several)}"] if several != [""] else []
            written += [", ".join(types)] if types != ("",) else []
            yield " × ".join(written)


def _cells_json(found: CellCoverage) -> str:
    cells = [
        {
            "kind": list(each.kind),
            "covered": each.covered,
            "possible": each.possible,
            "forbidden": dict(each.forbidden),
            "missing": [dict(levels) for levels in each.missing],
        }
        for each in found.counts
    ]
    levels = {
        level: {"covered": covered, "possible": possible}
        for level, (covered, possible) in found.levels.items()
    }
    return json.dumps({"operator": found.operator, "cases": found.cases, "cells": cells, "levels": levels})


_COLUMNS = (
    *("NaN1", "NaNn", "NaN*", "inf", "-inf", "-0", "sub", "huge", "fine", "least", "most"),
    *("e4", "e4z", "e5", "e5z", "u4", "i4", "f4", "e8", "u2", "i2"),
    *("0..", ".0.", "..0", "...0", "()", "r5", ">16", ">64", ">256", ">1k", "init", "out"),
    *("zero", "-1", "2^32"),
    *("same", "more", "less", "undecl"),
)
"""What the matrix calls the kinds of input, in their order."""


def _matrix(counts: Sequence[KindCount], *, missing: bool) -> Iterator[str]:
    """Write a row for each operator's sessions, each of its inputs and its attributes."""
    width = max(len(name) for each in counts for name, _ in _rows(each))
    yield "+ a judged case has it, . none has, - none can have it"
    yield f"{'':{width}}  {' '.join(_COLUMNS)}"
    for each in counts:
        for name, marks in _rows(each):
            cells = " ".join(
                f"{marks.get(kind, ''):^{len(short)}}"
                for kind, short in zip(KINDS_OF_INPUT, _COLUMNS, strict=True)
            )
            yield f"{name:{width}}  {cells}".rstrip()
        for name, kind in each.missing if missing else ():
            yield f"  no case: {name or each.operator} {kind}"
        for (name, kind), reason in each.reasons.items() if missing else ():
            yield f"  none can: {name or each.operator} {kind}: {reason}"
    covered, lacking, reasons = (sum(len(each[n]) for each in counts) for n in (1, 2, 3))
    possible = covered + lacking
    yield f"{covered:,} of {possible:,} possible cells have a case; {reasons:,} more have a reason why none can"
    in_modes, could = (sum(each.in_modes[n] for each in counts) for n in (0, 1))
    yield f"{in_modes:,} of {could:,} kinds of elements in a mode of their operator have a case"


def _rows(count: KindCount) -> Iterator[tuple[str, dict[str, str]]]:
    marks = (
        dict.fromkeys(count.covered, "+")
        | dict.fromkeys(count.missing, ".")
        | dict.fromkeys(count.reasons, "-")
    )
    for name in dict.fromkeys(("", *(name for name, _ in marks))):
        row = {kind: mark for (own, kind), mark in marks.items() if own == name}
        yield (f"  {name}" if name else count.operator), row


def _kinds_json(found: KindCount) -> str:
    reasons = [[*cell, why] for cell, why in found.reasons.items()]
    return json.dumps(found._asdict() | {"reasons": reasons})
