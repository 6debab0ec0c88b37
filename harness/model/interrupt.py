"""Handles Ctrl-C and SIGTERM: the first ends the command in order, those that follow at once count as the
same request, and a late one ends the command immediately.

It imports next to nothing, so that the handlers exist before anything else is imported.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib.machinery import ExtensionFileLoader
from time import monotonic
from types import FrameType

EXIT_CODE = 130
PATIENCE_SECONDS = 10.0
"""How long the first may take to end the command: workers are ended and what they finished is written."""
_AGAIN_SECONDS = 0.02
_WORDS = ("KeyboardInterrupt", "Query interrupted")
"""What pydantic and DuckDB leave of an interruption."""
_CAN_WAIT = hasattr(signal, "SIGALRM")
_first: float | None = None


def install() -> None:
    """Take SIGINT and SIGTERM from now on, as if none had come yet; a signal that is ignored stays so."""
    global _first
    _first = None
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupted)


def watch_finalizers() -> None:
    """Keep a signal that arrives in a finalizer, where Python swallows the exception."""
    if _CAN_WAIT:
        signal.signal(signal.SIGALRM, _interrupted)
        sys.unraisablehook = _lost


def behind(error: BaseException) -> bool:
    """Say whether an error stands for an interruption: until 3.11 Python makes a RuntimeError of one that
    comes while a class is made; of one that comes while `Condition.wait` takes its lock again, leaving the lock
    makes another; of one that comes while pydantic makes a validator or DuckDB answers, no more than words are
    left."""
    lock = error.__context__ if isinstance(error, RuntimeError) else None
    return (
        isinstance(error, KeyboardInterrupt)
        or (_first is not None and any(words in str(error) for words in _WORDS))
        or any(behind(other) for other in (error.__cause__, lock) if other is not None)
    )


def ignore() -> None:
    """Take no more: the command has ended, only the interpreter has not."""
    for number in (signal.SIGINT, signal.SIGTERM, *((signal.SIGALRM,) if _CAN_WAIT else ())):
        signal.signal(number, signal.SIG_IGN)
    # Python remembers a KeyboardInterrupt that left code run from a string, as dataclasses and named tuples
    # are made, though it was caught later, and would end by SIGINT in place of the exit code; running any
    # string forgets it (CPython, Python/pythonrun.c)
    exec("")


def _interrupted(number: int, frame: FrameType | None) -> None:
    global _first
    if _first is None:
        if _CAN_WAIT and _within_extension(frame):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
            return
        _first = monotonic()
        raise KeyboardInterrupt
    if monotonic() - _first > PATIENCE_SECONDS:
        os._exit(EXIT_CODE)


def _within_extension(frame: FrameType | None) -> bool:
    """Say whether an extension module is being made: an exception out of Python that its code calls there can
    abort the process."""
    while frame is not None:
        if frame.f_code.co_name in ("create_module", "exec_module") and isinstance(
            frame.f_locals.get("self"), ExtensionFileLoader
        ):
            return True
        frame = frame.f_back
    return False


def _lost(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise an interruption again, a little later, that came in a finalizer."""
    global _first
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _first = None
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
        return
    sys.__unraisablehook__(unraisable)
