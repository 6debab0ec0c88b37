"""The pytest plugin: what a case's result is in pytest, and that pytest's own options work on cases as on
tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import junitparser
import pytest

from harness.commands.pytest_plugin.execution import ItemRuns, Wanted
from harness.model.errors import TargetUnavailable
from harness.model.verdict import Outcome
from harness.specs.expand import expand
from harness.specs.expectations.expectations import load_expectations
from harness.specs.reading.load import load_specs
from harness.specs.selection import Selection
from harness.targets.registry import parse_targets
from tests.running import ROUND, harness, script_of

pytest_plugins = ["pytester"]

LINK = "https://onnx.ai/onnx/operators/onnx__Round.html"
WRONG = "Round@22:sweep=sizes;X=float16[2]"
SPEC = """\
operator: Round
opsets: [22]
cases:
  - name: literal
    inputs: {X: {dtype: float32, values: [0.5, 1.5]}}
    output: [0, 2]
sweeps:
  - name: sizes
    X: {dtype: [float32, float16], shape: [[1], [2], [3]]}
"""
IDS = [
    "Round@22:case=literal;X=float32[2]",
    "Round@22:sweep=sizes;X=float32[1]",
    "Round@22:sweep=sizes;X=float32[2]",
    "Round@22:sweep=sizes;X=float32[3]",
    "Round@22:sweep=sizes;X=float16[1]",
    WRONG,
    "Round@22:sweep=sizes;X=float16[3]",
]


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Make a conformance suite of one's own beside a test; the target is wrong in one case."""
    script_of(pytester.path, [(WRONG, "ulp")])
    pytester.makeini(
        "[pytest]\ntestpaths = tests\nharness_specs = tests/conformance\nharness_targets = fake,script=script.yaml\n"
        "harness_expectations = none\n"
    )
    pytester.mkdir("none")
    folder = pytester.mkdir("tests") / "conformance"
    folder.mkdir()
    (folder / "Round.yaml").write_text(SPEC, encoding="utf-8")
    (folder.parent / "test_own.py").write_text("def test_own(): pass\n", encoding="utf-8")
    return pytester


def node(case: str, target: str = "fake,script=script.yaml") -> str:
    return f"tests/conformance/Round.yaml::{target}[{case}]"


def expect(suite: pytest.Pytester, outcome: str, query: str = WRONG) -> str:
    """Write an expectation and return the option that names it."""
    limit = "difference: {ulp: 1}, " if outcome == "mismatch" else ""
    text = f'- {{match: "{query}", expect: {outcome}, {limit}reason: halves are known to be wrong, link: "{LINK}"}}\n'
    (suite.path / "known.yaml").write_text(text, encoding="utf-8")
    return "--harness-expectations=known.yaml"


class TestCollection:
    def test_ids_are_those_of_the_reports_beside_ones_own_tests(self, suite: pytest.Pytester) -> None:
        lines = suite.runpytest_inprocess("--collect-only", "-q").outlines
        assert lines[:8] == [*map(node, IDS), "tests/test_own.py::test_own"]
        assert harness("list", suite.path / "tests" / "conformance" / "Round.yaml").out.splitlines() == IDS

    def test_without_arguments_harness_collects_cases_alone(self, suite: pytest.Pytester) -> None:
        assert suite.runpytest_inprocess("--harness").parseoutcomes() == {"passed": 6, "failed": 1}

    @pytest.mark.slow
    def test_the_harness_s_own_specs(self, pytester: pytest.Pytester) -> None:
        ended = pytester.runpytest_inprocess(
            "--harness", "--harness-target=cpu", "--harness-query=Round@22:case=documented_onnx"
        )
        assert ended.parseoutcomes() == {"passed": 5}  # and as deployed models hold it

    def test_files_folders_and_single_cases(self, suite: pytest.Pytester) -> None:
        file = "tests/conformance/Round.yaml"
        assert suite.runpytest_inprocess("--harness", file, "tests/test_own.py").parseoutcomes() == {
            "passed": 7,
            "failed": 1,
        }
        assert suite.runpytest_inprocess(node(IDS[0])).parseoutcomes() == {"passed": 1}
        assert suite.runpytest_inprocess("tests/test_own.py", "--harness-specs", file).parseoutcomes() == {
            "passed": 7,
            "failed": 1,
        }

    @pytest.mark.slow
    def test_several_targets_queries_names_and_marks(self, suite: pytest.Pytester) -> None:
        both = ("--harness", "--harness-target=fake", "--harness-target=fake,script=script.yaml")
        assert suite.runpytest_inprocess(*both).parseoutcomes() == {"passed": 13, "failed": 1}
        assert suite.runpytest_inprocess(*both, "--harness-query=Round@22:X=float16").parseoutcomes() == {
            "passed": 5,
            "failed": 1,
        }
        assert suite.runpytest_inprocess(*both, "-k", "script and float16").parseoutcomes() == {
            "passed": 2,
            "failed": 1,
            "deselected": 11,
        }
        for mark, number in (
            ("harness(operator='Round', validity='valid', target='fake')", 7),
            ("harness(opset=22)", 13),
            ("harness(level='2_1')", 13),
            ("harness(level='5_0') or harness(validity='invalid')", 0),
        ):
            assert (
                suite.runpytest_inprocess(*both, "--strict-markers", "-m", mark)
                .parseoutcomes()
                .get("passed", 0)
                == number
            ), mark


class TestResults:
    def test_a_regression_says_what_where_and_how_to_repeat_it(self, suite: pytest.Pytester) -> None:
        ended = suite.runpytest_inprocess()
        ended.assert_outcomes(passed=7, failed=1)
        ended.stdout.fnmatch_lines(
            [
                "regression: mismatch · 1 of 2 differ at [[]0]: expected -71.0 (0xd470), actual -71.06 (0xd471) · max 1 ULP",
                "tests/conformance/Round.yaml:8",
                "harness run tests/conformance/Round.yaml -t fake,script=script.yaml -k 'Round@22:sweep=sizes;X=float16[[]2]'",
            ]
        )
        assert ended.ret == 1

    def test_a_known_deviation_is_an_xfail_with_reason_and_link(self, suite: pytest.Pytester) -> None:
        known = expect(suite, "mismatch")
        ended = suite.runpytest_inprocess(known, "-rx")
        ended.assert_outcomes(passed=7, xfailed=1)
        (line,) = (line for line in ended.outlines if line.startswith("XFAIL "))
        assert node(WRONG) in line
        assert line.endswith(f"known: halves are known to be wrong {LINK}")
        suite.runpytest_inprocess(known, "--runxfail").assert_outcomes(passed=7, failed=1)

    def test_an_improvement_fails(self, suite: pytest.Pytester) -> None:
        ended = suite.runpytest_inprocess(expect(suite, "mismatch"), "--harness", "--harness-target=fake")
        ended.assert_outcomes(passed=6, failed=1)
        ended.stdout.fnmatch_lines(
            [
                "[[]XPASS(strict)] improvement: pass: remove or narrow the expectation",
                f"known: *{LINK}",
            ]
        )

    def test_another_outcome_than_the_known_one_fails(self, suite: pytest.Pytester) -> None:
        ended = suite.runpytest_inprocess(expect(suite, "crash"))
        ended.assert_outcomes(passed=7, failed=1)
        ended.stdout.fnmatch_lines(["changed: mismatch*"])

    def test_what_no_graph_expresses_is_skipped(self, pytester: pytest.Pytester) -> None:
        pytester.makeini("[pytest]\n")
        query = "--harness-query=Round@22:case=api_*"
        ended = pytester.runpytest_inprocess(
            "-c", "tox.ini", "--harness", str(ROUND), "--harness-target=fake", query, "-rs"
        )
        assert set(ended.parseoutcomes()) == {"skipped"}
        ended.stdout.fnmatch_lines(
            ["SKIPPED *Round.yaml:*: expected: not_run · NotExpressible: a call of DirectML's own API, *"]
        )

    def test_a_crash_costs_one_case(self, suite: pytest.Pytester) -> None:
        script_of(suite.path, [(WRONG, "crash")])
        ended = suite.runpytest_inprocess()
        ended.assert_outcomes(passed=7, failed=1)
        ended.stdout.fnmatch_lines(["regression: crash · SIGSEGV*"])

    def test_a_skip_that_a_conftest_adds_counts(self, suite: pytest.Pytester) -> None:
        suite.makeconftest(
            "import pytest\ndef pytest_collection_modifyitems(items):\n"
            "    [item.add_marker(pytest.mark.skip(reason='known to us')) for item in items if 'float16[2]' in item.name]\n"
        )
        ended = suite.runpytest_inprocess("-rs")
        ended.assert_outcomes(passed=7, skipped=1)
        ended.stdout.fnmatch_lines(["SKIPPED * tests/conformance/Round.yaml:8: known to us"])


class TestOptionsOfPytest:
    def test_x_stops_at_the_failure(self, suite: pytest.Pytester) -> None:
        suite.runpytest_inprocess("-x").assert_outcomes(passed=5, failed=1)

    @pytest.mark.slow
    def test_lf_runs_what_failed(self, suite: pytest.Pytester) -> None:
        suite.runpytest_inprocess()
        suite.runpytest_inprocess("--lf").assert_outcomes(failed=1)
        script_of(suite.path, [])
        suite.runpytest_inprocess("--lf").assert_outcomes(passed=1)

    def test_junitxml(self, suite: pytest.Pytester) -> None:
        suite.runpytest_inprocess(expect(suite, "mismatch"), "--junitxml=junit.xml")
        (found,) = junitparser.JUnitXml.fromfile(str(suite.path / "junit.xml"))
        assert (found.tests, found.failures, found.errors, found.skipped) == (8, 0, 0, 1)
        (wrong,) = (case for case in found if not case.is_passed)
        assert (wrong.classname, wrong.name) == (
            "tests.conformance.Round.yaml",
            f"fake,script=script.yaml[{WRONG}]",
        )
        assert LINK in wrong.result[0].message

    @pytest.mark.parametrize("dist", ["load", pytest.param("worksteal", marks=pytest.mark.slow)])
    @pytest.mark.slow
    def test_processes_of_xdist_share_the_cases(self, suite: pytest.Pytester, dist: str) -> None:
        ended = suite.runpytest_subprocess("-n", "2", "--dist", dist)
        ended.assert_outcomes(passed=7, failed=1)
        # under CI pytest adds the message, elsewhere as much of it as the terminal is wide
        ended.stdout.fnmatch_lines([f"FAILED {node(WRONG).replace('[', '[[]')}*"])

    @pytest.mark.slow
    def test_processes_of_xdist_that_find_no_case_say_so(self, suite: pytest.Pytester) -> None:
        ended = suite.runpytest_subprocess("-n", "2", "--harness", "--harness-query=Round@13")
        assert ended.ret == pytest.ExitCode.NO_TESTS_COLLECTED
        ended.stdout.fnmatch_lines(["conformance: no case matches Round@13"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--harness", "--harness-target=gpu"], "ERROR: unknown target 'gpu'; allowed: cpu, "),
        (
            ["--harness", "--harness-query=Rond"],
            "ERROR: no case matches Rond; no operator 'Rond'; did you mean 'Round'?; known: Round",
        ),
        (
            ["--harness", "--harness-query=Round@22:=="],
            "ERROR: bad query 'Round@22:==': '==' is not a key=value; write for example ",
        ),
        (["--harness", "bad.yaml"], "ERROR: bad.yaml:3: colour: "),
        (["--harness-specs=nowhere"], "/nowhere: no such file or folder of specs"),
        (["--harness", "tests/test_own.py"], "ERROR: tests/test_own.py"),
        (
            ["--harness", "--harness-jobs=0"],
            "ERROR: --harness-timeout is 0.1 to 1000000 seconds, --harness-jobs 1 to 256 processes",
        ),
        (
            ["--harness", "--harness-target=fake,script=dead.yaml"],
            "ERROR: the worker ended before it started a case (exit code 3)",
        ),
        (
            ["--harness", "--harness-expectations=bad.yaml"],
            "ERROR: bad.yaml:1: an expectations file should be a list of entries",
        ),
    ],
)
def test_wrong_input_is_one_line(suite: pytest.Pytester, arguments: list[str], said: str) -> None:
    suite.makefile(".yaml", bad="operator: Round\nopsets: [22]\ncolour: red\n", dead="startup: exit\n")
    if said.endswith("test_own.py"):
        suite.makeini("[pytest]\n")
        said = "ERROR: --harness: no argument is a spec, or a folder with *.yaml files"
    ended = suite.runpytest_inprocess(*arguments)
    lines = [line for line in ended.errlines if line]
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    assert len(lines) == 1
    assert said in lines[0]


def test_an_option_without_specs_is_one_line(pytester: pytest.Pytester) -> None:
    ended = pytester.runpytest_inprocess("--harness-target=cpu")
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in ended.errlines if line] == [
        "ERROR: an option --harness-… is given, but no specs: add --harness or --harness-specs PATH"
    ]


def test_who_does_not_ask_for_conformance_imports_nothing_of_it(tmp_path: Path) -> None:
    code = (
        "import sys, pytest\n"
        "assert pytest.main(['--co', '-q']) == 5\n"
        "print(sorted(name for name in sys.modules if name.partition('.')[0] in ('harness', 'numpy', 'onnx', 'click')))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (
        ended.stdout.splitlines()[-1] == "['harness', 'harness.commands', 'harness.commands.pytest_plugin']"
    )


class TestExecution:
    def _of(self, tmp_path: Path, target: str, *, blocks: bool = False) -> tuple[ItemRuns, list[Wanted]]:
        (tmp_path / "Round.yaml").write_text(SPEC, encoding="utf-8")
        targets = parse_targets([target])
        wanted = [Wanted(case, target) for case in Selection(expand(load_specs([tmp_path / "Round.yaml"])))]
        return ItemRuns(targets, wanted, load_expectations([]), timeout=30, jobs=1, blocks=blocks), wanted

    def test_in_any_order_and_again(self, tmp_path: Path) -> None:
        execution, wanted = self._of(tmp_path, "fake")
        try:
            for each in (*reversed(wanted), wanted[0], wanted[0]):
                result, header = execution.result(each)
                assert (result.case, result.outcome) == (each.case.id, Outcome.PASS)
                assert list(header.targets) == ["fake"]
        finally:
            execution.close()

    @pytest.mark.slow
    def test_a_target_that_does_not_start_is_started_once(self, tmp_path: Path) -> None:
        script = script_of(tmp_path, [], startup="exit")
        execution, wanted = self._of(tmp_path, f"fake,script={script}")
        said = set()
        for each in wanted:
            with pytest.raises(TargetUnavailable) as error:
                execution.result(each)
            said.add(id(error.value))
        assert len(said) == 1
