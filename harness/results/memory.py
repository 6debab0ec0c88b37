"""Says what became of outputs over memory that held a pattern (`result.Memory`)."""

from __future__ import annotations

from harness.model.result import Memory, Result
from harness.model.verdict import Outcome

KINDS = (
    "left unwritten",
    "read from outside of the inputs",
    "different from run to run",
    "with every element written",
)
"""What an accepted result is by its worst element; the last are written, and the same over any memory."""


def kind(memory: Memory) -> str:
    """Return the one of `KINDS` that holds for any element, the first that does."""
    return next((name for name, number in _numbers(memory) if number), KINDS[-1])


def in_words(result: Result) -> str:
    """Say of how many elements what holds: `1 of 5 elements is read from outside of the inputs`; empty where
    there is nothing to say."""
    memory = result.memory
    return said_of(memory, result.outcome) if isinstance(memory, Memory) else ""


def said_of(memory: Memory, outcome: Outcome) -> str:
    """Say the same of an outcome's memory."""
    said = [f"{number:,} {name}" for name, number in _numbers(memory) if number]
    if said:
        return f"of {memory.total:,} elements {', '.join(said)}"
    if outcome is Outcome.ACCEPTED_INVALID:
        return "every element is written, and the same over other memory"
    return ""


def _numbers(memory: Memory) -> list[tuple[str, int]]:
    return list(zip(KINDS[:-1], (memory.unwritten, memory.outside, memory.unstable), strict=True))
