"""Repros of calls of DirectML's own API: what is in the folder, and what repro.py says with a device that answers as the
test wants. The real one: tests/windows/test_repro_on_directml.py."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from harness.compile.prepare import by_graph
from harness.model.case import Tensor
from harness.model.query import parse_all
from harness.model.result import Error
from harness.model.signature import Signature
from harness.model.target_info import DIRECTML, TargetInfo
from harness.model.verdict import Outcome
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.specs.selection import Selection
from harness.targets.registry import parse_target
from harness.targets.target import Target
from harness.targets.windows.runtime import BOOT
from harness.triage.repro.directml_issue import MODULES_END, directml_script
from harness.triage.repro.failure import Failure, SessionSettings
from harness.triage.repro.folder import write_repro
from tests.running import SPECS

INFO = TargetInfo(DIRECTML, python="3.12.9", numpy="2.4.6", directml="1.15.4", directml_sha256="ab" * 32)
DEVICE = """
class ComError(OSError):
    label = "CreateOperator E_INVALIDARG"
class DescriptionError(ValueError):
    label = "CannotFeedError"
class DirectML:
    def __init__(self, path, device_id, *, debug):
        self.asked = (path, device_id, debug)
    def hello(self):
        return {"device": {"directml": "1.15.4", "adapter": "stand-in %s %s %s" % self.asked, "max_feature_level": "6_4"}}
    def session(self, unit, model):
        import json
        return json.loads(model)
    def run(self, session, unit, arrays, position):
        import numpy as np
        ANSWER
"""


@cache
def failure(operator: str, query: str, target: str = "directml") -> Failure:
    queries = parse_all([query])
    case = next(iter(Selection(expand(load_specs([SPECS / f"{operator}.yaml"]), queries), queries)))
    (unit,) = by_graph([case], 0, DIRECTML)
    graph, (prepared,) = unit
    outcome = Outcome.MISMATCH if case.validity.value == "valid" else Outcome.ACCEPTED_INVALID
    chosen: Target = parse_target(target)
    return Failure(
        prepared, graph, chosen, SessionSettings(DIRECTML, {}, {}), INFO, Signature(outcome, "run", "", ""), None, None, None,
        ("harness run -t directml",), spec_file="operator: …\n",
    )  # fmt: skip


def a_valid_one() -> Failure:
    return failure("GatherElements", "GatherElements@13:sweep=api_data_layout")


def run_with(answer: str, text: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script with a stand-in for the modules that call DirectML."""
    head, _, rest = text.partition("MODULES = {")
    code = rest.partition(MODULES_END)[2]
    device = DEVICE.replace("ANSWER", answer)
    made = f"{head}MODULES = {{'': '', 'directml': '', 'directml.backend': {device!r}}}\n{code}"
    path = folder / "repro.py"
    path.write_text(made.replace('sys.platform != "win32"', "False"), encoding="utf-8")
    return subprocess.run(
        [sys.executable, path, *arguments], capture_output=True, encoding="utf-8", timeout=120, check=False
    )


def test_the_folder_says_what_the_call_is(tmp_path: Path) -> None:
    found = a_valid_one()
    wrong = Tensor(found.expected[0].tensor.dtype, found.expected[0].tensor.array + 1)  # type: ignore[index,union-attr]
    written = write_repro(found._replace(actual=(wrong,)), tmp_path, "a table")
    names = [
        "repro.py",
        "operator.json",
        "input_0.npy",
        "input_1.npy",
        "expected_0.npy",
        "actual_0.npy",
        "case.yaml",
        "issue.md",
    ]
    assert [path.name for path in written] == names
    description = json.loads((tmp_path / "operator.json").read_text(encoding="utf-8"))
    assert json.dumps(description, sort_keys=True) == json.dumps(
        json.loads(found.graph.model), sort_keys=True
    )
    for number, held in enumerate(found.prepared.buffers or found.prepared.inputs):
        assert np.load(tmp_path / f"input_{number}.npy").tobytes() == held.array.tobytes()
    assert np.load(tmp_path / "actual_0.npy").tobytes() == wrong.array.tobytes()
    issue = (tmp_path / "issue.md").read_text(encoding="utf-8")
    assert issue.startswith("# DML_OPERATOR_GATHER_ELEMENTS: DirectML gives a wrong result\n")
    view = description["tensors"]["InputTensor"]
    assert f"Sizes = {view['sizes']}, Strides = {view['strides'] or 'NULL'}" in issue
    assert f"TotalTensorSizeInBytes = {view['bytes']}" in issue
    assert "\n  Axis = " in issue
    assert "a table" in issue
    assert "harness run case.yaml -t directml -k GatherElements" in issue
    assert (
        "<https://learn.microsoft.com/en-us/windows/win32/api/directml/ns-directml-dml_gather_elements_operator_desc>"
        in issue
    )


def test_a_tensor_of_an_earlier_repro_does_not_stay(tmp_path: Path) -> None:
    write_repro(a_valid_one()._replace(actual=(Tensor("float32", np.zeros(1, "f4")),)), tmp_path, None)
    assert (tmp_path / "actual_0.npy").exists()
    write_repro(a_valid_one(), tmp_path, None)
    assert not (tmp_path / "actual_0.npy").exists()


def test_the_script_carries_the_modules_of_the_worker_as_they_are(tmp_path: Path) -> None:
    names: dict[str, dict[str, str]] = {}
    text = directml_script(a_valid_one())
    exec(text[text.index("MODULES = {") : text.index(MODULES_END) + 1], names)
    modules = names["MODULES"]
    assert modules["com"] == (BOOT.parent / "com.py").read_text(encoding="utf-8")
    assert modules["directml.backend"] == (BOOT.parent / "directml" / "backend.py").read_text(
        encoding="utf-8"
    )
    assert "harness." not in text.partition("MODULES = {")[0]


def test_without_windows_it_cannot_tell(tmp_path: Path) -> None:
    path = tmp_path / "repro.py"
    path.write_text(directml_script(a_valid_one()), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, path], capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert done.returncode == 3, done.stderr
    assert "CANNOT TELL: DirectML cannot be had: it needs Windows" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("apart", [True, False])
def test_verdicts_follow_what_the_device_answers(tmp_path: Path, *, apart: bool) -> None:
    found = a_valid_one()
    text = directml_script(found)
    (expected,) = found.expected or ()
    right = f"np.frombuffer({expected.tensor.array.tobytes()!r}, {str(expected.tensor.array.dtype)!r})"  # type: ignore[union-attr]
    right += f".reshape({expected.shape!r})"
    arguments = () if apart else ("--in-process",)
    for answer, code, said in (
        (f"return [({right}, 1)]", 0, "FIXED"),
        (f"return [({right} + 1, 1)]", 1, "BUG"),
        ("raise ComError('no')", 1, "BUG"),
        ("raise DescriptionError('no structure')", 3, "CANNOT TELL: DirectML was not asked: no structure"),
        *([("import os; os.kill(os.getpid(), 9)", 1, "the process ended with SIGKILL")] if apart else []),
    ):
        done = run_with(answer, text, tmp_path, *arguments)
        assert (done.returncode, said in done.stdout) == (code, True), done.stdout + done.stderr


def test_an_error_is_what_an_invalid_call_should_give(tmp_path: Path) -> None:
    text = directml_script(failure("GatherElements", "GatherElements@13:case=api_axis_beyond"))
    fixed = run_with("raise ComError('no')", text, tmp_path)
    assert (fixed.returncode, "FIXED" in fixed.stdout) == (0, True), fixed.stdout
    assert "OSError while it runs: no" in fixed.stdout or "ComError while it runs: no" in fixed.stdout
    still = run_with("return [(np.zeros(1, 'f4'), 1)]", text, tmp_path)
    assert (still.returncode, "accepted, with the output" in still.stdout) == (1, True), still.stdout


def test_options_of_target_and_script(tmp_path: Path) -> None:
    text = directml_script(
        failure("GatherElements", "GatherElements@13:sweep=api_data_layout", "directml,device_id=1,debug=1")
    )
    assert "stand-in None 1 True" in run_with("return []", text, tmp_path).stdout
    assert "stand-in None 2 True" in run_with("return []", text, tmp_path, "--device", "2").stdout
    done = run_with("return []", text, tmp_path, "--dll", str(tmp_path / "absent.dll"))
    assert done.returncode == 3
    assert "absent.dll: no such file" in done.stdout


def test_a_refusal_of_a_valid_call_is_in_the_issue(tmp_path: Path) -> None:
    refused = a_valid_one()._replace(
        signature=Signature(Outcome.REJECTED, "load", "CreateOperator E_INVALIDARG", ""),
        error=Error("CreateOperator E_INVALIDARG", "CreateOperator failed: E_INVALIDARG (0x80070057)"),
    )
    write_repro(refused, tmp_path, None)
    issue = (tmp_path / "issue.md").read_text(encoding="utf-8")
    assert (
        "DirectML refuses a valid call while the operator is created (CreateOperator E_INVALIDARG)" in issue
    )
    assert "CreateOperator failed: E_INVALIDARG (0x80070057)" in issue
