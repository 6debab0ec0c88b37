"""Signals at random moments to the first process of a run, to its other processes and to its workers.

Each round is a run that is struck, then resumed and struck again, and in the end resumed in peace. It must
then have the same results as a run that nothing struck, but for one `crash` for each worker that was struck
in the middle of a case; and nothing may be left of it: no process, no temporary folder, no half-written file.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from harness.model import interrupt
from tests.campaign.findings import Found
from tests.running import SPECS

ROOT = Path(__file__).resolve().parents[2]
MARK = "HARNESS_CAMPAIGN"
"""A variable of the environment by which all processes of a round are found, whosever children they have
become."""
SECONDS = 90.0
"""What a struck run may take to end, and any run."""
QUERY = "GatherElements@13:sweep=extent;data=float16"
START = """
import sys
from harness.model import interrupt
interrupt.install()
try:
    from harness.run.processes import coordinator
except KeyboardInterrupt:
    sys.exit(130)
coordinator.CASES = 40
from harness.commands.start import main
main()
"""
"""Two run processes for a few hundred cases."""
SIGNALS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT)
LEFT = {"run.jsonl", "report.md", "report.html", "artifacts"}
ALL = "all"
"""The victim that stands for every process of a run, as `pkill`, Slurm or systemd strike."""
_ENDED = {1, interrupt.EXIT_CODE, -signal.SIGINT, -signal.SIGTERM}
"""How a run ends that was asked to end: it had ended before, in order, or while Python itself began."""
_GONE = 10.0
_OWN = ("start.py", "interrupt.py", "__main__.py")
"""Of which Ctrl-C may interrupt the loading: a few milliseconds in which nobody can answer it."""


class Strike(NamedTuple):
    """A signal that was sent: to whom, and whether a worker was the victim."""

    number: signal.Signals
    victim: str


class Place(NamedTuple):
    """The folder of a round, its script for the fake target, and how many run processes and workers it has."""

    folder: Path
    script: Path
    jobs: int

    @property
    def run(self) -> Path:
        return self.folder / "out" / "run.jsonl"


def fault_campaign(number: int, seed: int, keep: Path) -> Found:
    """Send `number` signals; rounds with a problem are kept."""
    rng = random.Random(f"faults {seed}")
    found = Found()
    with tempfile.TemporaryDirectory(prefix="campaign-faults-") as name:
        base = Path(name)
        script = base / "script.yaml"
        script.write_text(
            'rules:\n  - {match: "GatherElements@13:values=negative", do: bit}\n  - {match: "GatherElements@13:values=last", do: reject}\n',
            encoding="utf-8",
        )
        whole: dict[int, tuple[float, dict[str, Any]]] = {}
        rounds = sent = 0
        while sent < number:
            rounds += 1
            jobs = rng.choice((1, 3))
            place = Place(base / f"round-{rounds}", script, jobs)
            if jobs not in whole:
                whole[jobs] = _undisturbed(Place(base / f"whole-{jobs}", script, jobs))
            seconds, results = whole[jobs]
            strikes, said = _round(place, rng, seconds, min(rng.randrange(1, 5), number - sent))
            sent += max(1, len(strikes))
            if rounds % 20 == 0:
                print(
                    f"{sent:,} of {number:,} signals sent, {len(found.problems):,} problems",
                    file=sys.stderr,
                    flush=True,
                )
            found.counts["rounds"] += 1
            for strike in strikes:
                found.counts[f"{strike.number.name} to {strike.victim}"] += 1
            wrong = [*said, *_differences(place, results, strikes), *_left(place)]
            _end(_marked(place))
            if wrong:
                told = ", ".join(f"{strike.number.name} to {strike.victim}" for strike in strikes)
                found.problems += [f"round {rounds} ({jobs} jobs; {told}): {line}" for line in wrong]
                shutil.copytree(place.folder, keep / place.folder.name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(place.folder, ignore_errors=True)
    return found


def _undisturbed(place: Place) -> tuple[float, dict[str, Any]]:
    began = time.monotonic()
    process = _start(place)
    code = process.wait(SECONDS)
    assert code == 1, code
    assert not _marked(place)
    return time.monotonic() - began, _results(place.run)


def _round(place: Place, rng: random.Random, seconds: float, number: int) -> tuple[list[Strike], list[str]]:
    """Strike a run several times, resume it in peace; return what was sent, and what the processes said or
    did that they should not."""
    strikes: list[Strike] = []
    wrong: list[str] = []
    for _ in range(number):
        process = _start(place)
        _wait(place, process, rng, seconds)
        strike = _strike(place, process, rng)
        if strike is not None:
            strikes.append(strike)
        wrong += _ended(place, process)
        if strike is not None and strike.victim == ALL and process.returncode not in _ENDED:
            wrong.append(
                f"{strike.number.name} to all ended with {process.returncode}: {_said(place)[-300:]!r}"
            )
    process = _start(place)
    wrong += _ended(place, process)
    lost = sum(strike.victim == "worker" for strike in strikes)
    if process.returncode != 1:
        wrong.append(
            f"the last resumption ended with {process.returncode}, after {lost} strikes at workers: {_said(place)[-300:]!r}"
        )
    return strikes, wrong


def _wait(place: Place, process: subprocess.Popen[bytes], rng: random.Random, seconds: float) -> None:
    """Wait for a random moment: of the whole run, or more often from when its workers begin, before which it
    only reads and loads."""
    if rng.random() < 0.3:
        time.sleep(rng.uniform(0.0, seconds))
        return
    while "worker" not in _marked(place).values() and process.poll() is None:
        time.sleep(0.005)
    time.sleep(rng.uniform(0.0, seconds / 3) if rng.random() < 0.7 else rng.uniform(0.0, 0.02))


def _start(place: Place) -> subprocess.Popen[bytes]:
    """Start the run, or go on with it where it has begun."""
    (place.folder / "tmp").mkdir(parents=True, exist_ok=True)
    begun = place.run.exists() and b"\n" in place.run.read_bytes()[: 1 << 20]
    if not begun:
        shutil.rmtree(place.run.parent, ignore_errors=True)
    options = [
        "run",
        SPECS / "GatherElements.yaml",
        "-k",
        QUERY,
        "-t",
        f"fake,script={place.script}",
        "-j",
        place.jobs,
        "--timeout",
        60,
    ]
    arguments = [*options, "-o", place.run.parent, *(["--resume"] if begun else [])]
    environment = {
        **os.environ,
        MARK: str(place.folder),
        "TMPDIR": str(place.folder / "tmp"),
        "PYTHONPATH": str(ROOT),
    }
    with open(place.folder / "said.txt", "wb") as said:
        return subprocess.Popen(
            [sys.executable, "-c", START, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=environment,
            cwd=place.folder,
            start_new_session=True,
        )


def _strike(place: Place, process: subprocess.Popen[bytes], rng: random.Random) -> Strike | None:
    """Send one signal to one process of a run, or STOP to several; what was stopped goes on a little later,
    or the first process dies."""
    by_kind: dict[str, list[int]] = {}
    for pid, kind in _marked(place).items():
        by_kind.setdefault("parent" if pid == process.pid else kind, []).append(pid)
    if not by_kind or process.poll() is not None:
        return None
    if rng.random() < 0.2:
        number = rng.choice((signal.SIGTERM, signal.SIGINT))
        everyone = [pid for pids in by_kind.values() for pid in pids]
        for pid in rng.sample(everyone, len(everyone)):
            _send(pid, number)
        return Strike(number, ALL)
    victim = rng.choice([kind for kind in sorted(by_kind) for _ in range(1 if kind == "parent" else 2)])
    number = rng.choice(SIGNALS)
    struck = by_kind[victim] if rng.random() < 0.3 else [rng.choice(by_kind[victim])]
    for pid in struck:
        _send(pid, number)
    if number is signal.SIGINT and victim == "parent" and rng.random() < 0.5:
        time.sleep(rng.choice((0.0, 0.02, 0.2)))
        _send(process.pid, number)
    if number is signal.SIGSTOP:
        time.sleep(rng.uniform(0.0, 0.3))
        if rng.random() < 0.5:
            _send(process.pid, signal.SIGKILL)
        else:
            for pid in struck:
                _send(pid, signal.SIGCONT)
    return Strike(number, victim)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _ended(place: Place, process: subprocess.Popen[bytes]) -> list[str]:
    """Wait for a run to end and for its processes to be gone; say what is wrong with how it ended."""
    wrong = []
    try:
        process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        wrong.append(f"no end within {SECONDS:g} s: {_said(place)[-300:]!r}")
        _end(_marked(place))
        process.wait()
    end = time.monotonic() + _GONE
    while (left := _marked(place)) and time.monotonic() < end:
        time.sleep(0.01)
    if left:
        wrong.append(f"processes are left behind: {', '.join(sorted(left.values()))}")
        _end(left)
    said = _said(place)
    frames = [line for line in said.splitlines() if line.strip().startswith(f'File "{ROOT}/harness/')]
    if ("Traceback" in said or "Exception ignored" in said) and any(
        not line.split('"')[1].endswith(_OWN) for line in frames
    ):
        wrong.append(f"a traceback: {said[-600:]!r}")
    return wrong


def _said(place: Place) -> str:
    return (place.folder / "said.txt").read_text(encoding="utf-8", errors="replace")


def _end(pids: dict[int, str]) -> None:
    for pid in pids:
        _send(pid, signal.SIGKILL)


def _marked(place: Place) -> dict[int, str]:
    """Return the processes of a round that live, as `run` or `worker`, found by their environment."""
    mark = f"{MARK}={place.folder}".encode()
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if alive:
            found[int(entry.name)] = "worker" if b"harness.targets.fake" in command else "run"
    return found


def _results(run: Path) -> dict[str, Any]:
    lines = [json.loads(line) for line in run.read_bytes().splitlines()]
    assert lines[-1]["type"] == "end"
    found: dict[str, Any] = {}
    for line in lines[1:-1]:
        assert line["case"] not in found, f"{line['case']} is there twice"
        found[line["case"]] = {key: value for key, value in line.items() if key != "seconds"}
    return found


def _differences(place: Place, whole: dict[str, Any], strikes: list[Strike]) -> list[str]:
    """Hold the results against those of the run that nothing struck."""
    try:
        results = _results(place.run)
    except (OSError, ValueError, AssertionError, IndexError, KeyError) as error:
        return [f"the run file: {type(error).__name__}: {error}"]
    wrong = []
    if results.keys() != whole.keys():
        wrong.append(
            f"{len(whole.keys() - results.keys()):,} results are missing, {len(results.keys() - whole.keys()):,} are too many"
        )
    others = [case for case in results.keys() & whole.keys() if results[case] != whole[case]]
    lost = [case for case in others if results[case]["outcome"] == "crash"]
    struck = sum(strike.victim == "worker" for strike in strikes)
    if len(lost) < len(others):
        other = next(case for case in others if case not in lost)
        wrong.append(
            f"{len(others) - len(lost):,} results are others: {results[other]} instead of {whole[other]}"
        )
    if len(lost) > struck * place.jobs:
        wrong.append(f"{len(lost):,} cases are lost with {struck} strikes at {place.jobs} workers")
    return wrong


def _left(place: Place) -> list[str]:
    """Say what is left that is no part of a run."""
    wrong = []
    if temporary := sorted(path.name for path in (place.folder / "tmp").iterdir()):
        wrong.append(f"temporary folders are left: {', '.join(temporary)}")
    if more := sorted({path.name for path in place.run.parent.iterdir()} - LEFT):
        wrong.append(f"files are left beside the run: {', '.join(more)}")
    return wrong
