"""Cases that a target's API cannot express: shown, never a pass or a failure, and counted in no rate."""

from __future__ import annotations

from pathlib import Path

from harness.model.header import End, Header
from harness.model.result import Error, Result, inexpressible
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from harness.render.foreign import render_junit
from harness.render.payload import meaning
from harness.render.report import render_markdown
from harness.results.compare.joined import compare_runs
from harness.results.report import Report
from harness.results.runfile import RunReader
from harness.results.summary import summarize
from harness.results.tables import Tables, tabulate
from harness.run.resume import Earlier
from tests import synthetic
from tests.running import ROUND, harness, lines_of

CPU = TargetInfo("CPUExecutionProvider")
HEADER = Header(1, "r", "", 0, {}, {"cpu": CPU})
A = "Round@22:case=a;X=float32[1]"
B = "Round@22:case=b;X=float32[1];api=directml"


def results() -> list[Result]:
    error = Error("NotExpressible", "a call of DirectML's own API, which no ONNX graph expresses")
    return [synthetic.result(A), synthetic.result(B, Outcome.NOT_RUN, error=error)]


def tables() -> Tables:
    return tabulate(HEADER, results(), End(1, 1, {}, {"pass": 1, "not_run": 1}, {"expected": 2}))


def test_only_what_no_words_exist_for_is_inexpressible() -> None:
    ran, beyond = results()
    assert inexpressible(beyond)
    assert not inexpressible(ran)
    assert not inexpressible(not_asked())


def not_asked() -> Result:
    """An opset that the release does not load: expected not to run, like the other, but the case itself can
    be asked."""
    error = Error("UnknownVersionError", "opset 22 is not known")
    return synthetic.result("Round@22:case=c;X=float32[1]", Outcome.NOT_RUN, error=error)


def test_what_a_release_cannot_be_asked_stays_in_the_rate() -> None:
    counted = tabulate(
        HEADER, [*results(), not_asked()], End(2, 1, {}, {"pass": 1, "not_run": 2}, {"expected": 3})
    )
    assert (counted.tally().selected, counted.tally().run, counted.selected) == (2, 1, 2)
    assert dict(counted.inexpressible) == {"cpu": 1}
    summary = summarize(counted)
    assert summary.sentence == "Nothing unexpected in 2 results."
    assert summary.remarks == (
        "cpu did not run 1 of 2 results (opset or IR version newer than the release: 1).",
    )
    assert [note.short for note in summary.notes] == ["1 case does not apply to cpu"]


def test_it_counts_in_no_rate() -> None:
    counted = tables()
    assert counted.tally().selected == counted.tally().run == counted.selected == 1
    assert dict(counted.inexpressible) == {"cpu": 1}


def test_the_summary_names_it_and_stays_good() -> None:
    summary = summarize(tables())
    assert summary.tone == "good"
    assert summary.sentence == "Nothing unexpected in 1 result."
    assert summary.remarks == ()
    text = (
        "1 case does not apply to cpu and is not counted: it calls DirectML itself instead of running an ONNX model. "
        "It runs with the target directml."
    )
    assert [note.text for note in summary.notes] == [text]
    assert text in render_markdown(Report(tables()))


def test_other_formats_say_skipped() -> None:
    assert [meaning(result) for result in results()] == ["correct", "does not apply"]
    assert meaning(not_asked()) == "not supported"


def write(folder: Path) -> Path:
    return synthetic.write_results(folder / "run.jsonl", results(), {"cpu": CPU}, end=False)


def test_junit_skips_it(tmp_path: Path) -> None:
    path = write(tmp_path)
    text = "".join(render_junit(lambda: RunReader(path)))
    assert 'tests="3" failures="0" errors="1" skipped="1"' in text


def test_a_comparison_counts_it_nowhere(tmp_path: Path) -> None:
    (tmp_path / "head").mkdir()
    comparison = compare_runs(RunReader(write(tmp_path)), RunReader(write(tmp_path / "head")))
    assert (comparison.total.equal, comparison.total.neither, comparison.base.tally().selected) == (1, 0, 1)


def test_a_continued_run_does_not_ask_for_it_again(tmp_path: Path) -> None:
    done = Earlier(write(tmp_path).parent).done
    assert done.refused(B, "cpu")
    assert not done.refused(A, "cpu")
    assert done.conforming(A, "cpu") is True
    assert done.conforming(B, "cpu") is None


def test_a_run_shows_it_and_ends_well(tmp_path: Path) -> None:
    query = "Round@22:case=api_halves_to_even"
    asked = ("-t", "cpu", "-k", query, "-k", "Round@22:case=documented_half", "-o", tmp_path / "r")
    ended = harness("run", ROUND, *asked)
    assert ended.code == 0, ended.err
    first, second, end = lines_of(tmp_path / "r")[1:]
    assert (first["outcome"], second["outcome"]) == ("pass", "not_run")
    assert (second["verdict"], second["error"]["class"]) == ("expected", "NotExpressible")
    assert (end["selected"], end["run"]) == (1, 1)
    assert ended.out.startswith("✓ Nothing unexpected in 1 result.")
    assert harness("explain", tmp_path / "r").out.startswith("✓ No unexpected failure in 1 result.")
    continued = harness("run", ROUND, *asked, "--resume")
    assert continued.code == 0, continued.err
    assert len(lines_of(tmp_path / "r")) == 4


def test_a_run_of_nothing_else_is_no_success(tmp_path: Path) -> None:
    ended = harness("run", ROUND, "-t", "cpu", "-k", "Round@22:case=api_halves_to_even", "-o", tmp_path / "r")
    assert ended.code == 4
    assert "Nothing ran" in ended.out
