"""Repros: what is in the folder, and that repro.py says the truth in an environment that has onnxruntime and
numpy only."""

from __future__ import annotations

import base64
import importlib.metadata
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness.compile.graphs import compile_case
from harness.compile.prepare import by_graph
from harness.model.case import (
    Case,
    Options,
    Tensor,
    TensorSpec,
    Validity,
)
from harness.model.expected import Approx
from harness.model.result import Error, Memory
from harness.model.signature import Signature
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.specs.sweeps.calls import call_of
from harness.targets.execution import Prepared
from harness.targets.registry import parse_target
from harness.triage.repro.failure import Failure, SessionSettings
from harness.triage.repro.folder import write_repro
from harness.triage.repro.issue import issue
from harness.triage.repro.onnx_alone import ask_onnx
from harness.triage.repro.script import expected_lines, script
from harness.triage.repro.snippet import snippet
from tests.bare import bare_environment, has_harness, run_script
from tests.elements import elements_of
from tests.golden import check_golden
from tests.prepared import legal_dtypes, prepare, prepared_case, right_output
from tests.running import SPECS, Ended, complaint, harness, results_of, script_of
from tests.sampled import one_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="crashes are told by signals")
ORT = importlib.metadata.version("onnxruntime")
INFO = TargetInfo(
    "CPUExecutionProvider", onnxruntime="1.31.1", python="3.11.7", numpy="2.4.6", platform="Linux x86_64"
)

FAILING = {
    "GatherND@12:sweep=batch_sizes_multiple;data=float32[2,3,4];indices=int64[4,3,1];batch_dims=1;values=first": "accepted_invalid",
    "GatherND@13:case=empty_tuple;data=float32[2,2];indices=int64[2,0]": "accepted_invalid",
    "GatherND@13:case=batch_dims_below_minus_rank;data=float32[2,2];indices=int64[2,1];batch_dims=-3;shapes=static": "crash",
    "GatherND@13:case=batch_dims_below_minus_one;data=float32[2,2];indices=int64[2,1];batch_dims=-2": "crash",
    "Round@22:sweep=rank;X=bfloat16[2,3];values=specials": "unsupported",
    "GatherND@13:sweep=values;data=complex64[300];indices=int64[33,1];values=mixed": "rejected",
}
"""Real failures of the CPU provider of onnxruntime 1.31."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = bare_environment(tmp_path_factory.mktemp("bare") / "environment")
    assert not has_harness(python)
    return python


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the CPU provider with real failures."""
    folder = tmp_path_factory.mktemp("run") / "run"
    queries = [part for case in FAILING for part in ("-k", case)]
    specs = [SPECS / "GatherND.yaml", SPECS / "Round.yaml"]
    asked = (*specs, "-t", "cpu", "--expectations", SPECS / "expectations" / "cpu.yaml", *queries)
    ended = harness("run", *asked, "-o", folder)
    assert ended.code == 0, ended.err
    assert FAILING.items() <= {case: result["outcome"] for case, result in results_of(folder).items()}.items()
    return folder


def repro(run: Path, case: str, folder: Path, *options: str | Path) -> Ended:
    return harness("repro", run, case, "-o", folder, *options)


@pytest.mark.parametrize("case", one_of(2, FAILING), ids=lambda case: case.partition(";")[0])
def test_a_real_failure_is_reproduced_without_the_harness(
    run: Path, bare: Path, tmp_path: Path, case: str
) -> None:
    ended = repro(run, case, tmp_path / "repro")
    assert ended.code == 0, ended.err
    shown = run_script(bare, tmp_path / "repro" / "repro.py")
    assert shown.returncode == 1, shown.stderr + shown.stdout
    told = dict(line.split(":", 1) for line in shown.stdout.splitlines())
    assert told["case"].strip() == case
    assert f"onnxruntime {ORT}, numpy" in told["versions"]
    assert told["BUG"].strip() == "it is still there"
    if FAILING[case] == "accepted_invalid":
        assert told["ran on"].strip() == "CPUExecutionProvider"
        assert told["expected"].strip().startswith("an error: ")
        assert told["actual"].strip().startswith("accepted, with the output float32[")
    elif FAILING[case] == "crash":
        assert told["ran on"].strip().startswith("unknown")
        assert told["actual"].strip().startswith("the process ended with SIG")
    else:
        assert told["actual"].partition(":")[0].strip().endswith("while loading")
    assert_layout(tmp_path / "repro", case)


def assert_layout(folder: Path, case_id: str) -> None:
    """Read the folder as a runner of ONNX's backend tests does."""
    spec = SPECS / f"{case_id.partition('@')[0]}.yaml"
    case = next(case for case in planned(spec) if case.id == case_id)
    prepared = prepared_case(case)
    inputs = prepared.inputs
    model = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(model, full_check=False) if case.validity is Validity.VALID else None
    names = [value.name for value in model.graph.input]
    data = folder / "test_data_set_0"
    assert sorted(path.name for path in data.glob("input_*")) == [f"input_{n}.pb" for n in range(len(names))]
    for number, (name, tensor) in enumerate(zip(names, inputs, strict=True)):
        proto = onnx.TensorProto.FromString((data / f"input_{number}.pb").read_bytes())
        assert proto.name == name
        array = numpy_helper.to_array(proto)
        assert array.tobytes() == tensor.array.tobytes()
        assert array.shape == tensor.array.shape
    assert (data / "output_0.pb").exists() is (case.validity is Validity.VALID)
    if case.validity is Validity.VALID:
        expected = right_output(prepared)
        proto = onnx.TensorProto.FromString((data / "output_0.pb").read_bytes())
        assert proto.name == model.graph.output[0].name
        assert numpy_helper.to_array(proto).tobytes() == expected.array.tobytes()


@cache
def planned(spec: Path) -> tuple[Case, ...]:
    return tuple(expand(load_specs([spec])))


def failure_of(prepared: Prepared, **changes: object) -> Failure:
    """A failure with a case that in truth conforms, or that the changes make another."""
    graph = compile_case(prepared.case, prepared.call, prepared.inputs)
    session = SessionSettings("CPUExecutionProvider", {}, {})
    found = Failure(
        prepared,
        graph,
        parse_target("cpu"),
        session,
        INFO,
        Signature(Outcome.MISMATCH, "compare", "", "ulp"),
        None,
        None,
        None,
        ("harness run",),
    )
    return found._replace(**changes)  # type: ignore[arg-type]


def run_text(python: Path, folder: Path, text: str, *arguments: str) -> tuple[int, str]:
    (folder / "scripts").mkdir(exist_ok=True)
    path = folder / "scripts" / "repro.py"
    path.write_text(text, encoding="utf-8")
    done = run_script(python, path, *arguments)
    return done.returncode, done.stdout


def with_elements(dtype: str) -> Prepared:
    """A GatherND that moves every element of a type that is hard to write."""
    data = elements_of(dtype)
    made = prepare("GatherND", dtype).case
    index = np.arange(data.size).reshape(-1, 1)
    inputs = (Tensor(dtype, data), Tensor("int64", index))
    specs = tuple(
        TensorSpec(spec.name, tensor.dtype, tensor.array.shape, "literal")
        for spec, tensor in zip(made.inputs, inputs, strict=True)
    )
    case = Case(
        f"GatherND@13:case=all;data={dtype}[{data.size}];indices=int64[{data.size},1]",
        "GatherND",
        13,
        {},
        specs,
        literals=(data, index),
    )
    return Prepared(case, call_of(case), inputs)


@pytest.mark.parametrize(
    "dtype", one_of(5, [name for name in legal_dtypes("GatherND") if not name.startswith("complex")])
)
def test_a_fixed_bug_is_0_and_one_wrong_bit_is_1(bare: Path, tmp_path: Path, dtype: str) -> None:
    failure = failure_of(with_elements(dtype))
    assert run_text(bare, tmp_path, script(failure))[0] == 0
    data = failure.prepared.inputs[0]
    other = data.array.copy()
    if dtype == "string":
        other[3] += "?"
    elif dtype == "bool":
        other[1] ^= True
    else:
        other.view(np.uint8)[0] ^= 1
    text = script(failure)
    constants = script(
        failure._replace(
            prepared=failure.prepared._replace(inputs=(Tensor(dtype, other), failure.prepared.inputs[1]))
        )
    )
    expected = constants[constants.index("EXPECTED = ") : constants.index("EXPECTED_ERROR = ")]
    text = text[: text.index("EXPECTED = ")] + expected + text[text.index("EXPECTED_ERROR = ") :]
    code, out = run_text(bare, tmp_path, text)
    assert code == 1, out
    assert "BUG: it is still there" in out


def test_any_nan_is_right_and_the_sign_of_zero_counts(bare: Path, tmp_path: Path) -> None:
    text = script(failure_of(prepare_round([float("nan"), 0.0])))
    (line,) = [line for line in text.splitlines() if line.startswith("    {'any': ")]
    for expected, code in (([-float("nan"), 0.0], 0), ([float("nan"), -0.0], 1), ([0.0, 0.0], 1)):
        bits = np.array(expected, "f4").tobytes()
        assert (
            run_text(bare, tmp_path, text.replace(line, f"    {{'any': [np.frombuffer({bits!r}, 'f4')]}},"))[
                0
            ]
            == code
        )


def prepare_round(values: list[float], **options: object) -> Prepared:
    made = prepare("Round", "float32").case
    array = np.array(values, "f4")
    case = Case(
        "Round@22:case=x;X=float32[2]",
        "Round",
        22,
        {},
        (TensorSpec("X", "float32", array.shape, "literal"),),
        literals=(array,),
    )
    assert made.operator == case.operator
    return Prepared(case, call_of(case), (Tensor("float32", array),))


def test_options_of_the_case_are_those_of_the_script(bare: Path, tmp_path: Path) -> None:
    made = prepare(
        "GatherElements",
        "float32",
        options=Options(shapes="static", initializer="indices", optimization="all"),
    )
    text = script(failure_of(made))
    assert "OPTIMIZATION = 'ORT_ENABLE_ALL'" in text
    assert "('indices'," not in text
    assert run_text(bare, tmp_path, text)[0] == 0
    inside = prepare_round([1.5, -0.2])
    inside = inside._replace(
        case=Case(inside.case.id, "Round", 22, {}, inside.case.inputs, Options(in_place=True))
    )
    text = script(failure_of(inside))
    assert "IN_PLACE = True" in text
    assert run_text(bare, tmp_path, text)[0] == 0


def test_what_cannot_be_told_is_3(bare: Path, tmp_path: Path) -> None:
    failure = failure_of(prepare("GatherND", "float32"))
    absent = script(failure._replace(session=SessionSettings("DmlExecutionProvider", {"device_id": "0"}, {})))
    code, out = run_text(bare, tmp_path, absent)
    assert code == 3
    assert "CANNOT TELL: this onnxruntime has " in out
    model = onnx.ModelProto.FromString(failure.graph.model)
    model.opset_import[0].version = 999
    text = script(failure)
    probe = text[text.index("OPSET_PROBE = ") : text.index("\n", text.index("OPSET_PROBE = "))]
    unknown = text.replace(probe, f"OPSET_PROBE = {base64.b64encode(model.SerializeToString()).decode()!r}")
    code, out = run_text(bare, tmp_path, unknown)
    assert code == 3
    assert "does not load models of this opset" in out
    code, out = run_text(bare, tmp_path, text, "--in-process")
    assert code == 0
    assert "FIXED" in out


def test_without_onnxruntime_nothing_is_told(bare: Path, tmp_path: Path) -> None:
    text = script(failure_of(prepare("GatherND", "float32"))).replace(
        "import onnxruntime as ort", "import onnxruntime_that_is_absent as ort"
    )
    code, out = run_text(bare, tmp_path, text)
    assert code == 3
    assert "No module named 'onnxruntime_that_is_absent'" in out


def test_a_script_that_is_no_file_runs_in_its_own_process(bare: Path, tmp_path: Path) -> None:
    """As `harness windows python` runs it: read from standard input, under the name that it has elsewhere."""
    text = script(failure_of(prepare("GatherND", "float32")))
    (tmp_path / "repro.py").write_text(text, encoding="utf-8")
    starter = f"""
import sys
sys.argv[:] = ["absent.py"]
text = open({str(tmp_path / "repro.py")!r}, encoding="utf-8").read()
exec(compile(text, "absent.py", "exec"), {{"__name__": "__main__", "__file__": "absent.py", "__doc__": None}})
"""
    code, out = run_text(bare, tmp_path, starter)
    assert (code, out.splitlines()[-1]) == (0, "FIXED: it does what is expected")


@pytest.mark.slow
def test_a_process_that_ends_with_any_model_tells_nothing(bare: Path, tmp_path: Path) -> None:
    text = script(failure_of(prepare("GatherND", "float32")))
    dying = text.replace("import onnxruntime as ort\n", "import onnxruntime as ort\n\n    os._exit(5)\n")
    assert dying.count("os._exit(5)") == 2  # the case and the control
    code, out = run_text(bare, tmp_path, dying)
    assert code == 3, out
    assert "CANNOT TELL: a process of its own ends here with any model; run it again with --in-process" in out
    only_the_case = text.replace("as ort\n", "as ort\n\n    os._exit(5)\n", 1)
    code, out = run_text(bare, tmp_path, only_the_case)
    assert (code, out.splitlines()[-1]) == (1, "BUG: it is still there"), out


def test_a_hang_is_a_bug(bare: Path, tmp_path: Path) -> None:
    text = script(failure_of(prepare("GatherND", "float32"))).replace(
        "TIMEOUT_SECONDS = 60", "TIMEOUT_SECONDS = 1"
    )
    text = text.replace("    import onnxruntime as ort\n", "    import time\n\n    time.sleep(60)\n", 1)
    code, out = run_text(bare, tmp_path, text)
    assert code == 1
    assert "no answer within 1 s" in out


def test_the_issue_reads_well() -> None:
    case = next(
        case
        for case in planned(SPECS / "GatherND.yaml")
        if case.id.startswith("GatherND@13:case=empty_tuple;")
    )
    prepared = prepared_case(case)
    failure = failure_of(
        prepared,
        signature=Signature(Outcome.ACCEPTED_INVALID, "compare"),
        actual=(Tensor("float32", np.array([[[1, 2], [3, 4]]] * 2, "f4")),),
        origin="GatherND@13:sweep=tuple_empty;data=float32[3,4];indices=int64[2,0];values=in_range",
        commands=("harness run -t cpu", f"harness run -t cpu -k '{case.id}'"),
    )
    table = "| onnxruntime | outcome |\n| --- | --- |\n| 1.15.0 | accepted_invalid |"
    check_golden(Path(__file__).parents[1] / "golden" / "issue.md", issue(failure, 'print("repro")\n', table))


def empty_tuple() -> Failure:
    """A call that the CPU provider accepts although it breaks a rule."""
    cases = planned(SPECS / "GatherND.yaml")
    case = next(case for case in cases if case.id.startswith("GatherND@13:case=empty_tuple;"))
    found = Signature(Outcome.ACCEPTED_INVALID, "compare")
    return failure_of(prepared_case(case), signature=found)


def test_an_issue_has_the_fields_of_onnx_runtimes_form() -> None:
    text = issue(empty_tuple(), "pass", None)
    fields = [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]
    assert fields == [
        "Describe the issue",
        "To reproduce",
        "Urgency",
        "Platform",
        "OS Version",
        "ONNX Runtime Installation",
        "ONNX Runtime Version or Commit ID",
        "ONNX Runtime API",
        "Architecture",
        "Execution Provider",
        "Execution Provider Library Version",
    ]
    assert "### Platform\n\nLinux\n" in text
    assert "### Execution Provider\n\nDefault CPU\n" in text


def test_an_issue_names_no_path_of_the_machine() -> None:
    failure = empty_tuple()._replace(
        info=msgspec.structs.replace(INFO, runtime="interpreter /home/me/envs/new/bin/python"),
        error=Error("Fail", "/home/me/build/onnxruntime/core/gather_nd.cc:61 broken"),
        commands=("harness run /home/me/specs/own.yaml -t cpu@/home/me/envs/new/bin/python",),
    )
    text = issue(failure, "pass", None)
    assert "/home/me" not in text
    assert "…/gather_nd.cc:61 broken" in text
    assert "harness run …/own.yaml -t cpu@…/python" in text
    assert "| runtime | interpreter …/python |" in text


def test_an_issue_says_that_it_was_seen_under_wine() -> None:
    info = TargetInfo(
        "DmlExecutionProvider",
        runtime="Windows runtime",
        onnxruntime="1.24.4",
        platform="Windows AMD64",
        directml="1.15.4",
        adapter="llvmpipe",
    )
    text = issue(empty_tuple()._replace(info=info), "pass", None)
    assert "seen under Wine on Linux with the adapter llvmpipe, and has not been tried on Windows." in text
    assert "### Platform\n\nOther / Unknown\n" in text
    assert "### OS Version\n\nWine on Linux, which presents itself as Windows AMD64\n" in text
    assert "### Execution Provider\n\nDirectML\n" in text
    windows = msgspec.structs.replace(info, runtime="this interpreter")
    on_windows = issue(empty_tuple()._replace(info=windows), "pass", None)
    assert "Wine" not in on_windows
    assert "### Platform\n\nWindows\n" in on_windows


def test_an_issue_says_which_release_mended_it_and_what_memory_held() -> None:
    failure = empty_tuple()._replace(mended="1.26.0", memory=Memory(0, 3, 0, 8))
    text = issue(failure, "pass", None)
    assert text.partition("\n")[0].endswith("(mended in 1.26.0)")
    assert "**Mended in onnxruntime 1.26.0**: the newest release does what is expected." in text
    assert "of 8 elements 3 read from outside of the inputs. The kernel reads out of bounds." in text


def test_a_crash_of_onnxs_shape_inference_is_not_the_providers(tmp_path: Path) -> None:
    cases = planned(SPECS / "GatherND.yaml")
    (case,) = (each for each in cases if each.id.startswith("GatherND@13:case=batch_dims_below_minus_rank;"))
    at_load = Signature(Outcome.CRASH, "load", "SIGSEGV")
    failure = failure_of(prepared_case(case), signature=at_load, error=Error("SIGSEGV"))
    alone = ask_onnx(failure.graph.model)
    assert (alone.checker.words, alone.crashes) == ("accepts it", True)
    whose = failure._replace(onnx_alone=alone)
    assert (
        whose.title == "GatherND-13: ONNX's shape inference ends the process while the model loads (SIGSEGV)"
    )
    assert "- shape inference: ends the process (SIG" in issue(whose, "pass", None)
    running = whose._replace(signature=at_load._replace(stage="run"))
    assert running.title == "GatherND-13: CPUExecutionProvider ends the process while it runs (SIGSEGV)"
    harmless = failure._replace(onnx_alone=ask_onnx(failure_of(prepare("Round", "float32")).graph.model))
    assert harmless.onnx_alone is not None
    assert [each.words for each in harmless.onnx_alone] == ["accepts it", "accepts it"]
    assert harmless.title.startswith("GatherND-13: CPUExecutionProvider ends the process")


@pytest.mark.parametrize("dtype", ["float32", "int64", "string", "bool", "float16", "bfloat16"])
def test_the_snippet_shows_the_output_in_fifteen_lines(tmp_path: Path, dtype: str) -> None:
    prepared = prepare("GatherND", dtype)
    failure = failure_of(prepared)
    text = snippet(failure)
    assert len(text.splitlines()) <= 15
    if dtype == "bfloat16":  # session.run takes none
        return
    written = text.replace("print(session.run(", "found = (session.run(")
    path = tmp_path / "snippet.py"
    path.write_text(written + "\nprint(found[0].tolist())\n", encoding="utf-8")
    done = subprocess.run([sys.executable, path], capture_output=True, encoding="utf-8", timeout=60)
    assert done.stdout == f"{right_output(prepared).array.tolist()}\n", done.stderr


def test_a_snippet_reads_what_does_not_fit_from_the_files(tmp_path: Path) -> None:
    prepared = prepared_case(
        next(c for c in planned(SPECS / "GatherND.yaml") if c.id.startswith("GatherND@13:sweep=large;"))
    )
    failure = failure_of(prepared)
    write_repro(failure, tmp_path, None)
    text = snippet(failure)
    assert 'onnx.load_tensor("test_data_set_0/input_0.pb")' in text
    (tmp_path / "snippet.py").write_text(text.replace("print(", "found = (") + "\nprint(found[0].shape)")
    done = subprocess.run(
        [sys.executable, "snippet.py"], cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=60
    )
    assert done.stdout == f"{right_output(prepared).array.shape}\n", done.stderr


@pytest.mark.slow
def test_a_call_that_the_session_runs_first_is_carried(bare: Path, tmp_path: Path) -> None:
    cases = planned(SPECS / "GatherND.yaml")
    case = next(c for c in cases if c.options.after == "larger" and c.inputs[0].dtype == "float64")
    ((unit,),) = ([*by_graph([case], 0)],)
    (prepared,) = unit.cases
    failure = failure_of(prepared, graph=unit.graph)
    text = script(failure)
    assert text.count("BEFORE = [  # a call that the session runs first") == 1
    code, out = run_text(bare, tmp_path, text)
    assert (code, out.splitlines()[-1]) == (0, "FIXED: it does what is expected"), out
    failing = text.replace(
        "zip(INPUTS, BEFORE)]", "zip(INPUTS, BEFORE[:1])]"
    )  # the first call lacks an input
    assert run_text(bare, tmp_path, failing)[0] == 1
    said = issue(failure, "pass", None)
    assert "The session ran another call first, without which the case may pass: `float64[" in said
    assert "The case as an entry of a spec" not in said


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_what_is_expected_within_a_bound_is_written_as_python(dtype: str) -> None:
    """Above the largest float64 nothing overflows."""
    held = {"np": np, "base64": base64}
    lines = expected_lines([Approx(dtype, np.array([0.1, np.inf]), np.array([1e-9, 0.0]))], Validity.VALID)
    exec("\n".join(lines), held)
    (entry,) = held["EXPECTED"]  # type: ignore[attr-defined]
    assert entry["value"].tolist() == [0.1, np.inf]
    assert entry["overflow"] == (np.inf if dtype == "float64" else 65520.0)


def test_an_issue_of_every_outcome_has_a_title() -> None:
    prepared = prepare("GatherND", "float32")
    for outcome in Outcome:
        error = Error("SIGSEGV", "``` in the message") if outcome is Outcome.CRASH else None
        found = Signature(outcome, "run", error.class_ if error else "")
        text = issue(failure_of(prepared, signature=found, error=error), "pass", None)
        assert text.startswith("# GatherND-13: CPUExecutionProvider ")
        assert "#### Since when" not in text
        assert [text.count(f"```{kind}\n") for kind in ("sh", "yaml", "python")] == [2, 1, 2]
        if error:
            assert "````text\n``` in the message\n````" in text


def test_a_script_too_long_for_an_issue_is_attached() -> None:
    prepared = prepare("GatherND", "float32")
    text = issue(failure_of(prepared), "x" * 30_001, None)
    assert "`repro.py` is attached (30,001 characters" in text
    assert len(text) < 5000


def test_a_large_input_is_in_the_script(bare: Path, tmp_path: Path) -> None:
    case = next(
        case
        for case in planned(SPECS / "GatherND.yaml")
        if case.id.startswith("GatherND@13:sweep=large;data=float16[70000]")
    )
    prepared = prepared_case(case)
    assert run_text(bare, tmp_path, script(failure_of(prepared)))[0] == 0


def test_strings_and_bits_in_an_issue() -> None:
    prepared = prepare("GatherND", "string")
    text = issue(failure_of(prepared), "pass", None)
    assert "`string[2,3]` `[['', 'text 1', 'text 2'], ['text 3', 'text 4', 'text 5']]`" in text


def test_an_issue_says_of_a_composed_graph_that_it_is_one() -> None:
    case = next(
        case
        for case in planned(SPECS / "Round.yaml")
        if case.options.variant == "toward_zero" and case.inputs[0].dtype == "float32"
    )
    failure = failure_of(prepared_case(case))
    text = issue(failure, "pass", None)
    assert text.startswith(
        "# Round-11 toward_zero, composed of other operators: CPUExecutionProvider gives a wrong result (ulp)\n"
    )
    of = ", ".join(dict.fromkeys(failure.graph.tested))
    composed = f"The graph composes Round's mode `toward_zero` of {of}; no single operator of ONNX has it."
    assert composed in " ".join(text.split())
    assert "Round" not in failure.graph.tested
    assert "composed" not in issue(failure_of(prepare("Round", "float32")), "pass", None)


def test_a_folder_written_again_keeps_no_stale_output(tmp_path: Path) -> None:
    valid = prepare("GatherND", "float32")
    write_repro(failure_of(valid), tmp_path / "folder", None)
    assert (tmp_path / "folder" / "test_data_set_0" / "output_0.pb").exists()
    case = next(case for case in planned(SPECS / "GatherND.yaml") if case.validity is Validity.INVALID)
    write_repro(failure_of(prepared_case(case)), tmp_path / "folder", None)
    data = tmp_path / "folder" / "test_data_set_0"
    assert not (data / "output_0.pb").exists()
    write_repro(failure_of(prepare("Round", "float32")), tmp_path / "folder", None)
    assert sorted(path.name for path in data.iterdir()) == ["input_0.pb", "output_0.pb"]


def test_the_commands_ask_for_a_numpy_that_the_release_can_use() -> None:
    failure = failure_of(prepare("Round", "float32"))
    old = failure._replace(info=msgspec.structs.replace(failure.info, onnxruntime="1.15.1", numpy="1.26.4"))
    assert 'pip install onnxruntime==1.15.1 "numpy<2"   # it ran with Python 3.11.7\n' in issue(
        old, "pass", None
    )
    assert "pip install onnxruntime==1.31.1 numpy   # it ran with Python 3.11.7\n" in issue(
        failure, "pass", None
    )


@pytest.mark.slow
def test_reduced_and_from_a_file_it_is_the_same_repro(run: Path, bare: Path, tmp_path: Path) -> None:
    case = "GatherND@12:sweep=batch_sizes_multiple;data=float32[2,3,4];indices=int64[4,3,1];batch_dims=1;values=first"
    table = tmp_path / "bisect.md"
    table.write_text("| version | outcome |\n| --- | --- |\n| 1.15.0 | crash |\n", encoding="utf-8")
    ended = repro(run, case, tmp_path / "one", "--reduce", "--bisect", table)
    assert ended.code == 0, ended.err
    assert " elements became 3; accepted_invalid" in ended.err
    small = tmp_path / "small.yaml"
    assert harness("reduce", case, "-t", "cpu", "--spec", SPECS / "GatherND.yaml", "-o", small).code == 0
    assert harness("repro", "--case", small, "-t", "cpu", "-o", tmp_path / "two", "--bisect", table).code == 0
    for name in ("model.onnx", "repro.py", "test_data_set_0/input_0.pb", "test_data_set_0/input_1.pb"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    text = (tmp_path / "two" / "issue.md").read_text(encoding="utf-8")
    assert f"It was reduced from `{case}`" in text
    assert "#### Since when\n\n| version | outcome |" in text
    assert run_script(bare, tmp_path / "two" / "repro.py").returncode == 1


@pytest.mark.slow
def test_other_specs_than_those_of_the_run_are_refused(run: Path, tmp_path: Path) -> None:
    """The run kept inputs of some cases, by which these are known to be the same; of a case without, nothing
    is known."""
    case = "GatherND@13:case=empty_tuple;data=float32[2,2];indices=int64[2,0]"
    spec = tmp_path / "GatherND.yaml"
    text = (SPECS / "GatherND.yaml").read_text(encoding="utf-8")
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    spec.write_text(text + "\n# a comment\n", encoding="utf-8")
    assert repro(copy, case, tmp_path / "kept", "--spec", spec).code == 0
    spec.write_text(text.replace("values: [[1, 2], [3, 4]]", "values: [[1, 2], [3, 5]]"), encoding="utf-8")
    ended = repro(copy, case, tmp_path / "changed", "--spec", spec)
    assert (ended.code, ended.out) == (2, "")
    assert complaint(ended).endswith(
        f"the specs of that run were others, so {case} may not be the same case any more; run it again"
    )
    shutil.rmtree(copy / "artifacts")
    spec.write_text(text + "\n# a comment\n", encoding="utf-8")
    assert repro(copy, case, tmp_path / "unkept", "--spec", spec).code == 2
    lines = (copy / "run.jsonl").read_text(encoding="utf-8").splitlines()
    header = json.loads(lines[0])
    header["hashes"]["oracle"] = "0" * 64
    (copy / "run.jsonl").write_text("\n".join([json.dumps(header), *lines[1:]]) + "\n", encoding="utf-8")
    assert "the oracle of that run was another" in complaint(repro(copy, case, tmp_path / "oracle"))


def test_a_target_that_is_gone_leaves_what_the_run_recorded(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = "GatherND@13:case=empty_tuple;data=float32[2,2];indices=int64[2,0]"
    monkeypatch.setattr("harness.targets.launches.find_spec", lambda _: None)
    ended = repro(run, case, tmp_path / "repro")
    assert ended.code == 0
    assert "cpu cannot run here, so the repro shows what the run recorded" in ended.err
    text = (tmp_path / "repro" / "issue.md").read_text(encoding="utf-8")
    assert "(`accepted_invalid`, `GatherND` at opset 13)." in text
    assert f"### ONNX Runtime Version or Commit ID\n\n{ORT}\n" in text
    assert repro(run, case, tmp_path / "reduced", "--reduce").code == 3


@pytest.mark.slow
def test_a_query_that_one_case_of_the_run_matches_names_it(run: Path, tmp_path: Path) -> None:
    ended = repro(run, "GatherND@13:case=empty_tuple", tmp_path / "short")
    assert ended.code == 0, ended.err
    whole = repro(
        run, "GatherND@13:case=empty_tuple;data=float32[2,2];indices=int64[2,0]", tmp_path / "whole"
    )
    assert whole.code == 0
    assert (tmp_path / "short" / "repro.py").read_bytes() == (tmp_path / "whole" / "repro.py").read_bytes()


def test_a_bug_report_names_no_folder_of_this_machine(run: Path, tmp_path: Path) -> None:
    assert repro(run, "GatherND@13:case=empty_tuple", tmp_path / "repro").code == 0
    issue_text = (tmp_path / "repro" / "issue.md").read_text(encoding="utf-8")
    assert "harness run …/GatherND.yaml …/Round.yaml -t cpu" in issue_text
    for place in (SPECS, run.parent, tmp_path):
        assert str(place) not in issue_text


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ("GatherND@13:data=float32",),
            2,
            "several cases match 'GatherND@13:data=float32': name one of them, for example GatherND@13:",
        ),
        (
            ("GatherND@13:case=empty_tuples;data=float32[2,2]",),
            2,
            "the run has no case 'GatherND@13:case=empty_tuples;data=float32[2,2]'",
        ),
        ((next(iter(FAILING)), "-t", "dml"), 2, "has no result on target 'dml'; it has one on: cpu"),
        ((next(iter(FAILING)), "--bisect", "absent.md"), 2, "absent.md: cannot be read: No such file"),
        (
            (next(iter(FAILING)), "--case", "small.yaml", "-t", "cpu"),
            2,
            "--case FILE stands instead of RUN and CASE",
        ),
        ((), 2, "name a RUN and a CASE in it"),
    ],
)
def test_wrong_input_is_one_line(
    run: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ended = harness("repro", run, *arguments, "-o", tmp_path / "repro")
    assert (ended.code, ended.out) == (code, "")
    assert said in complaint(ended)
    assert not (tmp_path / "repro").exists()


def test_wrong_files_and_folders(run: Path, tmp_path: Path) -> None:
    case = "GatherND@13:case=empty_tuple;data=float32[2,2];indices=int64[2,0]"
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    assert "is a file; -o names a folder" in complaint(repro(run, case, file))
    assert "run.jsonl: cannot be read" in complaint(repro(tmp_path, case, tmp_path / "repro"))
    many = harness("repro", "--case", SPECS / "Round.yaml", "-t", "cpu", "-o", tmp_path / "repro")
    assert "--case takes a spec with one" in complaint(many)
    assert many.code == 2
    fake = harness("repro", "--case", small_spec(tmp_path), "-t", "fake", "-o", tmp_path / "repro")
    assert "is neither a provider of onnxruntime nor DirectML" in complaint(fake)
    conforming = harness("repro", "--case", small_spec(tmp_path), "-t", "cpu", "-o", tmp_path / "repro")
    assert conforming.code == 4
    assert "conforms on cpu (pass): there is nothing to reproduce" in complaint(conforming)


def small_spec(folder: Path) -> Path:
    path = folder / "small.yaml"
    path.write_text(
        "operator: Round\nopsets: [22]\nlowers_to: {directml: [DML_OPERATOR_ELEMENT_WISE_ROUND]}\n"
        "cases:\n  - name: one\n    inputs:\n      X: {dtype: float32, values: [0.5]}\n",
        encoding="utf-8",
    )
    return path


def test_a_case_that_passed_or_failed_on_two_targets(tmp_path: Path) -> None:
    script = script_of(tmp_path, [("Round:values=ordinary", "ulp")])
    targets = [f"fake,script={script}", f"fake,script={script.parent}/./script.yaml"]
    case = "Round@22:sweep=sizes;X=float16[5];values=ordinary"
    other = "Round@22:sweep=sizes;X=float16[5];values=random"
    queries = ("-k", case, "-k", other)
    assert (
        harness(
            "run", SPECS / "Round.yaml", "-t", targets[0], "-t", targets[1], *queries, "-o", tmp_path / "run"
        ).code
        == 1
    )
    spec = ("--spec", SPECS / "Round.yaml")
    assert "choose one with -t" in complaint(repro(tmp_path / "run", case, tmp_path / "repro", *spec))
    passed = repro(tmp_path / "run", other, tmp_path / "repro", *spec)
    assert passed.code == 4
    assert "has not failed there (pass on fake" in complaint(passed)
