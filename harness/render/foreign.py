"""Maps a result to the status that other tools' test reports use, once for JUnit and CTRF.

| result | status |
|---|---|
| unexpected (`verdict.unexpected`) | failed; JUnit: error where the target died (crash, timeout) or the oracle is at fault |
| target unavailable, or case not run | skipped, with that word as its type |
| conforming, as far as something is claimed of the result | passed |
| within an infinite bound: nothing is claimed | skipped, with the type nothing_claimed |
| a pass without an element | skipped, with the type no_elements |
| an invalid case that ONNX Runtime's core rejected | skipped, with the type refused_by_core |
| anything else: an expected deviation | known (JUnit: skipped with type `known …`, as pytest writes xfail; CTRF: other) |
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Literal

from harness.model.header import Expectation, Header
from harness.model.result import Result
from harness.model.verdict import (
    NOT_EXECUTED,
    Outcome,
    conforms,
    judged,
    unexpected,
)
from harness.render.terminal import describe
from harness.render.text import line
from harness.results.guidance import can_repro, run_again
from harness.results.runfile import RunReader

Status = Literal["passed", "failed", "error", "known", "skipped"]

MESSAGE = 4000
APART = {"unclaimed": "nothing_claimed", "empty": "no_elements", "core": "refused_by_core"}
"""Why a result that counts apart (`Result.apart`) is skipped."""
_DIED = frozenset({Outcome.CRASH, Outcome.TIMEOUT, Outcome.ORACLE_ERROR})


def status(result: Result, header: Header) -> Status:
    """Translate a result's outcome and verdict; failed is what turns the run red (`verdict.unexpected`)."""
    if unexpected(result.validity, result.outcome, result.verdict, baseline=header.baseline is not None):
        return "error" if result.outcome in _DIED else "failed"
    if result.outcome in NOT_EXECUTED:
        return "skipped"
    if result.apart:
        return "skipped"
    return "passed" if conforms(result.validity, result.outcome) else "known"


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
    """Return the entry that explains a known deviation; None where the result is none, or names none."""
    number = result.expectation
    return (
        header.expectations.get(number)
        if isinstance(number, int) and status(result, header) == "known"
        else None
    )


def summary(result: Result, header: Header) -> str:
    """Say in one line what happened and how it was judged, of a known deviation by which entry."""
    entry = entry_of(result, header)
    said = f"{judged(result.outcome, result.verdict)}: {describe(result)}"
    if entry is None:
        return said
    return f"{said} · {'not reviewed yet' if entry.pending else 'known deviation'}: {line(entry.name)}, {line(entry.link, 1000)}"
