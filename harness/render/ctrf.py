"""Renders CTRF, the Common Test Report Format (ctrf.io, specification 0.0.0): one JSON document, written
incrementally.

A report has no clock, so `start` is the moment in the run id, or 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

import msgspec

from harness.model.header import Header
from harness.model.result import Repeats, Result
from harness.render.foreign import MESSAGE, entry_of, shown, status, summary
from harness.render.text import line, message, visible
from harness.results.runfile import RunReader
from harness.results.summary import target_facts

_STATUS = {"passed": "passed", "failed": "failed", "error": "failed", "known": "other", "skipped": "skipped"}
_MOMENT = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T-]?(\d\d)[:-]?(\d\d)[:-]?(\d\d)")


def _dump(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def render_ctrf(open_run: Callable[[], RunReader], *, only_unexpected: bool = False) -> Iterator[str]:
    """Yield the document; the run is read twice, first for the counts.

    With `only_unexpected` it holds, and counts, the results alone that turn the run red.
    """
    first = open_run()
    counts: Counter[str] = Counter()
    seconds = 0.0
    for result in shown(first, first.header, only_unexpected):
        counts[_STATUS[status(result, first.header)]] += 1
        seconds += result.seconds
    if first.end is not None and first.end.seconds:
        seconds = first.end.seconds
    start = _start(first.header)
    length = round(seconds * 1000)
    numbers = {word: counts[word] for word in ("passed", "failed", "skipped", "pending", "other")}
    head = {
        "tests": counts.total(),
        **numbers,
        "suites": len(first.header.targets),
        "start": start,
        "stop": start + length,
        "duration": length,
    }
    environment = {
        "extra": {target: dict(target_facts(info)) for target, info in first.header.targets.items()}
    }
    yield '{"reportFormat":"CTRF","specVersion":"0.0.0","generatedBy":"onnxruntime-conformance-harness","results":{'
    yield '"tool":{"name":"onnxruntime-conformance-harness"},'
    yield f'"summary":{_dump(head)},"environment":{_dump(environment)},"tests":['
    comma = "\n"
    for result in shown(open_run(), first.header, only_unexpected):
        yield comma + _dump(_test(result, first.header))
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


def _test(result: Result, header: Header) -> dict[str, Any]:
    state = status(result, header)
    test: dict[str, Any] = {
        "name": visible(result.case) or "(no id)",
        "status": _STATUS[state],
        "duration": round(result.seconds * 1000),
        "suite": [result.target, result.operator],
        "rawStatus": result.outcome.value,
        "tags": [result.validity.value, result.verdict.value],
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
            "known deviation": line(entry.name),
            "reason": line(entry.reason, 1000),
            "link": line(entry.link, 1000),
        }
    return test
