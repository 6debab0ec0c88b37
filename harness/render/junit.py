"""Renders JUnit XML: a suite per target, a test case per result, versions as properties; written
incrementally, so any run fits in memory.

The GitHub, GitLab and Jenkins plugins read it; none of them knows a state for a known deviation: see
`foreign`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from harness.model.result import Result
from harness.model.target_info import TargetInfo
from harness.render.foreign import MESSAGE, again, numbers, shown, status, summary
from harness.render.payload import meaning
from harness.render.text import message, visible
from harness.results.runfile import RunReader
from harness.results.summary import missing, target_facts
from harness.results.tally import Tally, state_of

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
