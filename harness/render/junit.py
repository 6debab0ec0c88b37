"""Renders JUnit XML: a suite per target, a test case per result, versions as properties; written
incrementally, so any run fits in memory.

The GitHub, GitLab and Jenkins plugins read it; none of them knows a state for a known deviation: see
`foreign`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from harness.model.result import Result
from harness.model.target_info import TargetInfo
from harness.render.foreign import APART, MESSAGE, again, shown, status, summary
from harness.render.text import message, visible
from harness.results.runfile import RunReader
from harness.results.summary import target_facts

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(open_run: Callable[[], RunReader], *, only_unexpected: bool = False) -> Iterator[str]:
    """Yield the document; the run is read once for the counts and once for each target.

    With `only_unexpected` it holds, and counts, the results alone that turn the run red.
    """
    first = open_run()
    counts: dict[str, Counter[str]] = {target: Counter() for target in first.header.targets}
    seconds: dict[str, float] = dict.fromkeys(counts, 0.0)
    for result in shown(first, first.header, only_unexpected):
        counts[result.target][status(result, first.header)] += 1
        seconds[result.target] += result.seconds
    problems = first.end.problems if first.end else ()
    total: Counter[str] = Counter()
    for each in counts.values():
        total.update(each)
    total["failed"] += len(problems)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="onnxruntime-conformance-harness" {_numbers(total, sum(seconds.values()))}>\n'
    for target, info in first.header.targets.items():
        yield f"<testsuite name={_attribute(visible(target))} {_numbers(counts[target], seconds[target])}>\n<properties>\n"
        yield from _properties(info, {"run": first.header.run_id, "seed": str(first.header.seed)})
        yield "</properties>\n"
        results = shown(open_run(), first.header, only_unexpected)
        yield from _cases((result for result in results if result.target == target), first)
        yield "</testsuite>\n"
    if problems:
        yield f'<testsuite name="expectations" {_numbers(Counter(failed=len(problems)), 0.0)}>\n'
        for problem in problems:
            said = _attribute(message(problem, MESSAGE))
            yield f'<testcase classname="expectations" name={said} time="0"><failure type="expectation" message={said}/></testcase>\n'
        yield "</testsuite>\n"
    yield "</testsuites>\n"


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
            yield f'{head}><{tag} type="{result.outcome.value}" message={said}>{body}</{tag}></testcase>\n'
        else:
            reason = APART.get(result.apart, result.outcome.value)
            kind = reason if state == "skipped" else f"known {result.outcome.value}"
            yield f'{head}><skipped type="{kind}" message={said}/></testcase>\n'
