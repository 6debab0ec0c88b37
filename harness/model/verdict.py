"""Outcome (the measurement), verdict (the outcome against the expectation), and the rules that turn a run
red."""

from __future__ import annotations

from enum import Enum
from typing import Literal

from harness.model.case import Validity


class Outcome(str, Enum):
    """The measurement of a case; a closed set."""

    PASS = "pass"
    MISMATCH = "mismatch"
    REJECTED = "rejected"
    ACCEPTED_INVALID = "accepted_invalid"
    UNSUPPORTED = "unsupported"
    NOT_PLACED = "not_placed"
    CRASH = "crash"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    ORACLE_ERROR = "oracle_error"
    NOT_RUN = "not_run"


NOT_EXECUTED = frozenset({Outcome.UNAVAILABLE, Outcome.NOT_RUN})
"""Outcomes of cases that no target answered."""


class Verdict(str, Enum):
    """The outcome compared with the expectation."""

    EXPECTED = "expected"
    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    CHANGED = "changed"
    NEW = "new"
    MISSING = "missing"


def judged(outcome: Outcome, verdict: Verdict) -> str:
    """Return the word for a verdict; a formula that fails or contradicts its spec says nothing of the target."""
    return "oracle error" if outcome is Outcome.ORACLE_ERROR else verdict.value


class Reading(str, Enum):
    """The meaning of a result: every result that a target's API can express has exactly one, and the six counts add
    up to the total."""

    CORRECT = "correct"
    WRONG = "wrong"
    CRASHED = "crashed"
    ACCEPTED = "accepted"
    NOT_SUPPORTED = "not supported"
    NOT_JUDGED = "not judged"


DEFECTS = (Reading.WRONG, Reading.CRASHED, Reading.ACCEPTED)
"""Readings of a target that does something else than ONNX defines."""

Apart = Literal["", "unclaimed", "empty", "core"]
"""Why a result that is as it should be proves nothing of its provider: the bound on its outputs is infinite;
they have no element; ONNX Runtime's core refused the case before any provider was asked."""

CONFORMING = {Validity.VALID: Outcome.PASS, Validity.INVALID: Outcome.REJECTED}
"""The outcome that a case is to have, by validity."""
ENDED = frozenset({Outcome.CRASH, Outcome.TIMEOUT})
"""Outcomes of a process that ended or hung, which no case excuses."""
_NO_KERNEL = frozenset({Outcome.UNSUPPORTED, Outcome.NOT_PLACED})
_NOT_SUPPORTED = _NO_KERNEL | {Outcome.REJECTED, Outcome.NOT_RUN}
_REASONS: dict[Apart, str] = {
    "unclaimed": "infinite bound",
    "empty": "no element",
    "core": "refused by the core",
    "": "not run",
}


def reading(
    validity: Validity, outcome: Outcome, apart: Apart, *, outside: bool, transformed: bool = False
) -> Reading:
    """Return the meaning of a result; `outside` says that its outputs hold memory from outside of its inputs,
    `transformed` that the graph is right without one transformer of the optimizer."""
    if outcome in ENDED:
        return Reading.CRASHED
    if validity is Validity.INVALID and outcome is Outcome.ACCEPTED_INVALID:
        return Reading.ACCEPTED
    if outside or (validity is Validity.VALID and (transformed or outcome is Outcome.MISMATCH)):
        return Reading.WRONG
    if not apart and CONFORMING.get(validity) is outcome:
        return Reading.CORRECT
    if validity is Validity.VALID and outcome in _NOT_SUPPORTED:
        return Reading.NOT_SUPPORTED
    return Reading.NOT_JUDGED


def why_not_judged(validity: Validity, outcome: Outcome, apart: Apart) -> str:
    """Return the reason for which a result is `not judged`."""
    if outcome is Outcome.UNAVAILABLE:
        return "not available"
    if outcome is Outcome.ORACLE_ERROR:
        return "oracle error"
    if validity is Validity.UNSPECIFIED:
        return "unspecified"
    return "no kernel" if outcome in _NO_KERNEL else _REASONS[apart]


def conforms(validity: Validity, outcome: Outcome, *, outside: bool = False) -> bool:
    """Say whether an outcome is what the ONNX operator specification asks for. It leaves an unspecified case
    open, but no case may end the process, hang, or read memory from `outside` of its inputs."""
    if validity is Validity.UNSPECIFIED:
        return outcome not in ENDED and not outside
    return CONFORMING[validity] is outcome


def fails(validity: Validity, outcome: Outcome, verdict: Verdict, *, outside: bool = False) -> bool:
    """Say whether a result deviates and neither an expectation nor an earlier run has it so."""
    if verdict not in (Verdict.REGRESSION, Verdict.CHANGED, Verdict.NEW):
        return False
    if verdict is not Verdict.NEW and validity is not Validity.UNSPECIFIED:
        return True
    return outcome not in NOT_EXECUTED and not conforms(validity, outcome, outside=outside)


def unexpected(
    validity: Validity, outcome: Outcome, verdict: Verdict, *, baseline: bool, outside: bool = False
) -> bool:
    """Say whether a result turns a run red: by the exit code, in JUnit and CTRF, and in every total of
    unexpected results.

    An improvement does where it contradicts an expectation, which is wrong by then; against an earlier run
    (`baseline`) it is welcome.
    """
    improved = verdict is Verdict.IMPROVEMENT and validity is not Validity.UNSPECIFIED and not baseline
    return improved or fails(validity, outcome, verdict, outside=outside)
