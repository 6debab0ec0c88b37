"""The known support for the cases of a query: documented, registered, measured, known defects, since when; one row
for each operator on each target."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.model.case import BEYOND, Validity
from harness.model.header import Expectation
from harness.model.reference.feature_levels import level_key
from harness.model.target_info import TargetInfo
from harness.results.defects import defects, release_words, releases
from harness.results.support import LOWERS_TO_DIRECTML, measured, support
from harness.results.tables import Tables
from harness.results.tally import Tally


class KnownHere(NamedTuple):
    """A defect that cases of the query meet; of one that this release does not have `holds` is False."""

    title: str
    reading: str
    cases: int
    since: str
    mended: str
    holds: bool
    link: str

    @property
    def state(self) -> str:
        """Say in which releases (`release_words`)."""
        return release_words(self.since, self.mended)


class SupportRow(NamedTuple):
    """One operator on one target of one release; `tally` counts the valid cases."""

    operator: str
    opsets: tuple[int, ...]
    target: str
    release: str
    documented: str
    registered: str
    measured: str
    tally: Tally
    defects: tuple[KnownHere, ...]
    source: str
    """The run, empty for what only tables say."""


class SupportAnswer(NamedTuple):
    """The query, and the rows in the order of operator, target and release."""

    asked: str
    rows: tuple[SupportRow, ...]


def measured_rows(tables: Tables, source: str) -> list[SupportRow]:
    """Return the rows of a run of which only the cases of the query were counted."""
    found = defects(tables)
    known = {
        operator: [
            KnownHere(each.title, each.reading.value, each.cases, each.since, each.mended, True, each.link)
            for each in found
            if not each.operators or operator in each.operators
        ]
        for operator in tables.operators
    }
    return _rows(tables, known, source)


def planned_rows(tables: Tables, entries: Iterable[tuple[Expectation, int, bool]]) -> list[SupportRow]:
    """Return the rows of a target that no run has: `entries` are those of its provider that speak of a case, of how
    many cases, and whether they hold in its release."""
    known = [
        KnownHere(entry.name, "", number, *releases(entry.releases or {}), holds, entry.link)
        for entry, number, holds in entries
    ]
    return _rows(tables, dict.fromkeys(tables.operators, known), "")


def _rows(tables: Tables, known: Mapping[str, Sequence[KnownHere]], source: str) -> list[SupportRow]:
    """Return a row for each operator on each target, with the `known` defects of the operator."""
    valid = {"validity": Validity.VALID, "variant": ""}
    tallies = tables.by("operator", "target", **valid)
    opsets: dict[tuple[str, str], set[int]] = {}
    for operator, target, opset in tables.by("operator", "target", "opset", **valid):
        opsets.setdefault((operator, target), set()).add(opset)
    by_level: dict[tuple[str, str], dict[str, int]] = {}
    for (operator, target, level), tally in tables.by("operator", "target", "level", **valid).items():
        by_level.setdefault((operator, target), {})[level] = tally.selected
    kernels: dict[tuple[str, str], dict[str, set[int]]] = {}
    for row in support(tables):
        of_row = kernels.setdefault((row.operator, row.target), {})
        of_row.setdefault(row.registered, set()).update(row.opsets)
    rows = []
    for operator in tables.operators:
        for target in tables.targets:
            at, info = (operator, target), tables.header.targets[target]
            tally = tallies.get(at, Tally())
            rows.append(
                SupportRow(
                    operator,
                    tuple(sorted(opsets.get(at, ()))),
                    target,
                    info.onnxruntime or info.directml or "unknown",
                    documented(by_level.get(at, {}), info) if info.provider in LOWERS_TO_DIRECTML else "–",
                    _registered(kernels.get(at, {})),
                    _measured(tally),
                    tally,
                    tuple(known[operator]),
                    source,
                )
            )
    return rows


def _registered(kernels: Mapping[str, Collection[int]]) -> str:
    """Say whether kernels are registered; where that is not the same at all opsets, at which."""
    words = [
        f"{word} ({', '.join(map(str, sorted(kernels[word])))})" if len(kernels) > 1 else word
        for word in sorted(kernels, reverse=True)
    ]
    return ", ".join(words) or "unknown"


def documented(by_level: dict[str, int], info: TargetInfo) -> str:
    """Say of how many cases DirectML's documents allow the call, and from which feature level on."""
    most = info.max_feature_level
    allowed = {
        level: number
        for level, number in by_level.items()
        if level != BEYOND and (most is None or level_key(level) <= level_key(most))
    }
    total = sum(by_level.values())
    if not allowed:
        return "no" + (f", up to {most}" if most else "")
    first = min(allowed, key=level_key)
    return f"{sum(allowed.values()):,} of {total:,} cases, from {first}" + (f" up to {most}" if most else "")


def _measured(tally: Tally) -> str:
    if not tally.run:
        return "not run"
    others = "".join(f", {number:,} {reading.value}" for reading, number in tally.others())
    return f"{measured(tally)}: {tally.correct:,} of {tally.selected:,} correct{others}"
