"""The signature of a probe, by which reduce, repro and the fuzzer tell whether two cases fail alike."""

from __future__ import annotations

from harness.model.signature import Signature, signature_of
from harness.run.judge import Judgement
from harness.targets.execution import Execution


def signature(judgement: Judgement, execution: Execution) -> Signature:
    """Return the signature of the outcome of a case on a target."""
    return signature_of(judgement.outcome, execution.stage, judgement.error, judgement.diff)
