"""The defects of a run, one line each: unexpected results first, then known deviations, the most severe
first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from harness.model.verdict import DEFECTS, Reading, Verdict
from harness.results.summary import some
from harness.results.tables import Tables
from harness.results.tally import state_of
from harness.results.unexpected import UnexpectedKind

_FIRST, _MENDED = re.compile(r">=?\s*([\w.]+)"), re.compile(r"(?<![!>=])<\s*([\w.]+)")
_NAMED = 3
_NAMES = {"onnxruntime": "", "directml": "DirectML "}
OF_BASELINE = "Known from the run that this one is judged against"
WITHOUT_ENTRY = "Known, without an entry in the run file"


class DefectLine(NamedTuple):
    """One line of a report: the defect, its operators, its number of cases, the releases that have it, and
    its smallest case on `target`.

    `number` is the entry's, None for what no entry explains; `since` and `mended` are empty where nobody says.
    """

    title: str
    operators: tuple[str, ...]
    reading: Reading
    cases: int
    unexpected: bool = False
    since: str = ""
    mended: str = ""
    link: str = ""
    example: str = ""
    target: str = ""
    number: int | None = None
    everywhere: bool = False
    """Whether its entry holds in every release."""
    kind: UnexpectedKind | None = None
    """What unexpected results have in common."""
    targets: tuple[str, ...] = ()

    @property
    def operator(self) -> str:
        """Name the operators, the most frequent first, as far as a line holds them."""
        return some(self.operators, _NAMED)

    @property
    def where(self) -> str:
        """Name the targets, the most frequent first, as far as a line holds them."""
        return some(self.targets, _NAMED)

    @property
    def state(self) -> str:
        """Return the standing of the defect: `unexpected`, `since 1.24, mended in 1.28`."""
        if self.unexpected:
            return "unexpected"
        known = self.since or self.mended or self.everywhere
        return release_words(self.since, self.mended) if known else ""


def defects(tables: Tables) -> list[DefectLine]:
    """Return the defects of a run: unexpected ones before known ones, each in the order of the readings, then
    those of the most cases."""
    baseline = tables.header.baseline is not None
    new: list[DefectLine] = []
    for group in tables.unexpected.groups():
        kind = group.kind
        reading = state_of(group.example, baseline=baseline).reading
        if (
            kind.verdict is Verdict.IMPROVEMENT
            or reading is None
            or not group.example.unexpected(baseline=baseline)
        ):
            continue
        which = f"opset {group.which('').strip()}"
        new.append(
            DefectLine(
                f"{which}: {', '.join(filter(None, (kind.outcome.value, kind.error)))}",
                (kind.operator,),
                reading,
                group.number,
                unexpected=True,
                example=group.example.case,
                target=kind.target,
                kind=kind,
                targets=(kind.target,),
            )
        )
    order = list(DEFECTS)
    new.sort(
        key=lambda each: (order.index(each.reading) if each.reading in order else len(order), -each.cases)
    )
    known = []
    for found in tables.deviations.defects():
        since, mended = releases(found.entry.releases or {})
        title = found.entry.name + (" (not reviewed yet)" if found.entry.pending else "")
        _, example, target = found.smallest or (0, "", "")
        known.append(
            DefectLine(
                title,
                _frequent(found.operators),
                found.reading,
                found.results,
                since=since,
                mended=mended,
                link=found.entry.link,
                example=example,
                target=target,
                number=found.number,
                everywhere=found.entry.releases == {},
                targets=_frequent(found.targets),
            )
        )
    return new + known + _without_entry(tables, known)


def _frequent(found: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(found, key=lambda name: (-found[name], name)))


def _without_entry(tables: Tables, known: list[DefectLine]) -> list[DefectLine]:
    """Return the known deviations that no entry of the run file explains."""
    total = tables.tally()
    title = WITHOUT_ENTRY if tables.header.baseline is None else OF_BASELINE
    rows = []
    for reading in DEFECTS:
        rest = total.known(reading) - sum(each.cases for each in known if each.reading is reading)
        if rest > 0:
            rows.append(DefectLine(title, (), reading, rest))
    return rows


def releases(ranges: Mapping[str, str]) -> tuple[str, str]:
    """Read from an entry's version ranges since which release it holds, and which one mended it: `>=1.24,<1.28`
    gives 1.24 and 1.28."""
    since, mended = [], []
    for name, wanted in ranges.items():
        text = wanted.replace("_", ".")
        since += [_NAMES.get(name, f"{name} ") + found[1] for found in [_FIRST.search(text)] if found]
        mended += [_NAMES.get(name, f"{name} ") + found[1] for found in [_MENDED.search(text)] if found]
    return ", ".join(since), ", ".join(mended)


def release_words(since: str, mended: str) -> str:
    """Say in which releases a defect is: `since 1.24, mended in 1.28`, `every release`."""
    said = [f"since {since}"] * bool(since) + [f"mended in {mended}"] * bool(mended)
    return ", ".join(said) or "every release"


def defect_words(rows: list[DefectLine]) -> str:
    """Write how many defects there are: `9 wrong, 1 crashed, 7 accepted`."""
    kinds = [
        f"{number:,} {reading.value}"
        for reading in (*DEFECTS, Reading.NOT_SUPPORTED, Reading.NOT_JUDGED)
        if (number := sum(row.reading is reading for row in rows))
    ]
    return ", ".join(kinds)
