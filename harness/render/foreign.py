"""Maps a result to the status that other tools' test reports use, once for JUnit and CTRF.

| result | status |
|---|---|
| unexpected (`verdict.unexpected`) | failed; JUnit: error where the target died (crash, timeout) or the oracle is at fault |
| correct | passed |
| not judged, or does not apply to the target | skipped |
| wrong, crashed, accepted or not supported, as expected | known (JUnit: skipped, as pytest writes xfail; CTRF: other) |

The type of all but the passed ones is the reading. What a run lacks (`summary.missing`) is an error of its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Literal

from harness.model.header import Expectation, Header
from harness.model.result import Result
from harness.model.verdict import Outcome, Reading, judged
from harness.render.payload import INEXPRESSIBLE, meaning
from harness.render.terminal import describe
from harness.render.text import line
from harness.results.guidance import can_repro, run_again
from harness.results.runfile import RunReader
from harness.results.tally import Tally

Status = Literal["passed", "failed", "error", "known", "skipped"]

MESSAGE = 4000
_DIED = frozenset({Outcome.CRASH, Outcome.TIMEOUT, Outcome.ORACLE_ERROR})


def status(result: Result, header: Header) -> Status:
    """Translate a result's outcome and verdict; failed is what turns the run red (`verdict.unexpected`)."""
    if result.unexpected(baseline=header.baseline is not None):
        return "error" if result.outcome in _DIED else "failed"
    means = meaning(result)
    if means == Reading.CORRECT:
        return "passed"
    return "skipped" if means in (Reading.NOT_JUDGED, INEXPRESSIBLE) else "known"


def numbers(tally: Tally) -> dict[str, int]:
    """Return the results by reading, and the unexpected ones among them."""
    found = {reading.value: tally[reading] for reading in Reading}
    return found | {f"unexpected {reading.value}": tally.red(reading) for reading in Reading}


def shown(results: Iterable[Result], header: Header, only_unexpected: bool) -> Iterator[Result]:
    """Yield the results, or those alone that turn the run red."""
    return (
        result for result in results if not only_unexpected or status(result, header) in ("failed", "error")
    )


def again(result: Result, run: RunReader) -> str:
    """Return the commands that repeat a result of a run, and that write it as a model with a script of its own."""
    commands = [run_again(run.header, [result.target], [result.case])]
    if can_repro(result, run.header):
        commands.append(["harness", "repro", str(run.path), result.case, "-t", result.target, "-o", "bug"])
    return "\n".join(map(shlex.join, commands))


def entry_of(result: Result, header: Header) -> Expectation | None:
    """Return the entry by which a result is known; None where it is not, or names none."""
    return header.entry(result.expectation) if status(result, header) == "known" else None


def summary(result: Result, header: Header) -> str:
    """Say in one line what happened and how it was judged, of a known one by which entry."""
    entry = entry_of(result, header)
    said = f"{judged(result.outcome, result.verdict)}: {describe(result)}"
    if entry is None:
        return said
    return f"{said} · {'not reviewed yet' if entry.pending else 'known'}: {line(entry.name)}, {line(entry.link, 1000)}"
