"""Plans specs on all processors before a command needs the plans: each process writes its plans to the user's
cache, where the command reads them.

Only a first use plans many specs, and a change of the code; afterwards all plans are kept.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence

from harness.model.fork import fork
from harness.specs.reading.load import LoadedSpec

LEAST = 8
"""Of fewer specs the largest alone takes most of the time."""
_TOKEN = 2
"""Bytes of a spec's number."""


def plan_ahead(
    specs: Sequence[LoadedSpec], plan: Callable[[LoadedSpec], object], tell: Callable[[int], None]
) -> None:
    """Call `plan` for each spec in one of as many processes as there are processors, and `tell` how many are
    done; do nothing where processes cannot be forked, or one would be alone.

    A process that ends early costs the plans that it had not kept, which the command then makes itself.
    """
    processes = min(_processors(), len(specs))
    if len(specs) < LEAST or processes < 2 or sys.platform != "linux":
        return
    tokens, given = os.pipe()
    told, done = os.pipe()
    # the largest file first: the last process to end then has little left
    ordered = sorted(specs, key=lambda spec: -spec.path.stat().st_size)
    os.write(given, b"".join(number.to_bytes(_TOKEN, "big") for number in range(len(ordered))))
    os.close(given)
    children: list[int] = []
    try:
        for _ in range(processes):
            children.append(_fork(ordered, plan, tokens, done))
        os.close(done)
        done = -1
        count = 0
        while finished := os.read(told, 4096):
            count += len(finished)
            tell(count)
    except BaseException:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        raise
    finally:
        for end in (tokens, told, done):
            if end >= 0:
                os.close(end)
        for child in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def _fork(specs: Sequence[LoadedSpec], plan: Callable[[LoadedSpec], object], tokens: int, done: int) -> int:
    """Start a process that plans whichever spec is next until none is left; return its id."""
    parent = os.getpid()
    pid = fork()
    if pid:
        return pid
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the first process's to answer
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        while os.getppid() == parent and (token := os.read(tokens, _TOKEN)):
            # what fails here is said by the command, which plans the spec again
            with contextlib.suppress(Exception):
                plan(specs[int.from_bytes(token, "big")])
            os.write(done, b".")
    finally:
        os._exit(0)
