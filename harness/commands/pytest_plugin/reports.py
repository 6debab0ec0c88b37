"""Converts results to pytest reports.

| result | pytest |
|---|---|
| correct | passed |
| wrong, crashed, accepted or not supported, as an entry expects | xfailed, with the entry's reason and link; failed with `--runxfail` |
| unexpected: a regression, a changed result, an improvement (as a strict xfail) | failed |
| not judged, or does not apply to the target | skipped, with the reason |
| its target is not here (any more) | failed, with the line that says why |

The status is that of JUnit and CTRF (`render.foreign`).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from harness.commands.pytest_plugin.execution import ItemRuns, Wanted
from harness.commands.pytest_plugin.items import CaseItem
from harness.model.errors import TargetUnavailable
from harness.model.header import Expectation, Header
from harness.model.result import Result
from harness.model.verdict import Outcome, Verdict, judged
from harness.render.foreign import status, summary
from harness.render.terminal import describe
from harness.render.text import line, visible

_KEYWORDS: dict[str, Literal[1]] = {"harness": 1}


def reports(item: CaseItem, execution: ItemRuns) -> Iterator[pytest.TestReport]:
    """Yield the reports of a case: what came of it, and that nothing is left of it, by which others know that
    it has ended."""
    skip = item.get_closest_marker("skip")
    if skip is not None:
        yield _report(
            item,
            "skipped",
            _skipped(item, str(skip.kwargs.get("reason", *skip.args[:1] or ["unconditional skip"]))),
        )
    else:
        try:
            yield _of_result(item, *execution.result(Wanted(item.case, item.target.name)))
        except TargetUnavailable as error:
            yield _report(item, "failed", str(error))
    yield _report(item, "passed", None, when="teardown")


def _of_result(item: CaseItem, result: Result, header: Header) -> pytest.TestReport:
    state = status(result, header)
    seconds = result.seconds
    entry = header.entry(result.expectation)
    if state == "passed":
        return _report(item, "passed", None, seconds=seconds)
    if state == "skipped":
        return _report(item, "skipped", _skipped(item, summary(result, header)), seconds=seconds)
    if state == "known" and not item.config.getoption("runxfail"):
        return _report(item, "skipped", "", wasxfail=f"{describe(result)} · {_known(entry)}", seconds=seconds)
    return _report(item, "failed", _failure(item, result, entry), seconds=seconds)


def _known(entry: Expectation | None) -> str:
    if entry is None:
        return "known deviation"
    return f"{'not reviewed yet' if entry.pending else 'known'}: {line(entry.reason, 1000)} {line(entry.link, 1000)}"


def _failure(item: CaseItem, result: Result, entry: Expectation | None) -> str:
    """Write what happened, why that is unexpected, where the case is written, and how it is repeated without
    pytest."""
    said = [f"{judged(result.outcome, result.verdict)}: {describe(result)}"]
    if result.verdict is Verdict.IMPROVEMENT:
        said[0] = f"[XPASS(strict)] {said[0]}: remove or narrow the expectation"
    if entry is not None:
        said.append(_known(entry))
    if result.outcome is Outcome.ACCEPTED_INVALID and item.case.rule:
        said.append(f"the rule: {line(item.case.rule, 1000)}")
    where, number, _ = item.location
    said.append(f"{where}:{(number or 0) + 1}")
    said.append(shlex.join(["harness", "run", where, "-t", item.target.name, "-k", item.case.id]))
    return "\n".join(map(visible, said))


def _skipped(item: CaseItem, reason: str) -> tuple[str, int, str]:
    return str(item.path), (item.location[1] or 0) + 1, f"Skipped: {reason}"


def _report(
    item: CaseItem,
    outcome: Literal["passed", "failed", "skipped"],
    shown: Any,
    when: Literal["call", "teardown"] = "call",
    seconds: float = 0.0,
    **more: Any,
) -> pytest.TestReport:
    return pytest.TestReport(
        item.nodeid, item.location, _KEYWORDS, outcome, shown, when, duration=seconds, **more
    )
