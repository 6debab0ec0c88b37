"""Outcome and verdict: what was measured of a case, what that is against what was expected, and what turns a run
red.
"""

from __future__ import annotations

from enum import Enum

from harness.model.case import Validity


class Outcome(str, Enum):
    """What was measured; a closed set."""

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
    """The outcome against what was expected of it."""

    EXPECTED = "expected"
    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    CHANGED = "changed"
    NEW = "new"
    MISSING = "missing"


def judged(outcome: Outcome, verdict: Verdict) -> str:
    """Return the word for a verdict; a formula that fails or contradicts its spec says nothing of the target."""
    return "oracle error" if outcome is Outcome.ORACLE_ERROR else verdict.value


CONFORMING = {Validity.VALID: Outcome.PASS, Validity.INVALID: Outcome.REJECTED}
"""The outcome that conforms, by validity; anything an unspecified case does is recorded and never a
failure."""


def conforms(validity: Validity, outcome: Outcome) -> bool:
    """Say whether an outcome is what the ONNX operator specification asks for."""
    return validity is Validity.UNSPECIFIED or CONFORMING[validity] is outcome


def fails(validity: Validity, outcome: Outcome, verdict: Verdict) -> bool:
    """Say whether a result deviates and nobody expected that. What an unspecified case does is recorded and
    never a failure."""
    if validity is Validity.UNSPECIFIED:
        return False
    if verdict is Verdict.NEW:
        return outcome not in NOT_EXECUTED and not conforms(validity, outcome)
    return verdict in (Verdict.REGRESSION, Verdict.CHANGED)


def unexpected(validity: Validity, outcome: Outcome, verdict: Verdict, *, baseline: bool) -> bool:
    """Say whether a result turns a run red: by the exit code, in JUnit and CTRF, and in every total of
    unexpected results.

    An improvement does where it contradicts an expectation, which is wrong by then; against an earlier run
    (`baseline`) it is welcome.
    """
    improved = verdict is Verdict.IMPROVEMENT and validity is not Validity.UNSPECIFIED and not baseline
    return improved or fails(validity, outcome, verdict)
