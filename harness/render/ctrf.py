"""Renders CTRF, the Common Test Report Format (ctrf.io, specification 0.0.0): one JSON document, written
incrementally.

A report has no clock, so `start` is the moment in the run id, or 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from itertools import chain
from typing import Any

from harness.model.header import Header
from harness.model.result import Repeats, Result
from harness.render.foreign import MESSAGE, entry_of, numbers, shown, status, summary
from harness.render.payload import meaning
from harness.render.text import json_text, line, message, visible
from harness.results.runfile import RunReader
from harness.results.summary import missing, target_facts
from harness.results.tally import Tally, state_of

_STATUS = {"passed": "passed", "failed": "failed", "error": "failed", "known": "other", "skipped": "skipped"}
_MOMENT = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T-]?(\d\d)[:-]?(\d\d)[:-]?(\d\d)")


def render_ctrf(open_run: Callable[[], RunReader], *, only_unexpected: bool = False) -> Iterator[str]:
    """Yield the document; the run is read twice, first for the counts.

    With `only_unexpected` it holds, and counts, the results alone that turn the run red.
    """
    first = open_run()
    header = first.header
    counts: Counter[str] = Counter()
    readings = Tally()
    seconds = 0.0
    for result in first:
        readings.add(state_of(result, baseline=header.baseline is not None))
        for each in shown([result], header, only_unexpected):
            counts[_STATUS[status(each, header)]] += 1
            seconds += each.seconds
    lacks = missing(header, first.end, readings.selected)
    counts["failed"] += len(lacks)
    if first.end is not None and first.end.seconds:
        seconds = first.end.seconds
    start = _start(header)
    length = round(seconds * 1000)
    head = {
        "tests": counts.total(),
        **{word: counts[word] for word in ("passed", "failed", "skipped", "pending", "other")},
        "suites": len(header.targets) + bool(lacks),
        "start": start,
        "stop": start + length,
        "duration": length,
        "extra": numbers(readings),
    }
    environment = {
        "extra": {
            visible(target): {visible(name): visible(fact) for name, fact in target_facts(info)}
            for target, info in header.targets.items()
        }
    }
    yield '{"reportFormat":"CTRF","specVersion":"0.0.0","generatedBy":"onnxruntime-conformance-harness","results":{'
    yield '"tool":{"name":"onnxruntime-conformance-harness"},'
    yield f'"summary":{json_text(head)},"environment":{json_text(environment)},"tests":['
    comma = "\n"
    tests = (_test(result, header) for result in shown(open_run(), header, only_unexpected))
    for test in chain((_lacking(text) for text in lacks), tests):
        yield comma + json_text(test)
        comma = ",\n"
    yield "\n]}}\n"


def _start(header: Header) -> int:
    moment = _MOMENT.search(header.run_id)
    if moment is None:
        return 0
    try:
        return int(
            datetime.strptime("".join(moment.groups()), "%Y%m%d%H%M%S")
            .replace(tzinfo=timezone.utc)
            .timestamp()
            * 1000
        )
    except ValueError:
        return 0


def _lacking(text: str) -> dict[str, Any]:
    """Return a failed test for what the run lacks."""
    return {
        "name": visible(text),
        "status": "failed",
        "duration": 0,
        "suite": ["run"],
        "rawStatus": "incomplete",
        "message": visible(text),
    }


def _test(result: Result, header: Header) -> dict[str, Any]:
    state = status(result, header)
    test: dict[str, Any] = {
        "name": visible(result.case) or "(no id)",
        "status": _STATUS[state],
        "duration": round(result.seconds * 1000),
        "suite": [visible(result.target), visible(result.operator)],
        "rawStatus": result.outcome.value,
        "tags": [result.validity.value, result.verdict.value, meaning(result)],
    }
    if isinstance(result.repeats, Repeats):
        test["retries"] = result.repeats.runs
        test["flaky"] = result.flaky
    if state != "passed":
        test["message"] = summary(result, header)
        if result.error is not None and state != "skipped":
            test["trace"] = message(result.error.message, MESSAGE)
    if (entry := entry_of(result, header)) is not None:
        test["extra"] = {
            "entry": line(entry.name),
            "reason": line(entry.reason, 1000),
            "link": line(entry.link, 1000),
        }
    return test
