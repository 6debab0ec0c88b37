"""The Python API: what its page shows runs, and what it returns is what the command line writes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from harness import api
from harness.model.case import Validity
from harness.model.errors import NothingRan, SpecError, UsageError
from harness.model.verdict import Outcome, Verdict
from harness.results.compare.comparison import Change
from tests.running import ROUND, harness, results_of, script_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
FEW = "Round@22:sweep=empty;X=float16"
BROKEN = "Round@22:X=float16[0];shapes=static"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, str(PAGE), "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("32 Round@22:sweep=empty;")
    assert lines[1].startswith("0 1.")
    assert lines[-2:] == ["32 {'fix': 8}", "fix 8 Round@22:sweep=empty;X=bfloat16[0];values=ordinary"]


def test_load_yields_the_cases_that_list_prints_as_often_as_asked() -> None:
    cases = api.load([ROUND], [FEW])
    ids = [case.id for case in cases]
    assert ids == [case.id for case in cases]
    assert ids == harness("list", ROUND, "-k", FEW).out.splitlines()
    assert cases.total() == len(ids) == 8
    assert {case.validity for case in cases} == {Validity.VALID}


def test_run_returns_what_the_command_line_writes(folder: Path) -> None:
    script = script_of(folder, [(BROKEN, "shape")])
    told: list[tuple[str, int, int]] = []
    done = api.run(
        [f"fake,script={script}"], [FEW], [ROUND], output="out", progress=lambda *told_: told.append(told_)
    )
    assert (done.exit_code, done.path) == (1, Path("out/run.jsonl"))
    assert {result.case: result.outcome.value for result in done} == {
        case: r["outcome"] for case, r in results_of(folder / "out").items()
    }
    (failed,) = done.unexpected()
    assert (failed.outcome, failed.verdict) == (Outcome.MISMATCH, Verdict.REGRESSION)
    assert done.end is not None
    assert (done.end.selected, done.end.run) == (8, 8)
    assert told[-1] == (f"fake,script={script}", 8, 8)
    again = api.read("out")
    assert (again.path, again.header, again.exit_code) == (done.path, done.header, None)
    assert list(again) == list(done)


def test_run_takes_what_request_takes() -> None:
    taken, returned = inspect.signature(api.run), inspect.signature(api.request)
    assert taken.parameters == returned.parameters
    assert {"progress", "reruns", "min_cases"} < taken.parameters.keys()
    with pytest.raises(TypeError, match="unexpected keyword argument 'worker'"):
        api.run(["fake"], worker=1)  # type: ignore[call-arg]


def test_compare_takes_paths_and_runs(folder: Path) -> None:
    right = api.run(["fake"], [FEW], [ROUND], output="right")
    api.run([f"fake,script={script_of(folder, [(BROKEN, 'shape')])}"], [FEW], [ROUND], output="wrong")
    total = api.compare(right, "wrong").total
    assert (total.compared, total.changes[Change.REGRESSION], total.equal) == (8, 1, 7)
    assert api.compare("wrong", right).total.changes[Change.FIX] == 1


@pytest.mark.slow
def test_a_target_that_is_not_here_is_a_result(folder: Path) -> None:
    script = script_of(folder, [], startup="exit")
    done = api.run([f"fake,script={script}"], [FEW], [ROUND], output="out")
    assert done.exit_code == 3
    assert {result.outcome for result in done} == {Outcome.UNAVAILABLE}


def test_wrong_input_is_an_error_with_the_line_of_the_command_line(folder: Path) -> None:
    bad = folder / "Bad.yaml"
    bad.write_text("operator: Round\nopsets: [22]\ncolour: red\n", encoding="utf-8")
    with pytest.raises(SpecError, match=r"^Bad\.yaml:3: colour"):
        api.load([bad])
    with pytest.raises(NothingRan, match="no case matches Rond; no operator 'Rond'; did you mean 'Round'"):
        api.load(queries=["Rond"])
    with pytest.raises(UsageError, match="unknown target 'gpu'"):
        api.run(["gpu"])
    with pytest.raises(UsageError, match=r"shard 3 of 2: shards are counted from 1"):
        api.run(["fake"], shard=(3, 2))
    with pytest.raises(UsageError, match=r"Bad\.yaml: is a file"):
        api.run(["fake"], output=bad)
    with pytest.raises(UsageError, match=r"nowhere: "):
        api.read("nowhere")
