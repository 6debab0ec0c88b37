"""The six readings of a run with their numbers: the one sum that every report shows."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from harness.model.verdict import DEFECTS, Reading
from harness.results.tables import Tables
from harness.results.tally import Tally

MEANINGS = {
    Reading.CORRECT: "as ONNX defines",
    Reading.WRONG: "value, shape or type, or refused once optimised",
    Reading.CRASHED: "or hung",
    Reading.ACCEPTED: "invalid input",
    Reading.NOT_SUPPORTED: "does not run",
    Reading.NOT_JUDGED: "left open",
}
"""What each reading means, in two lines of a terminal."""
EXPLANATIONS = {
    Reading.CORRECT: "A valid case gives what ONNX defines, bit for bit or within the bound of the formula; an invalid one is refused.",
    Reading.WRONG: "Other values, another shape or another type than ONNX defines, or memory that the case does not own.",
    Reading.CRASHED: "The process ended or hung.",
    Reading.ACCEPTED: "An invalid case ran without an error.",
    Reading.NOT_SUPPORTED: "A valid case does not run: no kernel for it, not placed on the provider, or refused.",
    Reading.NOT_JUDGED: "ONNX leaves the result open, or there is nothing to compare; the reasons stand beside it.",
}


BESIDE = 5
"""Targets whose numbers stand beside each other in a page; of more there is a line for each."""


class ReadingRow(NamedTuple):
    """The number of results with a reading, on each target and in all, the number of `unexpected` ones, and
    remarks on the others."""

    reading: Reading
    by_target: dict[str, int]
    number: int
    unexpected: int
    detail: str


def reading_rows(tables: Tables) -> list[ReadingRow]:
    """Return a row for each reading that occurs; their numbers add up to the results of the run."""
    total = tables.tally()
    tallies = {target: tables.tally(target=target) for target in tables.targets}
    return [
        ReadingRow(
            reading,
            {target: tally[reading] for target, tally in tallies.items()},
            total[reading],
            total.red(reading),
            _detail(tables, total, reading),
        )
        for reading in Reading
        if total[reading]
    ]


def unexpected_words(total: Tally) -> str:
    """Write the unexpected results by reading: `3 wrong, 1 crashed`."""
    order = (*DEFECTS, Reading.NOT_SUPPORTED, Reading.NOT_JUDGED, Reading.CORRECT)
    against = {Reading.CORRECT: "correct against an entry"}
    return ", ".join(
        f"{total.red(reading):,} {against.get(reading, reading.value)}"
        for reading in order
        if total.red(reading)
    )


def _detail(tables: Tables, total: Tally, reading: Reading) -> str:
    if reading is Reading.NOT_JUDGED:
        return " · ".join(f"{reason} {number:,}" for reason, number in total.reasons.most_common())
    if reading is Reading.NOT_SUPPORTED:
        lacking = Counter(
            operator for (operator,), tally in tables.by("operator").items() if tally[Reading.NOT_SUPPORTED]
        )
        operators = len(tables.operators)
        return f"types without a kernel: complete for {operators - len(lacking):,} of {operators:,} operators"
    entries = tables.deviations.by_reading(reading) if reading in DEFECTS else []
    if not entries:
        return ""
    return f"in {len(entries):,} known defect{'s' if len(entries) > 1 else ''}"
