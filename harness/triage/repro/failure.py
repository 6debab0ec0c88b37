"""A failure for a bug report: the case, the expected and the actual outcome, and the system, in the fields of
ONNX Runtime's issue form.

Source: `.github/ISSUE_TEMPLATE/08-general.yml` of microsoft/onnxruntime; an issue that the form makes has a heading
for each field, in this order.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from onnx import load_model_from_string

from harness.model.case import Case, Tensor, Validity
from harness.model.expected import Expected
from harness.model.result import Error, Memory
from harness.model.signature import Signature
from harness.model.target_info import CPU, DIRECTML, DML, TargetInfo
from harness.model.verdict import Outcome
from harness.operators.directml.description import Description, decode
from harness.operators.in_models import CONSTANT
from harness.render.text import without_paths
from harness.run.oracle import oracle
from harness.targets.execution import Graph, Prepared
from harness.targets.launches import THIS_INTERPRETER, WINDOWS_RUNTIME
from harness.targets.target import Target
from harness.triage.repro.onnx_alone import OnnxAlone

T = TypeVar("T")
CASE_FILE = "case.yaml"
_NAMED = 6
"""Nodes of a graph that its name lists."""


class SessionSettings(NamedTuple):
    """What the session is made with."""

    provider: str
    provider_options: Mapping[str, str]
    config: Mapping[str, str]
    threads: int = 1


class Failure(NamedTuple):
    """One failing case on one target.

    `actual` are the outputs where there were some that are known, `origin` the id of the case that this one
    was reduced from.
    """

    prepared: Prepared
    graph: Graph
    target: Target
    session: SessionSettings
    info: TargetInfo
    signature: Signature
    error: Error | None
    actual: tuple[Tensor, ...] | None
    origin: str | None
    commands: tuple[str, ...]
    memory: Memory | None = None
    """What the outputs are over other memory, where that was looked at."""
    onnx_alone: OnnxAlone | None = None
    """What ONNX's own checker and shape inference do with the model, without ONNX Runtime."""
    mended: str | None = None
    """The release of ONNX Runtime from which it conforms, where the newest does."""
    spec_file: str | None = None
    """The case as the only entry of a whole spec, where an entry can say it."""

    culprit: tuple[str, ...] = ()
    """The transformer, or the two, without which an optimised graph does what it should."""
    optimized: tuple[str, ...] = ()
    """The operators of the nodes that the optimizer made of a graph of several operators."""

    @property
    def case(self) -> Case:
        return self.prepared.case

    @property
    def description(self) -> Description | None:
        """Return the call of DirectML's own API, None for a graph of ONNX Runtime."""
        return decode(self.graph.model) if self.info.provider == DIRECTML else None

    @property
    def expected(self) -> tuple[Expected, ...] | None:
        """Return what ONNX defines of each output, None where it asks for an error."""
        return oracle(self.prepared, self.info.provider) if self.case.validity is Validity.VALID else None

    def named(self, outputs: Sequence[T]) -> list[tuple[str, T]]:
        """Return outputs with their names; a single one needs none."""
        names = [name for name, _ in self.graph.outputs]
        return list(zip(names if len(names) > 1 else [""], outputs, strict=True))

    @property
    def title(self) -> str:
        """Describe the defect in one line, for the title of an issue."""
        description = self.description
        if description is not None:
            return f"{description.operator}: DirectML {self.what}"
        if self.graph.composed:
            without = f" unless {' and '.join(self.culprit)} is disabled" if self.culprit else ""
            return f"{self.chain}: {self._who} {self.what}{without}"
        variant = self.case.options.variant
        composed = f" {variant}, composed of other operators" if variant else ""
        mended = f" (mended in {self.mended})" if self.mended else ""
        return f"{self.case.operator}-{self.case.opset}{composed}: {self._who} {self.what}{mended}"

    @property
    def harness_commands(self) -> list[str]:
        """Return what shows it with the harness, without paths of this machine."""
        run = ["harness", "run", CASE_FILE, "-t", self.target.name, "-k", self.case.operator]
        own = [shlex.join(run)] if self.spec_file is not None else []
        return [*map(without_paths, self.commands), *own]

    @property
    def chain(self) -> str:
        """Name a graph of several nodes by their operators in topological order."""
        nodes = [node.op_type for node in load_model_from_string(self.graph.model).graph.node]
        operators = [name for name in nodes if name != CONSTANT]
        return f"{', '.join(operators[:_NAMED])}{', …' if len(operators) > _NAMED else ''}"

    @property
    def in_shape_inference(self) -> bool:
        """Say whether it is ONNX's own shape inference that ends the process, which runs while a model loads."""
        crash = self.signature.outcome is Outcome.CRASH and self.signature.stage == "load"
        return crash and self.onnx_alone is not None and self.onnx_alone.crashes

    @property
    def wine(self) -> bool:
        """Say whether it was found under Wine, not on Windows."""
        return self.info.runtime == WINDOWS_RUNTIME != THIS_INTERPRETER

    @property
    def _who(self) -> str:
        return "ONNX's shape inference" if self.in_shape_inference else self.info.provider

    @property
    def what(self) -> str:
        """Say what the provider does."""
        case = self.case
        load = "while the model loads" if self.description is None else "while the operator is created"
        stage = {"load": load, "run": "while it runs"}.get(self.signature.stage, "")
        kind = self.signature.error or self.signature.difference
        detail = f" ({kind})" if kind else ""
        return {
            Outcome.ACCEPTED_INVALID: f"accepts a call that breaks the rule '{case.rule}'",
            Outcome.MISMATCH: f"gives a wrong result{detail}",
            Outcome.CRASH: f"ends the process {stage}{detail}",
            Outcome.TIMEOUT: f"hangs {stage}",
            Outcome.REJECTED: f"refuses a valid call {stage}{detail}",
            Outcome.UNSUPPORTED: f"has no kernel for {case.inputs[0].dtype}",
            Outcome.NOT_PLACED: f"leaves {case.inputs[0].dtype} to another provider",
        }.get(self.signature.outcome, self.signature.outcome.value)


DESCRIBE, REPRODUCE, URGENCY = "Describe the issue", "To reproduce", "Urgency"
NO_RESPONSE = "_No response_"
OTHER = "Other / Unknown"
_PROVIDERS = {CPU: "Default CPU", DML: "DirectML"}
_ARCHITECTURES = {
    "x86_64": "X64",
    "amd64": "X64",
    "arm64": "ARM64",
    "aarch64": "ARM64",
    "x86": "X86",
    "i686": "X86",
}


def system_fields(failure: Failure) -> list[tuple[str, str]]:
    """Return the fields below "System information" with their values, without paths of this machine."""
    info = failure.info
    return [
        ("Platform", _platform(failure)),
        ("OS Version", _system(failure)),
        ("ONNX Runtime Installation", "Released Package"),
        ("ONNX Runtime Version or Commit ID", info.onnxruntime or NO_RESPONSE),
        ("ONNX Runtime API", "Python"),
        ("Architecture", _architecture(info)),
        ("Execution Provider", _PROVIDERS.get(info.provider, OTHER)),
        ("Execution Provider Library Version", f"DirectML {info.directml}" if info.directml else NO_RESPONSE),
    ]


def other_facts(failure: Failure) -> list[tuple[str, str]]:
    """Return what the form does not ask for: adapter, options of provider and session, versions of Python and
    NumPy."""
    info, session = failure.info, failure.session
    options = ", ".join(f"{key}={value}" for key, value in session.provider_options.items())
    facts = (
        ("execution provider", info.provider),
        ("provider options", options),
        ("threads of the session", "" if session.threads == 1 else str(session.threads)),
        ("adapter", info.adapter),
        ("vendor", info.vendor),
        ("driver", info.driver),
        ("maximum feature level", info.max_feature_level),
        ("Python", info.python),
        ("NumPy", info.numpy),
        ("runtime", _runtime(failure)),
    )
    return [(name, without_paths(value)) for name, value in facts if value]


def _runtime(failure: Failure) -> str:
    if failure.wine:
        return "Wine on Linux, not Windows"
    return "" if failure.info.runtime == THIS_INTERPRETER else failure.info.runtime


def _platform(failure: Failure) -> str:
    if failure.wine:
        return OTHER
    platform = (failure.info.platform or "").lower()
    known = {"windows": "Windows", "linux": "Linux", "darwin": "Mac", "macos": "Mac"}
    return next((name for start, name in known.items() if platform.startswith(start)), OTHER)


def _system(failure: Failure) -> str:
    platform = without_paths(failure.info.platform or "") or OTHER
    return f"Wine on Linux, which presents itself as {platform}" if failure.wine else platform


def _architecture(info: TargetInfo) -> str:
    platform = (info.platform or "").lower()
    return next((name for word, name in _ARCHITECTURES.items() if word in platform), OTHER)
