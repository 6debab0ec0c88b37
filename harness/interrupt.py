"""Ctrl-C and SIGTERM: the first ends the command in order, those that follow at once are the same wish, a late one ends it where it stands.

It imports next to nothing, so that the handlers are there before anything else is imported.
"""

from __future__ import annotations

import os
import signal
import sys
from time import monotonic

EXIT_CODE = 130
PATIENCE_SECONDS = 10.0
"""How long the first may take to end the command: workers are ended and what they finished is written."""
_AGAIN_SECONDS = 0.02
_first: float | None = None


def install() -> None:
    """Take SIGINT and SIGTERM from now on, as if none had come yet; a signal that is ignored stays so."""
    global _first
    _first = None
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupted)


def watch_finalizers() -> None:
    """Let no signal be lost that comes in a finalizer, out of which Python lets no exception."""
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _interrupted)
        sys.unraisablehook = _lost


def ignore() -> None:
    """Take no more: the command has ended, only the interpreter has not."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _interrupted(number: int, frame: object) -> None:
    global _first
    if _first is None:
        _first = monotonic()
        raise KeyboardInterrupt
    if monotonic() - _first > PATIENCE_SECONDS:
        os._exit(EXIT_CODE)


def _lost(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise an interruption again, a little later, that came in a finalizer."""
    global _first
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _first = None
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
        return
    sys.__unraisablehook__(unraisable)
