"""Plans specs on all processors before a command needs the plans: each process writes its plans to the user's
cache, where the command reads them.

Only a first use plans many specs, and a change of the code; afterwards all plans are kept.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence

from harness.model.cache_folder import cache_folder
from harness.model.file_lock import claim
from harness.model.fork import fork
from harness.specs.reading.load import LoadedSpec

LEAST = 8
"""Of fewer specs the largest alone takes most of the time."""
_PATIENCE = 60.0
"""Seconds without a new plan after which another command counts as stopped."""
_NAP = 0.5
_TOKEN = 2
"""Bytes of a spec's number."""


def plan_ahead(
    specs: Sequence[LoadedSpec],
    lacks: Callable[[LoadedSpec], bool],
    plan: Callable[[LoadedSpec], object],
    tell: Callable[[int], None],
) -> None:
    """Call `plan` for each spec that `lacks` a plan in one of as many processes as there are processors, and `tell`
    how many are done; do nothing where processes cannot be forked, or one would be alone.

    Of several commands one plans, and the others wait for its plans. A process that ends early costs the plans that it
    had not kept, which the command then makes itself.
    """
    if sys.platform != "linux" or _processors() < 2:
        return
    left = list(filter(lacks, specs))
    if len(left) < LEAST:
        return
    with contextlib.ExitStack() as stack:
        if (folder := _opened()) is not None:
            stack.callback(os.close, folder)
            left = _waited(folder, left, lacks)
        _plan(left, plan, tell)


def _opened() -> int | None:
    """Return a descriptor of the folder of plans, to be locked; None where there can be none."""
    folder = cache_folder("plans")
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder, os.O_RDONLY)
    return None


def _waited(folder: int, left: list[LoadedSpec], lacks: Callable[[LoadedSpec], bool]) -> list[LoadedSpec]:
    """Wait until no other command plans, or none of them gets on; return the specs that still have no plan."""
    since = time.monotonic()
    while not claim(folder) and time.monotonic() < since + _PATIENCE:
        time.sleep(_NAP)
        still = list(filter(lacks, left))
        if len(still) < len(left):
            left, since = still, time.monotonic()
    return list(filter(lacks, left))


def _plan(
    specs: Sequence[LoadedSpec], plan: Callable[[LoadedSpec], object], tell: Callable[[int], None]
) -> None:
    processes = min(_processors(), len(specs))
    tokens, given = os.pipe()
    reported, done = os.pipe()
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
        while finished := os.read(reported, 4096):
            count += len(finished)
            tell(count)
    except BaseException:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        raise
    finally:
        for end in (tokens, reported, done):
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
