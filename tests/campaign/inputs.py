"""Damaged files of every kind that the harness reads: each is answered with results or with one clear error,
within bounded time.

The bound of a hang is time on the clock; what counts as slow is processor time, which a busy machine does not
lengthen.

A child process reads the files, so that a crash of native code or a hang costs one file: the parent ends it
and starts another.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.model.errors import HarnessError
from tests.campaign.findings import Found
from tests.campaign.kinds import KINDS, Unexpected, prepare

_MEMORY = 1 << 30
"""What a process may take that reads a file of some kilobytes."""
_SLOW = 0.25
"""Of the bound: a file that takes as much processor time is worth a look."""


def input_campaign(
    number: int, seed: int, keep: Path, seconds: float, kinds: Sequence[str] | None = None
) -> Found:
    """Damage `number` files and have each read within `seconds`; those with a problem are kept."""
    found = Found()
    with tempfile.TemporaryDirectory(prefix="campaign-inputs-") as name:
        folder = Path(name)
        prepare(folder)
        wholes = {kind: KINDS[kind].whole(folder) for kind in kinds or KINDS}
        following = 0
        while following < number:
            for at, kind, problem in _child(folder, wholes, seed, range(following, number), seconds):
                following = at + 1
                if following % 1000 == 0:
                    print(
                        f"{following:,} of {number:,} files read, {len(found.problems):,} problems",
                        file=sys.stderr,
                        flush=True,
                    )
                found.counts[kind] += 1
                if problem:
                    found.problems.append(f"input {at} ({kind}, seed {seed}): {problem}")
                    (keep / f"input-{at}").write_bytes(_damaged(wholes, seed, at)[1])
    return found


def _child(
    folder: Path, wholes: dict[str, Sequence[bytes]], seed: int, numbers: range, seconds: float
) -> Iterator[tuple[int, str, str]]:
    """Yield number, kind and problem of each file that a child process reads; it ends with the first that it
    does not survive."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(reading)
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            _read_all(folder, wholes, seed, numbers, writing, _SLOW * seconds)
        finally:
            os._exit(0)
    os.close(writing)
    buffer = b""
    at, kind, read = numbers.start, "", False
    try:
        while True:
            if not select.select([reading], [], [], seconds)[0]:
                yield at, kind, f"not read within {seconds:g} s"
                return
            data = os.read(reading, 1 << 16)
            if not data:
                break
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                at, kind, done, problem = json.loads(line)
                read = True
                if done:
                    yield at, kind, problem
                    kind = ""
        if kind:
            yield at, kind, "the process that read it ended"
        elif not read:
            raise RuntimeError(f"the process that reads the files ended before file {at}")
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _damaged(wholes: dict[str, Sequence[bytes]], seed: int, number: int) -> tuple[str, bytes, random.Random]:
    rng = random.Random(f"inputs {seed} {number}")
    kind = rng.choice(sorted(wholes))
    return kind, rng.choice(KINDS[kind].mutations)(rng.choice(wholes[kind]), rng), rng


def _read_all(
    folder: Path, wholes: dict[str, Sequence[bytes]], seed: int, numbers: range, writing: int, slow: float
) -> None:
    os.chdir(folder)
    for number in numbers:
        kind, data, rng = _damaged(wholes, seed, number)
        os.write(writing, json.dumps([number, kind, False, ""]).encode() + b"\n")
        problem = ""
        Path("/proc/self/clear_refs").write_text("5")  # from here on the kernel notes the most memory anew
        before = _most_memory()
        began = _processor_time()
        try:
            KINDS[kind].use(folder, data, rng)
        except HarnessError:
            pass
        except BaseException as error:  # noqa: BLE001 - whatever comes out is what the campaign looks for
            problem = str(error) if isinstance(error, Unexpected) else traceback.format_exc()[-1500:]
        if not problem and (took := _processor_time() - began) > slow:
            problem = f"took {took:.1f} s of processor time"
        if not problem and (most := _most_memory() - before) > _MEMORY:
            problem = f"took {most >> 20:,} MiB of memory"
        os.write(writing, json.dumps([number, kind, True, problem]).encode() + b"\n")


def _processor_time() -> float:
    """Return the seconds that this process and those that it has ended and waited for have computed."""
    return sum(os.times()[:4])


def _most_memory() -> int:
    (line,) = (
        line
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        if line.startswith("VmHWM:")
    )
    return int(line.split()[1]) << 10
