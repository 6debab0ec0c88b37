"""Renders test reports for other tools, JUnit XML and CTRF; both are written incrementally, so any run fits in memory.

A result is mapped to the status that such reports use:

| result | status |
|---|---|
| unexpected (`verdict.unexpected`) | failed; JUnit: error where the target died (crash, timeout) or the oracle is at fault |
| correct | passed |
| not judged, or does not apply to the target | skipped |
| wrong, crashed, accepted or not supported, as expected | known (JUnit: skipped, as pytest writes xfail; CTRF: other) |

The type of all but the passed ones is the reading. What a run lacks (`summary.missing`) is an error of its own.

JUnit XML has a suite per target, a test case per result, versions as properties. The GitHub, GitLab and Jenkins plugins
read it; none of them knows a state for a known deviation.

CTRF (Common Test Report Format, ctrf.io, specification 0.0.0) is one JSON document. A report has no clock, so `start`
is the moment in the run id, or 0.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timezone
from itertools import chain
from typing import Any, Literal
from xml.sax.saxutils import escape, quoteattr

from harness.model.header import Expectation, Header
from harness.model.result import Repeats, Result
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Reading, judged
from harness.render.payload import INEXPRESSIBLE, meaning
from harness.render.terminal import describe
from harness.render.text import json_text, line, message, visible
from harness.results.guidance import can_repro, run_again
from harness.results.runfile import RunReader
from harness.results.summary import missing, target_facts
from harness.results.tally import Tally, state_of

Status = Literal["passed", "failed", "error", "known", "skipped"]

MESSAGE = 4000
_DIED = frozenset({Outcome.CRASH, Outcome.TIMEOUT, Outcome.ORACLE_ERROR})
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CTRF = {"passed": "passed", "failed": "failed", "error": "failed", "known": "other", "skipped": "skipped"}
_MOMENT = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T-]?(\d\d)[:-]?(\d\d)[:-]?(\d\d)")


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


def render_junit(open_run: Callable[[], RunReader], *, only_unexpected: bool = False) -> Iterator[str]:
    """Yield the document; the run is read once for the counts and once for each target.

    With `only_unexpected` it holds, and counts, the results alone that turn the run red.
    """
    first = open_run()
    header = first.header
    counts: dict[str, Counter[str]] = {target: Counter() for target in header.targets}
    readings = {target: Tally() for target in header.targets}
    seconds: dict[str, float] = dict.fromkeys(counts, 0.0)
    for result in first:
        readings[result.target].add(state_of(result, baseline=header.baseline is not None))
        for each in shown([result], header, only_unexpected):
            counts[each.target][status(each, header)] += 1
            seconds[each.target] += each.seconds
    lacks = missing(header, first.end, sum(tally.selected for tally in readings.values()))
    problems = first.end.problems if first.end else ()
    total: Counter[str] = Counter(failed=len(problems), error=len(lacks))
    for found in counts.values():
        total.update(found)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="onnxruntime-conformance-harness" {_numbers(total, sum(seconds.values()))}>\n'
    for target, info in header.targets.items():
        yield f"<testsuite name={_attribute(visible(target))} {_numbers(counts[target], seconds[target])}>\n<properties>\n"
        of_run = {"run": header.run_id, "seed": str(header.seed)}
        yield from _properties(info, of_run | {name: str(n) for name, n in numbers(readings[target]).items()})
        yield "</properties>\n"
        results = shown(open_run(), header, only_unexpected)
        yield from _cases((result for result in results if result.target == target), first)
        yield "</testsuite>\n"
    yield from _suite("expectations", "failed", '<failure type="expectation"', problems)
    yield from _suite("run", "error", '<error type="incomplete"', lacks)
    yield "</testsuites>\n"


def _suite(name: str, state: str, element: str, texts: Sequence[str]) -> Iterator[str]:
    """Write a suite of messages that are no results: one test case per text, no suite without texts."""
    if not texts:
        return
    yield f'<testsuite name="{name}" {_numbers(Counter({state: len(texts)}), 0.0)}>\n'
    for text in texts:
        said = _attribute(message(text, MESSAGE))
        yield f'<testcase classname="{name}" name={said} time="0">{element} message={said}/></testcase>\n'
    yield "</testsuite>\n"


def _numbers(counts: Counter[str], seconds: float) -> str:
    skipped = counts["skipped"] + counts["known"]
    tests = sum(counts.values())
    return f'tests="{tests}" failures="{counts["failed"]}" errors="{counts["error"]}" skipped="{skipped}" time="{seconds:.6f}"'


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _attribute(text: str) -> str:
    return quoteattr(_text(text), {"\n": "&#10;", "\t": "&#9;"})


def _properties(info: TargetInfo, more: dict[str, str]) -> Iterator[str]:
    for name, value in (*target_facts(info), *more.items()):
        yield f"<property name={_attribute(name)} value={_attribute(message(value, MESSAGE))}/>\n"


def _body(result: Result, run: RunReader) -> Iterator[str]:
    if result.error is not None:
        yield message(result.error.message, MESSAGE)
    if result.diff is not None:
        yield f"expected: {visible(result.diff.expected)}"
        yield f"actual:   {visible(result.diff.actual)}"
    yield visible(again(result, run))


def _cases(results: Iterable[Result], run: RunReader) -> Iterator[str]:
    header = run.header
    for result in results:
        name = _attribute(visible(result.case))
        # a dot divides packages, and those of a version would
        package = result.target.replace(".", "_")
        head = f'<testcase classname={_attribute(visible(f"{package}.{result.operator}"))} name={name} time="{result.seconds:.6f}"'
        state = status(result, header)
        if state == "passed":
            yield f"{head}/>\n"
            continue
        said = _attribute(_text(summary(result, header)))
        if state in ("failed", "error"):
            tag = "failure" if state == "failed" else "error"
            body = escape(_text("\n".join(_body(result, run))))
            yield f'{head}><{tag} type="{meaning(result)}" message={said}>{body}</{tag}></testcase>\n'
        else:
            yield f'{head}><skipped type="{meaning(result)}" message={said}/></testcase>\n'


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
            counts[_CTRF[status(each, header)]] += 1
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
        when = datetime.strptime("".join(moment.groups()), "%Y%m%d%H%M%S")
        return int(when.replace(tzinfo=timezone.utc).timestamp() * 1000)
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
        "status": _CTRF[state],
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
