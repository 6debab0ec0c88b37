"""Results of operators that ran as the function that ONNX gives for them, wherever results are shown."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import msgspec
import pytest

from harness.model.case import BEYOND
from harness.model.result import Diff, Result
from harness.model.verdict import Outcome
from harness.render.csv_tables import render_case_csv
from harness.render.payload import Payload
from harness.render.terminal import describe
from harness.results.compare.comparison import Change
from harness.results.compare.joined import compare_runs
from harness.results.compare.tables import placed_on, said
from harness.results.runfile import RunReader
from harness.results.support import support
from harness.results.tables import tabulate
from tests import synthetic
from tests.synthetic import CPU, DML

CASE = "Mish@18:case=a;X=float16[3]"


def ran(nodes: int | None = 3, outcome: Outcome = Outcome.PASS, target: str = "cpu") -> Result:
    return synthetic.result(
        CASE,
        outcome,
        target=target,
        levels={"directml": BEYOND},
        diff=Diff(1, 1, 3, (0,), "1", "2") if outcome is Outcome.MISMATCH else None,
        function_nodes=msgspec.UNSET if nodes is None else nodes,
    )


def written(folder: Path, name: str, result: Result) -> Path:
    return synthetic.write_results(folder / name, [result], {"cpu": CPU}, run_id=name)


def test_a_line_says_of_how_many_nodes() -> None:
    assert describe(ran()) == "pass · as a function of 3 nodes"
    assert describe(ran(1)) == "pass · as a function of 1 node"
    assert describe(ran(None)) == "pass"


def test_run_file_csv_and_page(tmp_path: Path) -> None:
    for name, result, nodes, place in (
        ("function", ran(), "3", "CPUExecutionProvider as a function of 3 nodes"),
        ("kernel", ran(None), "", "CPUExecutionProvider"),
    ):
        run = written(tmp_path, name, result)
        assert list(RunReader(run)) == [result]
        assert ('"function_nodes":3' in run.read_text()) is (name == "function")
        (row,) = csv.DictReader(io.StringIO("".join(render_case_csv(RunReader(run)))))
        assert (row["placed on"], row["function nodes"]) == ("CPUExecutionProvider", nodes)
        payload = Payload()
        payload.add(result, 0, 0)
        assert list(payload._places) == [("compare", place)]


def test_a_kernel_that_became_a_function_is_a_change(tmp_path: Path) -> None:
    """No output differs, so nothing is red; a comparison alone tells that a release lost a kernel."""
    before, after = written(tmp_path, "before", ran(None)), written(tmp_path, "after", ran())
    (found,) = compare_runs(RunReader(before), RunReader(after)).kept[Change.CHANGED]
    assert found.kind.why == ("placement",)
    assert said(found) == "placed on its own provider → its own provider, as a function"
    assert placed_on(found.kind.after, "CPUExecutionProvider") == "CPUExecutionProvider, as a function"
    fewer = written(tmp_path, "fewer", ran(2))
    assert compare_runs(RunReader(after), RunReader(fewer)).total.equal == 1


@pytest.mark.parametrize(
    ("result", "measured", "disagreements"),
    [
        (ran(target="dml"), "as a function", ()),
        (ran(3, Outcome.MISMATCH, "dml"), "as a function", ()),
        (
            ran(None, target="dml"),
            "yes",
            ("taken, but not registered", "passes beyond the documented tables"),
        ),
    ],
)
def test_a_function_needs_no_kernel(result: Result, measured: str, disagreements: tuple[str, ...]) -> None:
    (row,) = support(tabulate(synthetic.header({"dml": DML}), [result], synthetic.end_of([result])))
    assert (row.registered, row.measured, row.disagreements) == ("no", measured, disagreements)
