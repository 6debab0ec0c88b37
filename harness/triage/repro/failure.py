"""A failure for a bug report: the case, what was expected, what happened, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from harness.model.expected import Expected
from harness.model.records import Case, Error, Outcome, TargetInfo, Tensor, Validity
from harness.run.oracle import oracle
from harness.targets.execution import Graph, Prepared
from harness.targets.registry import Target
from harness.triage.signature import Signature

T = TypeVar("T")


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

    @property
    def case(self) -> Case:
        return self.prepared.case

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
        """Say in one line what is wrong, for the title of an issue."""
        variant = self.case.options.variant
        composed = f" {variant}, composed of other operators" if variant else ""
        return f"{self.case.operator}-{self.case.opset}{composed}: {self.info.provider} {self.what}"

    @property
    def what(self) -> str:
        """Say what the provider does."""
        case = self.case
        stage = {"load": "while the model loads", "run": "while it runs"}.get(self.signature.stage, "")
        detail = (
            f" ({self.signature.error or self.signature.difference})"
            if self.signature.error or self.signature.difference
            else ""
        )
        return {
            Outcome.ACCEPTED_INVALID: f"accepts a call that breaks the rule '{case.rule}'",
            Outcome.MISMATCH: f"gives a wrong result{detail}",
            Outcome.CRASH: f"ends the process {stage}{detail}",
            Outcome.TIMEOUT: f"hangs {stage}",
            Outcome.REJECTED: f"refuses a valid call {stage}{detail}",
            Outcome.UNSUPPORTED: f"has no kernel for {case.inputs[0].dtype}",
            Outcome.NOT_PLACED: f"leaves {case.inputs[0].dtype} to another provider",
        }.get(self.signature.outcome, self.signature.outcome.value)
