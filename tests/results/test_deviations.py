"""Known deviations and the entries that explain them: in the run file, after a merge and a continuation, and
in every report."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.model.case import Validity
from harness.model.errors import UsageError
from harness.model.header import Expectation, Header, in_another_order
from harness.model.verdict import DEFECTS, Outcome, Reading, Verdict
from harness.render.foreign import render_ctrf, render_junit
from harness.render.html import render_html
from harness.render.markup import host, link
from harness.render.report import render_markdown
from harness.results.counted import read_tables
from harness.results.known_deviations import in_words
from harness.results.report import Report
from harness.results.runfile import RunReader
from harness.results.summary import summarize
from harness.results.tables import tabulate
from harness.specs.expectations.expectations import load_expectations
from tests import synthetic
from tests.golden import check_golden
from tests.render.test_html import parsed
from tests.running import ROUND, SPECS, complaint, harness, lines_of, results_of, script_of, without_time

GOLDEN = Path(__file__).parents[1] / "golden"
QUERY = "Round@22:sweep=empty"
ENTRIES = """
- match: "Round@22:X=float64"
  expect: crash
  reason: Another target's.
  link: https://example.com/other
  when: {target: other}
- match: "Round@22:X=float16"
  expect: rejected
  title: Halves
  reason: Halves are refused.
  documents: They say nothing.
  link: https://example.com/halves
- match: "Round@22:X=float32"
  expect: mismatch
  pending: true
  reason: Not looked at.
  link: https://example.com/pending
- match: "GatherND:data=float32"
  expect: mismatch
  difference: {kind: value}
  reason: Another operator's.
  link: https://example.com/elsewhere
"""
HALVES = Expectation(
    (Outcome.REJECTED,),
    "Halves are refused.",
    "https://example.com/halves",
    "Halves",
    "They say nothing.",
    releases={},
)
LATER = Expectation((), "Not looked at.", "https://example.com/pending", pending=True, releases={})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deviations")
    script_of(
        folder,
        [
            ("Round@22:X=float16", "reject"),
            ("Round@22:X=float32[0]", "crash"),
            ("Round@22:X=float32", "shape"),
        ],
    )
    (folder / "known.yaml").write_text(ENTRIES, encoding="utf-8")
    for name, shard in (("whole", None), ("one", "1/2"), ("two", "2/2")):
        harness("run", *options(folder), *(["--shard", shard] if shard else []), "-o", folder / name)
    return folder


def options(folder: Path) -> list[str | Path]:
    script = f"fake,script={folder / 'script.yaml'}"
    return [ROUND, "-t", script, "-k", QUERY, "--expectations", folder / "known.yaml"]


def header_of(run: Path) -> Header:
    return RunReader(run).header


def named(run: Path) -> dict[str, Any]:
    return {case: result.get("expectation") for case, result in results_of(run).items()}


@pytest.mark.slow
def test_the_header_states_the_entries_of_its_targets_and_operators(runs: Path) -> None:
    assert header_of(runs / "whole").expectations == {1: HALVES, 2: LATER}


def test_the_header_states_the_releases_of_an_entry() -> None:
    known = load_expectations(())
    stated = {each.entry.when.onnxruntime: each.stated().releases for each in known.entries}
    assert stated[">=1.14"] == {"onnxruntime": ">=1.14"}
    assert stated[None] in ({}, {"directml": "<1.10"}, {"directml": ">=1.13"})


def test_a_deviating_result_names_its_entry(runs: Path) -> None:
    found = named(runs / "whole")
    assert {number for case, number in found.items() if "X=float16" in case} == {1}
    assert {number for case, number in found.items() if "X=float32" in case} == {2}
    assert {number for case, number in found.items() if "X=float64" in case} == {None}
    assert list(found.values()).count(1) > 5


@pytest.mark.slow
def test_merged_shards_name_what_the_whole_run_names(runs: Path, tmp_path: Path) -> None:
    assert harness("merge", runs / "two", runs / "one", "-o", tmp_path).err == ""
    assert named(tmp_path) == named(runs / "whole")
    assert header_of(tmp_path).expectations == header_of(runs / "whole").expectations


def test_a_shard_of_before_the_entries_were_stated(runs: Path, tmp_path: Path) -> None:
    lines = lines_of(runs / "one")
    del lines[0]["expectations"]
    for line in lines[1:]:
        line.pop("expectation", None)
    older = tmp_path / "one.jsonl"
    older.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert harness("merge", older, runs / "two", "-o", tmp_path / "merged").err == ""
    assert header_of(tmp_path / "merged").expectations == header_of(runs / "whole").expectations
    assert {case: number for case, number in named(tmp_path / "merged").items() if number} == {
        case: number for case, number in named(runs / "two").items() if number
    }


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.slow
def test_a_continued_run_names_what_a_whole_one_names(runs: Path, tmp_path: Path, older: bool) -> None:
    """A file from before entries were stated gets them; what it holds already names none."""
    lines = lines_of(runs / "whole")[:10]
    if older:
        del lines[0]["expectations"]
        for line in lines:
            line.pop("expectation", None)
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    harness("run", "--resume", *options(runs), "-o", tmp_path)
    assert header_of(tmp_path).expectations == header_of(runs / "whole").expectations
    expected = named(runs / "whole")
    kept = {line["case"] for line in lines[1:]} if older else set()
    assert named(tmp_path) == {case: None if case in kept else number for case, number in expected.items()}
    if not older:
        assert without_time(results_of(tmp_path)) == without_time(results_of(runs / "whole"))
    without = sum(1 for case in kept if expected[case] is not None)
    assert without > 2 or not older
    said = render_markdown(Report(read_tables(RunReader(tmp_path))))
    assert (f"{without:,} more known results have no entry in the run file" in said) is older


def test_a_run_with_expectations_in_another_order_is_not_continued(runs: Path, tmp_path: Path) -> None:
    lines = lines_of(runs / "whole")[:10]
    lines[0]["expectations"] = {"1": lines[0]["expectations"]["2"], "2": lines[0]["expectations"]["1"]}
    for line in lines[1:]:
        line.pop("expectation", None)
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    ended = harness("run", "--resume", *options(runs), "-o", tmp_path)
    assert ended.code == 2
    assert "cannot be continued: the expectations are in another order" in ended.err


def test_an_invalid_case_that_is_rejected_names_no_entry(runs: Path, tmp_path: Path) -> None:
    """It conforms, although the entry expects the same of it."""
    known = tmp_path / "known.yaml"
    known.write_text(
        "- {match: GatherND, expect: rejected, reason: Everything is., link: https://example.com/}\n",
        encoding="utf-8",
    )
    script = script_of(tmp_path, [("GatherND", "reject")])
    query = "GatherND@13:case=batch_sizes_differ*"
    asked = ("-t", f"fake,script={script}", "-k", query, "--expectations", known)
    harness("run", SPECS / "GatherND.yaml", *asked, "-o", tmp_path / "run")
    found = {
        (result["validity"], result["outcome"], result.get("expectation"))
        for result in results_of(tmp_path / "run").values()
    }
    assert found == {("invalid", "rejected", None)}


@pytest.mark.parametrize(("said", "verdict"), [("scripted", "expected"), ("out of memory", "regression")])
def test_a_refusal_for_another_reason_is_unexpected(tmp_path: Path, said: str, verdict: str) -> None:
    known = tmp_path / "known.yaml"
    known.write_text(
        f"- {{match: Round, expect: rejected, message: {said}, reason: No room., link: https://example.com/}}\n",
        encoding="utf-8",
    )
    script = script_of(tmp_path, [("Round", "reject")])
    query = "Round@11:case=documented_onnx;X=float32*"
    asked = ("-t", f"fake,script={script}", "-k", query, "--expectations", known)
    harness("run", SPECS / "Round.yaml", *asked, "-o", tmp_path / "run")
    assert {result["verdict"] for result in results_of(tmp_path / "run").values()} == {verdict}


@pytest.mark.slow
def test_what_an_earlier_run_explains_names_no_entry(runs: Path, tmp_path: Path) -> None:
    """But what the entry expects is still known by the entry."""
    (tmp_path / "known.yaml").write_text(
        ENTRIES.replace("expect: rejected", "expect: mismatch\n  difference: {kind: value}"), encoding="utf-8"
    )
    given = [
        *options(runs)[:-1],
        tmp_path / "known.yaml",
        "--baseline",
        runs / "whole",
        "-o",
        tmp_path / "run",
    ]
    assert harness("run", *given).code == 0
    assert {number for case, number in named(tmp_path / "run").items() if "X=float16" in case} == {None}
    assert {number for case, number in named(tmp_path / "run").items() if "X=float32" in case} == {2}


def test_expectations_in_another_order_are_not_mixed() -> None:
    one = msgspec.structs.replace(synthetic.header(), expectations={1: HALVES, 2: LATER})
    assert not in_another_order(one, one)
    assert not in_another_order(one, synthetic.header())
    assert not in_another_order(msgspec.structs.replace(one, expectations={1: HALVES}), one)
    assert in_another_order(one, msgspec.structs.replace(one, expectations={1: LATER, 2: HALVES}))


def test_a_shard_with_expectations_in_another_order(runs: Path, tmp_path: Path) -> None:
    lines = lines_of(runs / "two")
    lines[0]["expectations"] = {"1": lines[0]["expectations"]["2"], "2": lines[0]["expectations"]["1"]}
    for line in lines[1:]:
        line.pop("expectation", None)
    other = tmp_path / "two.jsonl"
    other.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    ended = harness("merge", runs / "one", other, "-o", tmp_path / "merged")
    assert complaint(ended).endswith(
        "cannot be merged with the first run: the order of the expectations differs"
    )


def test_an_entry_that_the_header_lacks_is_damage(tmp_path: Path) -> None:
    result = synthetic.result("Round@22:a=1", Outcome.CRASH, expectation=4)
    synthetic.write_results(tmp_path / "run.jsonl", [result], expectations=synthetic.ENTRIES)
    with pytest.raises(
        UsageError, match=r"run.jsonl:2: damaged run file: expectation 4 is not in the header"
    ):
        list(RunReader(tmp_path))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic.write_explained(tmp_path_factory.mktemp("run") / "run.jsonl", 3000, faults=0.05)


def test_rows_and_their_sums(run: Path) -> None:
    tables = read_tables(RunReader(run))
    found = list(RunReader(run))
    rows, pending = (tables.deviations.rows(pending=each) for each in (False, True))
    assert [row.number for row in pending] == [12]
    assert {row.number for row in rows} == {3, 7}
    first = [bool(row.by_reading.keys() & set(DEFECTS)) for row in rows]
    assert first == sorted(first, reverse=True)  # defects before what is not supported
    for row in (*rows, *pending):
        mine = [result for result in found if result.expectation == row.number]
        assert row.results == sum(result.verdict is Verdict.EXPECTED for result in mine)
        assert row.contradicting == sum(result.unexpected(baseline=False) for result in mine)
        assert sum(row.by_target.values()) == sum(row.by_level.values()) == sum(row.by_reading.values())
        assert row.results == sum(row.by_reading.values())
        for target, number in row.by_target.items():
            assert number == sum(
                result.target == target and result.verdict is Verdict.EXPECTED for result in mine
            )
    assert sum(row.contradicting for row in rows) > 0
    deviating = [
        result
        for result in found
        if result.verdict is Verdict.EXPECTED and result.reading not in (Reading.CORRECT, Reading.NOT_JUDGED)
    ]
    without = sum(result.expectation is msgspec.UNSET for result in deviating)
    assert without > 0
    known = Report(tables).known
    assert known == len(deviating) == sum(row.results for row in (*rows, *pending)) + without
    assert tables.deviations.remarks(known)[0].startswith(f"{without:,} more known results have no entry")


def test_unspecified_cases_of_an_entry_are_not_judged() -> None:
    header = msgspec.structs.replace(synthetic.header(), expectations={7: synthetic.ENTRIES[7]})
    result = synthetic.result("Round@22:a=1", Outcome.MISMATCH, validity=Validity.UNSPECIFIED, expectation=7)
    tables = tabulate(header, [result], None)
    assert [row.results for row in tables.deviations.rows(pending=False)] == [1]
    assert tables.deviations.remarks(Report(tables).known) == [
        "1 of the results are correct or not judged, as unspecified cases are."
    ]


def section(text: str, start: str, end: str) -> str:
    return text[text.index(start) : text.index(end, text.index(start) + 1)]


def test_the_section_in_markdown(run: Path) -> None:
    text = render_markdown(Report(read_tables(RunReader(run))))
    assert text.index("## Defects") < text.index("Documented, ") < text.index("## Known defects")
    check_golden(GOLDEN / "deviations.md", section(text, "## Known defects", "## "))


def test_the_section_of_the_page(run: Path) -> None:
    text = parsed(render_html(run)).text()
    check_golden(
        GOLDEN / "deviations_page.txt",
        section(text, "Known defects and missing kernels, and why\n", "Cases\nThe table"),
    )


def test_a_run_without_entries_has_no_section(tmp_path: Path) -> None:
    older = synthetic.write_run(tmp_path / "run.jsonl", 300, faults=0.05)
    assert Report(read_tables(RunReader(older))).known > 0
    assert "## Known defects" not in render_markdown(Report(read_tables(RunReader(older))))
    assert 'id="deviations"' not in render_html(older)


def test_pending_entries_are_said_before_the_numbers_are_trusted(run: Path) -> None:
    tables = read_tables(RunReader(run))
    number = tables.deviations.rows(pending=True)[0].results
    assert (
        f"{number:,} known results are not reviewed yet: nobody has looked at why."
        in summarize(tables).remarks
    )


def test_junit_and_ctrf_name_the_entry(run: Path) -> None:
    tree = ElementTree.fromstring("".join(render_junit(lambda: RunReader(run))).encode())
    known = {str(each.get("message")) for each in tree.iter("skipped")}
    tail = "known: Element types without a kernel, https://github.com/microsoft/onnxruntime/blob/main/docs/OperatorKernels.md"
    assert any(message.endswith(tail) for message in known)
    assert any("not reviewed yet: GatherElements on DirectML" in message for message in known)
    assert not any(
        "known: " in str(each.get("message")) for each in (*tree.iter("failure"), *tree.iter("error"))
    )
    tests = json.loads("".join(render_ctrf(lambda: RunReader(run))))["results"]["tests"]
    found = [test["extra"]["link"] for test in tests if "extra" in test]
    results = [
        result
        for result in RunReader(run)
        if result.expectation is not msgspec.UNSET and result.verdict is Verdict.EXPECTED
    ]
    assert len(found) == len(results)
    assert synthetic.ENTRIES[7].link in found


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://onnx.ai/onnx/operators/onnx__GatherND.html", "onnx.ai"),
        ("https://example.com", "example.com"),
        ("https://example.com/a(b)?c=d#e", "example.com"),
        ("javascript:alert(1)", ""),
        ("https://example.com/>)[x](https://evil.example)", ""),
        ("https://example.com/a b", ""),
        ("https://user:secret@example.com/", ""),
        ("https://example.com/\u202e", ""),
        ("https://example.com/\nx", ""),
        ("TODO", ""),
    ],
)
def test_only_a_web_address_is_a_link(address: str, name: str) -> None:
    assert host(address) == name
    assert link(address).startswith(f"[{name}](<https://") is bool(name)


def test_outcomes_in_words() -> None:
    assert [in_words(given) for given in ([], ["crash"], ["a", "b"], ["a", "b", "c"])] == [
        "any",
        "crash",
        "a or b",
        "a, b or c",
    ]


def test_a_result_of_an_entry_that_the_header_lacks_is_damage(run: Path, tmp_path: Path) -> None:
    lines = lines_of(run)
    del lines[0]["expectations"]["3"]
    damaged = tmp_path / "run.jsonl"
    damaged.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with pytest.raises(UsageError, match="expectation 3 is not in the header"):
        list(RunReader(damaged))


def test_each_entry_that_results_name_is_looked_at(run: Path, tmp_path: Path) -> None:
    """Also where a result of the same kind, of another entry, was looked at before."""
    lines = lines_of(run)
    last = max(place for place, line in enumerate(lines) if line.get("expectation") == 3)
    lines[last]["expectation"] = 99
    damaged = tmp_path / "run.jsonl"
    damaged.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with pytest.raises(
        UsageError, match=f":{last + 1}: damaged run file: expectation 99 is not in the header"
    ):
        list(RunReader(damaged))
