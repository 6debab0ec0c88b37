"""Deployments: their cases, and that a runtime which is wrong in one way of deployment alone turns its cases red."""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest

from harness.compile.prepare import by_graph, refusal
from harness.model.case import DEPLOYMENTS, Case, Tensor
from harness.model.dtypes import BY_ONNX_NUMBER
from harness.model.target_info import CPU, DML
from harness.model.verdict import Outcome
from harness.run.judge import judge
from harness.specs.graphs.variations import DEPLOYED
from harness.targets.batches import encode_batch
from harness.targets.execution import Execution
from harness.targets.launching import Launch
from harness.worker import worker
from tests.graphs.specs import SCALED, cases
from tests.running import harness, results_of

DEPLOYED_SUM = SCALED.replace("  - name: scale\n", "  - name: scale\n    deployed: true\n")
Said = dict[str, Any]


def deployed(folder: Path, text: str = DEPLOYED_SUM) -> list[Case]:
    """Return the cases of a graph that are deployed in some way."""
    found, _ = cases(folder, text)
    return [case for case in found if any(levels_of(case)[name] for name in DEPLOYMENTS)]


def levels_of(case: Case) -> Said:
    options = {name: getattr(case.options, name) for name in ("optimization", *DEPLOYMENTS)}
    return options | {"exposed": "value" if case.attributes.get("exposed") else None}


def test_every_two_levels_stand_together_in_few_cases(tmp_path: Path) -> None:
    found = [levels_of(case) for case in deployed(tmp_path)]
    assert len(found) <= 20
    for one, other in combinations(DEPLOYED, 2):
        seen = {(each[one], each[other]) for each in found}
        usual = {(None, None)} if {one, other} <= {*DEPLOYMENTS, "exposed"} else set()
        wanted = {(first, second) for first in DEPLOYED[one] for second in DEPLOYED[other]}
        assert wanted - usual <= seen, (one, other)


def test_a_graph_has_no_levels_that_it_cannot_have(tmp_path: Path) -> None:
    text = DEPLOYED_SUM.replace("constants: {half: 0.5}\n", "").replace(", by: half", "").replace("$by", "A")
    found = [levels_of(case) for case in deployed(tmp_path, text)]
    assert not any(each["initializers"] for each in found)
    assert any(each["dimensions"] for each in found)


def test_a_deployment_has_the_elements_of_the_graph(tmp_path: Path) -> None:
    given = {
        tuple(tensor.array.tobytes() for tensor in prepared.inputs)
        for _, group in by_graph(deployed(tmp_path), 0)
        for prepared in group
        if not prepared.case.attributes
    }
    assert len(given) == 1


def test_directml_forbids_two_of_them(tmp_path: Path) -> None:
    for case in deployed(tmp_path):
        why = refusal(case, DML)
        assert (why is not None) == bool(case.options.concurrent or case.options.execution)
        assert why is None or why.startswith("DirectML's execution provider forbids ")
        assert refusal(case, CPU) is None


class Options(onnxruntime.SessionOptions):  # type: ignore[misc] # has no types
    """Options that tell what was added to them."""

    def __init__(self) -> None:
        super().__init__()
        self.added: set[str] = set()

    def add_free_dimension_override_by_name(self, name: str, extent: int) -> None:
        self.added.add(f"{name}={extent}")
        super().add_free_dimension_override_by_name(name, extent)

    def add_initializer(self, name: str, value: Any) -> None:
        self.added.add(name)
        super().add_initializer(name, value)

    @property
    def config(self) -> str:
        try:
            return str(self.get_session_config_entry("session.disable_prepacking"))
        except RuntimeError:
            return ""


class Session(onnxruntime.InferenceSession):  # type: ignore[misc] # has no types
    """A session that is wrong: it may subtract where a model says to add, or mistreat what is bound."""

    subtracts: Callable[[bytes, Options], bool] = staticmethod(lambda *_: False)
    mistake = ""

    def __init__(self, model: bytes, options: Options, **more: Any) -> None:
        wrong = type(self).subtracts(model, options)
        self.made: list[Any] = []
        self.of: dict[bytes, Any] = {}
        self.seen, self.home = threading.Condition(), threading.current_thread()
        super().__init__(model.replace(b"Add", b"Sub") if wrong else model, options, **more)

    def run(self, names: Any, given: Any, options: Any = None) -> Any:
        found = super().run(names, given, options)
        if self.mistake != "the values of another run" or threading.current_thread() is self.home:
            return found
        own = b"".join(np.asarray(value).tobytes() for value in given.values())
        with self.seen:
            self.of[own] = found
            self.seen.notify_all()
            if not self.seen.wait_for(lambda: len(self.of) > 1, 60):
                return found
            return next(values for elements, values in self.of.items() if elements != own)

    def io_binding(self) -> Any:
        return Binding(self)

    def cleared(self) -> None:
        for each in self.made:
            ctypes.memset(each.data_ptr(), 0, each.numpy().nbytes)

    def __del__(self) -> None:
        self.cleared()


class Binding(onnxruntime.IOBinding):  # type: ignore[misc] # has no types
    """The binding of a session that is wrong."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.session = session

    def bind_output(self, name: str, *more: Any) -> None:
        buffer = len(more) > 2 and self.session.mistake == "buffers are not written"
        super().bind_output(name, *(() if buffer else more))

    def get_outputs(self) -> Any:
        found = super().get_outputs()
        if self.session.mistake in ("values go with the session", "values are lost"):
            self.session.made += found
        if self.session.mistake == "values are lost":
            self.session.cleared()
        return found


MISTAKES: dict[str, tuple[Said, str | Callable[[bytes, Options], bool]]] = {
    "own buffers": ({"binding": "own"}, "buffers are not written"),
    "device": ({"binding": ("device", "outlived")}, "values are lost"),
    "outlived": ({"binding": "outlived"}, "values go with the session"),
    "concurrent": ({"concurrent": 4, "binding": None}, "the values of another run"),
    "parallel": (
        {"execution": "parallel"},
        lambda _, options: options.execution_mode == onnxruntime.ExecutionMode.ORT_PARALLEL,
    ),
    "memory pattern": ({"memory_pattern": "off"}, lambda _, options: not options.enable_mem_pattern),
    "arena": ({"arena": "off"}, lambda _, options: not options.enable_cpu_mem_arena),
    "prepacking": ({"prepacking": "off"}, lambda _, options: options.config == "1"),
    "saved": ({"saved": "onnx"}, lambda model, _: _loaded(model)),
    "saved as ORT": ({"saved": "ort"}, lambda model, _: model[4:8] == b"ORTM"),
    "dimensions": (
        {"dimensions": "fixed"},
        lambda _, options: {"A_0=2", "A_1=3", "B_0=3"} <= options.added,
    ),
    "initializers": ({"initializers": "shared"}, lambda _, options: "half" in options.added),
}


def _loaded(model: bytes) -> bool:
    """Say whether a model is one that a session wrote: it declares more domains than one that was compiled."""
    return b"com.microsoft" in model and model[4:8] != b"ORTM"


def outcomes(
    found: list[Case], monkeypatch: pytest.MonkeyPatch, session: type[Session]
) -> Mapping[str, Outcome]:
    """Run cases in this process on a runtime with such sessions."""
    monkeypatch.setattr(worker, "np", np)
    backend = worker.OnnxRuntime()
    names = {**vars(onnxruntime), "SessionOptions": Options, "InferenceSession": session}
    backend.ort = SimpleNamespace(**names)
    judged = {}
    for group in by_graph(found, 0):
        header, _ = encode_batch(
            [group], Launch((), None, CPU, {}, {"session.record_ep_graph_assignment_info": "1"})
        )
        unit = {**header["kinds"][0], **header["units"][0]}
        made = backend.session(unit, group.graph.model)
        nodes = tuple((provider, operator) for provider, operator in backend.assignment(made) or ())
        for position, prepared in enumerate(group.cases):
            fed = [prepared.inputs[n].array for n in group.graph.fed]
            tensors = tuple(
                Tensor(BY_ONNX_NUMBER[number].name, array)
                for array, number in backend.run(made, unit, fed, position)
            )
            execution = Execution(tensors, None, "compare", nodes, 0.0)
            judged[prepared.case.id] = judge(prepared, group.graph, execution, CPU).outcome
    return judged


def test_a_runtime_without_a_mistake_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Counter(outcomes(deployed(tmp_path), monkeypatch, Session).values()).keys() == {Outcome.PASS}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_one_way_of_deployment_is_caught(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, how = MISTAKES[name]

    class Wrong(Session):
        subtracts = staticmethod(how) if callable(how) else Session.subtracts
        mistake = "" if callable(how) else how

    found = deployed(tmp_path)
    judged = outcomes(found, monkeypatch, Wrong)
    red = {case.id for case in found if judged[case.id] is not Outcome.PASS}
    wanted = {
        case.id
        for case in found
        if all(
            levels_of(case)[key] in (value if isinstance(value, tuple) else (value,))
            for key, value in where.items()
        )
    }
    assert wanted
    assert not red ^ wanted


def test_a_run_names_the_deployment_at_fault(tmp_path: Path) -> None:
    text = SCALED.replace("    factors:\n", "    factors:\n      exposed: [A]\n      binding: [null, own]\n")
    path = tmp_path / "graph.yaml"
    path.write_text(text, encoding="utf-8")
    harness(
        "run", path, "-t", "cpu", "-o", tmp_path / "r", "-k", "A=float32[2,3];sum=*", "-k", "A=float32[2,3]"
    )
    for case, result in results_of(tmp_path / "r", "cpu").items():
        own = "binding=own" in case
        assert result["outcome"] == ("mismatch" if own else "pass"), case
        assert result.get("culprit") == (["binding=own"] if own else None)
