"""The six readings: what each result means, and that every format has the same six numbers."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
import zlib
from base64 import b64decode
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness import api
from harness.commands import compare
from harness.commands.history import RENDERINGS, answer
from harness.model.case import Validity
from harness.model.header import Expectation
from harness.model.result import NOT_EXPRESSIBLE, Accuracy, Diff, Error, Memory, Result
from harness.model.verdict import Apart, Outcome, Reading, Verdict, fails, reading, why_not_judged
from harness.render.console import Console
from harness.render.csv_tables import render_case_csv, render_csv
from harness.render.foreign import render_ctrf, render_junit
from harness.render.html import render_html
from harness.render.report import render_markdown
from harness.render.site import render_site
from harness.render.terminal import render_terminal
from harness.results.compare.joined import compare_runs
from harness.results.counted import read_tables
from harness.results.history.recorded import RecordedRuns
from harness.results.history.site import SiteRuns
from harness.results.report import Report
from harness.results.runfile import RunReader
from harness.triage.repro import template
from harness.triage.repro.script import expected_lines
from tests import synthetic
from tests.golden import check_golden
from tests.running import ROUND, harness, script_of
from tests.synthetic import ABSENT, CPU, DML

GOLDEN = Path(__file__).parents[1] / "golden"
VALID, INVALID, OPEN = Validity.VALID, Validity.INVALID, Validity.UNSPECIFIED


@pytest.mark.parametrize(
    ("validity", "outcome", "apart", "outside", "expected"),
    [
        (VALID, Outcome.PASS, "", False, Reading.CORRECT),
        (INVALID, Outcome.REJECTED, "", False, Reading.CORRECT),
        (VALID, Outcome.MISMATCH, "", False, Reading.WRONG),
        (VALID, Outcome.MISMATCH, "", True, Reading.WRONG),
        (OPEN, Outcome.MISMATCH, "", True, Reading.WRONG),
        (OPEN, Outcome.ACCEPTED_INVALID, "", True, Reading.WRONG),
        (INVALID, Outcome.ACCEPTED_INVALID, "", True, Reading.ACCEPTED),
        *((validity, Outcome.CRASH, "", False, Reading.CRASHED) for validity in Validity),
        *((validity, Outcome.TIMEOUT, "", False, Reading.CRASHED) for validity in Validity),
        (INVALID, Outcome.ACCEPTED_INVALID, "", False, Reading.ACCEPTED),
        (VALID, Outcome.UNSUPPORTED, "", False, Reading.NOT_SUPPORTED),
        (VALID, Outcome.NOT_PLACED, "", False, Reading.NOT_SUPPORTED),
        (VALID, Outcome.REJECTED, "", False, Reading.NOT_SUPPORTED),
        (VALID, Outcome.NOT_RUN, "", False, Reading.NOT_SUPPORTED),
    ],
)
def test_what_a_result_means(
    validity: Validity, outcome: Outcome, apart: Apart, outside: bool, expected: Reading
) -> None:
    assert reading(validity, outcome, apart, outside=outside) is expected


def test_a_graph_that_only_the_optimizer_breaks_is_wrong() -> None:
    for outcome in (Outcome.UNSUPPORTED, Outcome.REJECTED):
        assert reading(VALID, outcome, "", outside=False, transformed=True) is Reading.WRONG


@pytest.mark.parametrize(
    ("validity", "outcome", "apart", "reason"),
    [
        *(
            (OPEN, outcome, "", "unspecified")
            for outcome in Outcome
            if outcome not in (Outcome.CRASH, Outcome.TIMEOUT, Outcome.UNAVAILABLE, Outcome.ORACLE_ERROR)
        ),
        (VALID, Outcome.PASS, "empty", "no element"),
        (VALID, Outcome.PASS, "unclaimed", "infinite bound"),
        (INVALID, Outcome.REJECTED, "core", "refused by the core"),
        (INVALID, Outcome.UNSUPPORTED, "", "no kernel"),
        (INVALID, Outcome.NOT_PLACED, "", "no kernel"),
        (INVALID, Outcome.NOT_RUN, "", "not run"),
        *((validity, Outcome.UNAVAILABLE, "", "not available") for validity in Validity),
        *((validity, Outcome.ORACLE_ERROR, "", "oracle error") for validity in (VALID, OPEN)),
    ],
)
def test_what_is_not_judged_has_a_reason(
    validity: Validity, outcome: Outcome, apart: Apart, reason: str
) -> None:
    assert reading(validity, outcome, apart, outside=False) is Reading.NOT_JUDGED
    assert why_not_judged(validity, outcome, apart) == reason


@pytest.mark.parametrize("verdict", [Verdict.REGRESSION, Verdict.CHANGED, Verdict.NEW])
@pytest.mark.parametrize(
    ("outcome", "outside", "expected"),
    [
        (Outcome.CRASH, False, True),
        (Outcome.TIMEOUT, False, True),
        (Outcome.MISMATCH, True, True),
        (Outcome.ACCEPTED_INVALID, True, True),
        (Outcome.MISMATCH, False, False),
        (Outcome.REJECTED, False, False),
        (Outcome.NOT_RUN, False, False),
    ],
)
def test_an_unspecified_case_may_do_anything_but_end_the_process_or_read_foreign_memory(
    outcome: Outcome, outside: bool, expected: bool, verdict: Verdict
) -> None:
    assert fails(OPEN, outcome, verdict, outside=outside) is expected
    assert not fails(OPEN, outcome, Verdict.EXPECTED, outside=outside)


ENTRIES = {
    0: Expectation((Outcome.MISMATCH,), "A known cause.", "https://example.org/1", "Adds in another order"),
    1: Expectation((Outcome.CRASH,), "Another.", "https://example.org/2", "Divides by zero"),
}
FOREIGN = Memory(0, 2, 0, 4)


def _results(target: str, provider: str) -> list[Result]:
    """Every reading, known and, as far as that can be, unexpected, in another number each."""
    diff = Diff(3, 1, 4, (0,), "1.0", "2.0")
    kinds: list[tuple[int, Validity, Outcome, Verdict, dict[str, object]]] = [
        (31, VALID, Outcome.PASS, Verdict.EXPECTED, {}),
        (2, INVALID, Outcome.REJECTED, Verdict.EXPECTED, {}),
        (1, VALID, Outcome.PASS, Verdict.IMPROVEMENT, {}),
        (5, VALID, Outcome.MISMATCH, Verdict.EXPECTED, {"expectation": 0}),
        (3, VALID, Outcome.MISMATCH, Verdict.REGRESSION, {}),
        (1, OPEN, Outcome.MISMATCH, Verdict.REGRESSION, {"memory": FOREIGN}),
        (4, VALID, Outcome.CRASH, Verdict.EXPECTED, {"expectation": 1}),
        (1, OPEN, Outcome.CRASH, Verdict.REGRESSION, {}),
        (1, OPEN, Outcome.TIMEOUT, Verdict.NEW, {}),
        (7, INVALID, Outcome.ACCEPTED_INVALID, Verdict.EXPECTED, {}),
        (2, INVALID, Outcome.ACCEPTED_INVALID, Verdict.NEW, {"memory": FOREIGN}),
        (11, VALID, Outcome.UNSUPPORTED, Verdict.EXPECTED, {}),
        (1, VALID, Outcome.NOT_RUN, Verdict.EXPECTED, {}),
        (2, VALID, Outcome.REJECTED, Verdict.CHANGED, {}),
        (13, OPEN, Outcome.REJECTED, Verdict.EXPECTED, {}),
        (2, VALID, Outcome.PASS, Verdict.EXPECTED, {"empty": True}),
        (3, VALID, Outcome.PASS, Verdict.EXPECTED, {"accuracy": Accuracy(0.0, 0.0, 4, 4)}),
        (4, INVALID, Outcome.REJECTED, Verdict.EXPECTED, {"error": Error("Fail", "no", "core")}),
        (1, VALID, Outcome.ORACLE_ERROR, Verdict.REGRESSION, {}),
        (6, VALID, Outcome.NOT_RUN, Verdict.EXPECTED, {"error": Error(NOT_EXPRESSIBLE, "no words")}),
    ]
    placed = {Outcome.PASS, Outcome.MISMATCH, Outcome.ACCEPTED_INVALID, Outcome.ORACLE_ERROR}
    found = []
    for kind, (number, validity, outcome, verdict, more) in enumerate(kinds):
        result = synthetic.result(
            "",
            outcome,
            verdict,
            target=target,
            operator="",
            validity=validity,
            placed_on=provider if outcome in placed else None,
            diff=diff if outcome in (Outcome.MISMATCH, Outcome.ORACLE_ERROR) else None,
            error=None if outcome in placed else Error("Fail", "it failed"),
        )
        for draw in range(number):
            operator = f"Operator{(kind + draw) % 3}"
            case = f"{operator}@13:case=a{kind};X=float32[2];draw={draw}"
            found.append(msgspec.structs.replace(result, case=case, operator=operator, **more))
    return found


TARGETS = {"cpu": CPU, "dml": DML, "dml@windows": ABSENT}


def _absent(result: Result) -> Result:
    """The same case where its target is not available; what the API has no words for stays so."""
    if result.error is not None and result.error.class_ == NOT_EXPRESSIBLE:
        return msgspec.structs.replace(result, target="dml@windows")
    return synthetic.result(
        result.case,
        Outcome.UNAVAILABLE,
        Verdict.MISSING,
        target="dml@windows",
        operator=result.operator,
        validity=result.validity,
        levels=result.levels,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cpu = _results("cpu", CPU.provider)
    results = [*cpu, *_results("dml", DML.provider), *map(_absent, cpu)]
    path = tmp_path_factory.mktemp("readings") / "run.jsonl"
    return synthetic.write_results(path, results, TARGETS, expectations=ENTRIES)


EXPECTED = {
    Reading.CORRECT: 2 * 34,
    Reading.WRONG: 2 * 9,
    Reading.CRASHED: 2 * 6,
    Reading.ACCEPTED: 2 * 9,
    Reading.NOT_SUPPORTED: 2 * 14,
    Reading.NOT_JUDGED: 2 * 23 + 95,
}
UNEXPECTED = {
    Reading.CORRECT: 2,
    Reading.WRONG: 8,
    Reading.CRASHED: 4,
    Reading.ACCEPTED: 4,
    Reading.NOT_SUPPORTED: 4,
    Reading.NOT_JUDGED: 2,
}


def terminal(run: Path) -> str:
    out = io.StringIO()
    render_terminal(Report(read_tables(RunReader(run))), Console(file=out, width=80, no_color=True))
    return out.getvalue()


def _numbers(text: str, pattern: str) -> dict[Reading, int]:
    """Read one number of each reading from a text in which `pattern` stands around `READING` and `NUMBER`."""
    found = {}
    for each in Reading:
        match = re.search(pattern.replace("READING", each.value).replace("NUMBER", r"([\d,]+)"), text)
        assert match is not None, (each, text[:3000])
        found[each] = int(match[1].replace(",", ""))
    return found


def _page(run: Path) -> dict[Reading, int]:
    """Count as the page's module does, from the data that it decodes."""
    data = re.search(r'id="data">([^<]+)<', render_html(run))
    assert data is not None
    raw = zlib.decompress(b64decode(data[1]), wbits=-15)
    length = int.from_bytes(raw[:4], "little")
    page = json.loads(raw[4 : 4 + length])
    offset, states = 4 + length, b""
    for name, width, count in page["columns"]:
        if name == "state":
            assert width == 1
            states = raw[offset : offset + count]
        offset += width * count
    words = Counter(page["judgements"][page["states"][state][3]] for state in states)
    assert words.pop("does not apply") == 18
    return {Reading(word): number for word, number in words.items()}


def _junit(run: Path) -> dict[Reading, int]:
    document = ElementTree.fromstring("".join(render_junit(lambda: RunReader(run))).encode())
    found: Counter[str] = Counter()
    for case in document.iter("testcase"):
        found["correct" if not len(case) else case[0].get("type", "")] += 1
    assert found.pop("does not apply") == 18
    return {Reading(word): number for word, number in found.items()}


def _junit_properties(run: Path) -> dict[Reading, int]:
    document = ElementTree.fromstring("".join(render_junit(lambda: RunReader(run))).encode())
    found: Counter[str] = Counter()
    for each in document.iter("property"):
        if each.get("name") in set(Reading):
            found[each.get("name", "")] += int(each.get("value", ""))
    return {Reading(word): number for word, number in found.items()}


def _ctrf(run: Path) -> dict[Reading, int]:
    results = json.loads("".join(render_ctrf(lambda: RunReader(run))))["results"]
    tags = Counter(tag for test in results["tests"] for tag in test["tags"] if tag in set(Reading))
    extra = results["summary"]["extra"]
    assert tags == {each.value: extra[each.value] for each in Reading}
    return {each: tags[each.value] for each in Reading}


def _cases(run: Path) -> dict[Reading, int]:
    rows = csv.DictReader(io.StringIO("".join(render_case_csv(RunReader(run)))))
    found = Counter(row["reading"] for row in rows)
    assert found.pop("does not apply") == 18
    return {Reading(word): number for word, number in found.items()}


def _levels(run: Path) -> dict[Reading, int]:
    rows = list(csv.DictReader(render_csv(read_tables(RunReader(run)))))
    return {each: sum(int(row[each.value]) for row in rows) for each in Reading}


def _site(run: Path) -> dict[Reading, int]:
    """Sum the rows of the site's index, one for each target."""
    counted = SiteRuns()
    with RecordedRuns() as recorded:
        recorded.add(RunReader(run))
        counted.count(run)
        index = dict(render_site(counted.site(recorded)))["index.html"]
    part = index[index.index('<section id="targets"') : index.index('<section id="runs"')]
    sums: Counter[Reading] = Counter()
    for row in re.findall(r"<tr><th scope=\"row\">.*?</tr>", part):
        numbers = [
            int(text.replace(",", ""))
            for text in re.findall(r"<td>(?:<[^>]+>✗ )?([\d,]+)(?:</span>)?</td>", row)
        ]
        assert numbers[0] == sum(numbers[1:7])
        sums.update(dict(zip(Reading, numbers[1:7], strict=True)))
    return dict(sums)


def _history(run: Path) -> dict[Reading, int]:
    with RecordedRuns() as recorded:
        recorded.add(RunReader(run))
        document = json.loads(RENDERINGS.text(answer(recorded), "json"))
    return {each: sum(row["readings"][each.value] for row in document["counts"]) for each in Reading}


def _compare(run: Path) -> str:
    return compare.RENDERINGS.text(compare_runs(RunReader(run), RunReader(run)), "markdown")


FORMATS: dict[str, Callable[[Path], dict[Reading, int]]] = {
    "terminal": lambda run: _numbers(terminal(run), r"(?m)^  READING +(?:[\d,]+ +){3}NUMBER"),
    "markdown": lambda run: _numbers(
        render_markdown(Report(read_tables(RunReader(run)))), r"(?m)^\| READING (?:\| [\d,]+ ){3}\| NUMBER \|"
    ),
    "page's table": lambda run: _numbers(
        render_html(run).partition("</table>")[0].replace("not%20", "not "),
        r'<tr class="sum">.*reading=READING">NUMBER</a>',
    ),
    "page's data": _page,
    "CSV of cases": _cases,
    "CSV of levels": _levels,
    "JUnit's test cases": _junit,
    "JUnit's properties": _junit_properties,
    "CTRF": _ctrf,
    "site": _site,
    "history": _history,
    "comparison": lambda run: _numbers(_compare(run), r"(?m)^\| READING \| NUMBER \|"),
    "API": lambda run: {each: known + red for each, (known, red) in api.read(run).readings().items()},
}


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_has_the_same_six_numbers(run: Path, format: str) -> None:
    assert FORMATS[format](run) == EXPECTED


def test_the_six_add_up_to_the_total_and_each_is_split(run: Path) -> None:
    tables = read_tables(RunReader(run))
    assert sum(EXPECTED.values()) == tables.tally().selected == tables.selected == 3 * 95
    assert api.read(run).readings() == {
        each: (EXPECTED[each] - UNEXPECTED[each], UNEXPECTED[each]) for each in Reading
    }
    assert sum(UNEXPECTED.values()) == tables.tally().unexpected == len(list(api.read(run).unexpected()))
    assert tables.tally().reasons == {
        "unspecified": 26,
        "no element": 4,
        "infinite bound": 6,
        "refused by the core": 8,
        "oracle error": 2,
        "not available": 95,
    }


def test_what_a_run_of_every_reading_ends_with(run: Path) -> None:
    text = terminal(run)
    assert all(len(line) <= 80 for line in text.splitlines() if "case=" not in line)
    check_golden(
        GOLDEN / "terminal_readings.txt", "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    )


SIGNS = re.compile(r"([\d,]+) ?/ ?([\d,]+)(?: |</?[^>]*>)*([✓✗])|([✓✗])(?: |</?[^>]*>)*([\d,]+) ?/ ?([\d,]+)")


def test_a_tick_never_stands_beside_a_part(run: Path) -> None:
    report = Report(read_tables(RunReader(run)))
    for text in (terminal(run), render_markdown(report), render_html(run)):
        for part, whole, after, before, part_after, whole_after in SIGNS.findall(text):
            if "✓" in (after, before):
                assert (part or part_after) == (whole or whole_after)


def test_no_cross_stands_in_a_green_run(tmp_path: Path) -> None:
    results = [each for each in _results("cpu", CPU.provider) if not each.unexpected(baseline=False)]
    outside = msgspec.structs.replace(results[33], accuracy=Accuracy(5.0, 9.0, 0, 4))
    assert outside.outcome is Outcome.MISMATCH
    path = synthetic.write_results(
        tmp_path / "run.jsonl", [*results[:33], outside, *results[34:]], {"cpu": CPU}, expectations=ENTRIES
    )
    report = Report(read_tables(RunReader(path)))
    assert report.summary.tone == "good"
    page = render_html(path)
    page = page[: page.index('id="data"')].replace(
        '<span class="mark" aria-hidden="true">✗</span> unexpected results', ""
    )
    for text in (terminal(path), render_markdown(report), page):
        assert "✗" not in text, text[max(0, text.index("✗") - 200) :][:300]


INCOMPLETE = {"cut off": "without its last line", "partial merge": "Merged without shard 2"}


def incomplete(run: Path, folder: Path, kind: str) -> Path:
    """The same run, cut off in a line, or merged of the first of two shards."""
    lines = run.read_bytes().splitlines(keepends=True)
    if kind == "cut off":
        lines = [*lines[:-3], lines[-3][:40]]
    else:
        header = json.loads(lines[0]) | {"merged": {"runs": ["one"], "missing": [2]}}
        end = json.loads(lines[-1])
        end["selected"] += 7
        lines = [json.dumps(header).encode() + b"\n", *lines[1:-1], json.dumps(end).encode() + b"\n"]
    path = folder / "run.jsonl"
    path.write_bytes(b"".join(lines))
    return path


@pytest.mark.parametrize("kind", INCOMPLETE)
@pytest.mark.parametrize("only_unexpected", [False, True])
def test_what_a_run_lacks_is_an_error_in_junit_and_ctrf(
    run: Path, tmp_path: Path, kind: str, only_unexpected: bool
) -> None:
    path = incomplete(run, tmp_path, kind)
    text = "".join(render_junit(lambda: RunReader(path), only_unexpected=only_unexpected))
    document = ElementTree.fromstring(text.encode())
    suite = document.findall("testsuite")[-1]
    assert (suite.get("name"), suite.get("errors")) == ("run", str(len(suite)))
    assert suite[0][0].get("type") == "incomplete"
    assert INCOMPLETE[kind] in suite[0].get("name", "")
    assert int(document.get("errors", "")) == len(document.findall(".//error"))
    results = json.loads("".join(render_ctrf(lambda: RunReader(path), only_unexpected=only_unexpected)))[
        "results"
    ]
    first = results["tests"][0]
    assert (first["status"], first["rawStatus"]) == ("failed", "incomplete")
    assert INCOMPLETE[kind] in first["name"]
    assert results["summary"]["failed"] == sum(test["status"] == "failed" for test in results["tests"])
    whole = "".join(render_junit(lambda: RunReader(run), only_unexpected=only_unexpected))
    assert 'name="run" tests' not in whole


@pytest.mark.parametrize("kind", INCOMPLETE)
@pytest.mark.parametrize(
    "command",
    [
        ("report", "RUN", "--format", "junit"),
        ("report", "RUN", "-o", "report.md"),
        ("explain", "RUN"),
        ("history", "RUN"),
        ("site", "RUN", "-o", "site"),
        ("compare", "RUN", "RUN"),
    ],
)
def test_a_command_that_reads_an_incomplete_run_ends_with_4(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = incomplete(run, tmp_path, kind)
    ended = harness(*(path if word == "RUN" else word for word in command))
    assert (ended.code, "incomplete" in ended.err + ended.out) == (4, True), ended
    made = {"report.md": tmp_path / "report.md", "site": tmp_path / "site/index.html"}.get(command[-1])
    assert ended.out if made is None else made.stat().st_size
    assert harness(*(run if word == "RUN" else word for word in command)).code == 0


@pytest.mark.slow
def test_a_process_that_ends_is_red_whatever_the_validity(tmp_path: Path) -> None:
    open_case = next(each for each in api.load(specs=[ROUND]) if each.validity is OPEN)
    script = script_of(tmp_path, [(open_case.id, "crash")])
    target = f"fake,script={script}"
    run = ("run", ROUND, "-t", target, "-k", open_case.id)
    ended = harness(*run, "-o", tmp_path / "r")
    assert ended.code == 1
    assert ended.out.startswith("✗ 1 unexpected in 1 result: 1 crashed.")
    assert harness("explain", tmp_path / "r").code == 0
    again = harness(*run, "-o", tmp_path / "again", "--baseline", tmp_path / "r")
    assert (again.code, again.out[:1]) == (0, "✓")


def test_a_repro_of_an_unspecified_case_asks_for_no_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its script calls anything but the end of the process fixed."""
    (line,) = expected_lines(None, OPEN)
    assert line.startswith("EXPECTED = []")
    monkeypatch.setattr(template, "EXPECTED", [])
    assert [template.judge({"kind": kind, "wrong": []}) for kind in ("output", "error", "ended")] == [
        template.FIXED,
        template.FIXED,
        template.BUG,
    ]
