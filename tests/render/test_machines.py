from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import jsonschema
import msgspec
import pytest
from junitparser import Error as JUnitError
from junitparser import Failure, JUnitXml, Skipped

from harness.model.case import Validity
from harness.model.header import Against
from harness.model.verdict import NOT_EXECUTED, Outcome, Reading, Verdict, conforms
from harness.render.csv_tables import render_case_csv, render_csv
from harness.render.foreign import render_ctrf, render_junit, status
from harness.results.counts import Counts
from harness.results.runfile import RunReader
from harness.results.summary import summarize
from harness.results.tables import tabulate
from tests import synthetic
from tests.synthetic import ABSENT, CPU, DML

HOSTILE = [
    "</testcase>]]>",
    "a\x00b\x1b\x0c",
    "\u202e\ufffe\U0001f600",
    "\"quotes\" & 'more' <",
    "line\nbreak\ttab",
    "=1+1",
]


def junit(path: Path) -> JUnitXml:
    return JUnitXml.fromstring("".join(render_junit(lambda: RunReader(path))).encode())


# The published schema as the npm package `ctrf` 0.3.0 ships it, with its licence (MIT) beside it.
CTRF = Path(__file__).parent / "ctrf/ctrf-schema-0.0.json"


def ctrf(path: Path) -> dict[str, object]:
    document: dict[str, object] = json.loads("".join(render_ctrf(lambda: RunReader(path))))
    jsonschema.Draft7Validator(json.loads(CTRF.read_bytes())).validate(document)
    assert (
        document["specVersion"] == "0.0.0"
    )  # the schema takes any number, the package's readers this one alone
    return document


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return synthetic.write_run(
        tmp_path / "run.jsonl", 3000, {"cpu": CPU, "dml": DML, "dml@windows": ABSENT}, faults=0.05
    )


def hostile(tmp_path: Path) -> Path:
    results = synthetic.hostile_results(HOSTILE, 10_000)
    return synthetic.write_results(tmp_path / "run.jsonl", results, {"cpu": CPU})


@pytest.mark.parametrize(
    ("outcome", "verdict", "validity", "expected"),
    [
        (Outcome.PASS, Verdict.EXPECTED, Validity.VALID, "passed"),
        (Outcome.REJECTED, Verdict.EXPECTED, Validity.INVALID, "passed"),
        (Outcome.PASS, Verdict.IMPROVEMENT, Validity.VALID, "failed"),
        (Outcome.CRASH, Verdict.CHANGED, Validity.UNSPECIFIED, "error"),
        (Outcome.CRASH, Verdict.EXPECTED, Validity.UNSPECIFIED, "known"),
        (Outcome.MISMATCH, Verdict.CHANGED, Validity.UNSPECIFIED, "skipped"),
        (Outcome.PASS, Verdict.NEW, Validity.VALID, "passed"),
        (Outcome.MISMATCH, Verdict.EXPECTED, Validity.VALID, "known"),
        (Outcome.UNSUPPORTED, Verdict.EXPECTED, Validity.VALID, "known"),
        (Outcome.UNAVAILABLE, Verdict.MISSING, Validity.VALID, "skipped"),
        (Outcome.NOT_RUN, Verdict.MISSING, Validity.VALID, "known"),
        (Outcome.MISMATCH, Verdict.REGRESSION, Validity.VALID, "failed"),
        (Outcome.ACCEPTED_INVALID, Verdict.NEW, Validity.INVALID, "failed"),
        (Outcome.CRASH, Verdict.CHANGED, Validity.VALID, "error"),
        (Outcome.ORACLE_ERROR, Verdict.REGRESSION, Validity.VALID, "error"),
    ],
)
def test_status(outcome: Outcome, verdict: Verdict, validity: Validity, expected: str) -> None:
    assert (
        status(
            synthetic.result("Round@22:case=a", outcome, verdict, validity=validity),
            synthetic.header(),
        )
        == expected
    )


def test_what_an_earlier_run_did_worse_is_no_failure() -> None:
    """Against expectations an improvement is one: the entry is wrong by now."""
    better = synthetic.result("Round@22:case=a", Outcome.PASS, Verdict.IMPROVEMENT)
    against = msgspec.structs.replace(synthetic.header(), baseline=Against("earlier", {"cpu": "cpu"}))
    assert status(better, against) == "passed"


def all_verdicts() -> Iterator[tuple[Validity, Outcome, Verdict]]:
    """Yield what a run can hold: a failure is no improvement, a correct result no regression, and what did not run is
    missing or expected."""
    for validity, outcome, verdict in product(Validity, Outcome, Verdict):
        if validity is Validity.INVALID and outcome in (Outcome.PASS, Outcome.MISMATCH, Outcome.ORACLE_ERROR):
            continue
        if validity is Validity.VALID and outcome is Outcome.ACCEPTED_INVALID:
            continue
        correct = conforms(validity, outcome)
        if outcome in NOT_EXECUTED:
            never = set(Verdict) - {Verdict.MISSING, Verdict.EXPECTED}
            never |= {Verdict.EXPECTED} if outcome is Outcome.UNAVAILABLE else set()
        elif validity is Validity.UNSPECIFIED:
            never = {Verdict.MISSING, *((Verdict.REGRESSION,) if correct else ())}
        else:
            never = {
                Verdict.MISSING,
                *((Verdict.REGRESSION, Verdict.CHANGED) if correct else (Verdict.IMPROVEMENT,)),
            }
        if verdict not in never:
            yield validity, outcome, verdict


@pytest.mark.parametrize("baseline", [False, True])
def test_exit_code_junit_and_totals_agree(baseline: bool) -> None:
    """Of every result that can be: red is red everywhere."""
    against = Against("earlier", {"cpu": "cpu"}) if baseline else None
    header = msgspec.structs.replace(synthetic.header({"cpu": synthetic.CPU}), baseline=against)
    found: dict[Verdict, bool] = {}
    for validity, outcome, verdict in all_verdicts():
        result = synthetic.result("Round@22:case=a", outcome, verdict, validity=validity)
        counts = Counts()
        counts.add(result)
        missing = verdict is Verdict.MISSING  # exit code 3, though nothing that a provider did is red
        red = counts.exit_code((), baseline=baseline) in (1, 3) and not missing
        assert status(result, header) in (("failed", "error") if red else ("passed", "known", "skipped"))
        tables = tabulate(header, [result], None)
        assert tables.tally().unexpected == red
        summary = summarize(tables)
        assert (summary.tone == "bad") == bool(red)
        found[verdict] = found.get(verdict, False) or red
    assert {verdict for verdict, red in found.items() if red} == {
        Verdict.REGRESSION,
        Verdict.CHANGED,
        Verdict.NEW,
        *([] if baseline else [Verdict.IMPROVEMENT]),
    }


def test_junit_has_a_suite_a_target_and_counts_that_add_up(run: Path) -> None:
    found = junit(run)
    assert [suite.name for suite in found] == ["cpu", "dml", "dml@windows"]
    expected = Counter((result.target, status(result, RunReader(run).header)) for result in RunReader(run))
    for suite in found:
        cases = list(suite)
        kinds = Counter(type(case.result[0]) if case.result else None for case in cases)
        assert suite.tests == len(cases) == 3000
        assert suite.failures == kinds[Failure] == expected[suite.name, "failed"]
        assert suite.errors == kinds[JUnitError] == expected[suite.name, "error"]
        assert (
            suite.skipped == kinds[Skipped] == expected[suite.name, "known"] + expected[suite.name, "skipped"]
        )
    assert found.tests == 9000
    properties = {each.name: each.value for each in next(iter(found)).properties()}
    assert properties["onnxruntime"] == "1.23.0"


def test_junit_names_the_reading(run: Path) -> None:
    types = {
        result.type
        for suite in junit(run)
        for case in suite
        for result in case.result
        if isinstance(result, Skipped)
    }
    assert {"not judged", "not supported", "wrong", "crashed"} <= types


def test_junit_fails_for_problems_of_expectations(tmp_path: Path) -> None:
    path = synthetic.write_run(tmp_path / "run.jsonl", 5, {"cpu": CPU})
    lines = path.read_bytes().splitlines(keepends=True)
    end = json.loads(lines[-1]) | {"problems": ["specs/expectations/a.yaml:3: <matches> no case"]}
    path.write_bytes(b"".join(lines[:-1]) + json.dumps(end).encode() + b"\n")
    suite = list(junit(path))[-1]
    assert (suite.name, suite.failures) == ("expectations", 1)


def test_hostile_text_is_text(tmp_path: Path) -> None:
    path = hostile(tmp_path)
    text = "".join(render_junit(lambda: RunReader(path)))
    assert len(text) < 200_000
    tree = ElementTree.fromstring(text.encode())
    assert len(tree.findall(".//testcase")) == len(HOSTILE)
    tests = ctrf(path)["results"]["tests"]  # type: ignore[index]
    assert len(tests) == len(HOSTILE)


@pytest.mark.slow
def test_ctrf_validates_and_counts_add_up(run: Path) -> None:
    results = ctrf(run)["results"]
    summary, tests = results["summary"], results["tests"]  # type: ignore[index]
    assert summary["tests"] == len(tests) == 9000
    counts = Counter(test["status"] for test in tests)
    assert {word: summary[word] for word in ("passed", "failed", "skipped", "pending", "other")} == {
        word: counts[word] for word in ("passed", "failed", "skipped", "pending", "other")
    }
    assert summary["start"] == 1767323045000
    assert summary["stop"] - summary["start"] == 1500


@pytest.mark.parametrize("number", [0, 1])
def test_ctrf_of_almost_nothing(tmp_path: Path, number: int) -> None:
    assert ctrf(synthetic.write_run(tmp_path / "run.jsonl", number, {"cpu": CPU}, whole=True))


def test_only_what_is_unexpected(run: Path) -> None:
    reader = RunReader(run)
    wanted = [r.case for r in reader if status(r, reader.header) in ("failed", "error")]
    assert 0 < len(wanted) < sum(1 for _ in RunReader(run))
    document = ElementTree.fromstring(
        "".join(render_junit(lambda: RunReader(run), only_unexpected=True)).encode()
    )
    cases = [
        case for case in document.iter("testcase") if case.get("classname") not in ("expectations", "run")
    ]
    assert sorted(case.get("name", "") for case in cases) == sorted(wanted)
    counted = [int(document.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")]
    assert counted[0] == counted[1] + counted[2] == len(list(document.iter("testcase")))
    listed = json.loads("".join(render_ctrf(lambda: RunReader(run), only_unexpected=True)))["results"]
    assert [test["name"] for test in listed["tests"]] == wanted
    assert listed["summary"]["tests"] == listed["summary"]["failed"] == len(wanted)


def test_junit_says_what_differs_and_how_to_repeat_it(run: Path) -> None:
    reader = RunReader(run)
    wrong = next(r for r in reader if r.diff is not None and status(r, reader.header) == "failed")
    assert wrong.diff is not None
    document = ElementTree.fromstring("".join(render_junit(lambda: RunReader(run))).encode())
    bodies = [
        case[0].text or ""
        for case in document.iter("testcase")
        if case.get("name") == wrong.case and len(case) and case[0].tag == "failure"
    ]
    (body,) = [each for each in bodies if f"-t {wrong.target} -k" in each]
    assert f"expected: {wrong.diff.expected}\nactual:   {wrong.diff.actual}" in body
    assert f"harness run -t {wrong.target} -k '{wrong.case}'" in body
    assert {
        "." not in name[: name.rindex(".")]
        for name in (c.get("classname", "") for c in document.iter("testcase"))
        if "." in name
    } == {True}


def test_csv_has_a_line_a_cell(run: Path) -> None:
    reader = RunReader(run)
    tables = tabulate(reader.header, reader, None)
    rows = list(csv.DictReader(render_csv(tables)))
    assert sum(int(row["selected"]) for row in rows) == 9000
    assert sum(int(row["pass"]) for row in rows) == tables.tally().outcomes[Outcome.PASS]
    assert rows[0]["operator"] == "GatherElements"
    assert all(int(row["selected"]) == sum(int(row[outcome.value]) for outcome in Outcome) for row in rows)


def test_csv_cells_are_no_formulas(tmp_path: Path) -> None:
    reader = RunReader(hostile(tmp_path))
    rows = list(csv.reader(render_csv(tabulate(reader.header, reader, None))))
    assert not any(cell.startswith("=") for row in rows for cell in row)


def test_csv_of_cases_has_a_line_a_result(run: Path) -> None:
    rows = list(csv.DictReader(io.StringIO("".join(render_case_csv(RunReader(run))))))
    results = list(RunReader(run))
    assert [(row["target"], row["case"], row["outcome"], row["verdict"]) for row in rows] == [
        (result.target, result.case, result.outcome.value, result.verdict.value) for result in results
    ]
    failed = next(place for place, result in enumerate(results) if result.diff is not None)
    diff = results[failed].diff
    assert diff is not None
    assert [rows[failed][name] for name in ("differing", "elements")] == [
        str(diff.differing),
        str(diff.total),
    ]
    assert {row["reading"] for row in rows} == {reading.value for reading in Reading}
    assert {row["why not judged"] for row in rows} == {"", "unspecified", "not available"}


def test_csv_of_cases_has_no_formulas(tmp_path: Path) -> None:
    rows = list(csv.reader(io.StringIO("".join(render_case_csv(RunReader(hostile(tmp_path)))))))
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)
