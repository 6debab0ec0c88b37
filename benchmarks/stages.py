"""Processor time by process and stage of a `harness run`: how much of it from the operating system, which stage from
samples of py-spy (https://github.com/benfred/py-spy, `pip install py-spy`).

A run without the profiler says how much processor time all processes take; the shares of the stages are those of
the samples of a second one. A sample belongs to the stage of its innermost frame that has one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from resource import struct_rusage

from harness.results.runfile import RunReader

_RATE = 100
_FIRST, _PROCESS, _WORKER = "first process", "run processes", "workers"
_STAGES = {
    _FIRST: (
        ("read specs and expectations", r"^(load_specs|load_expectations) "),
        ("plan", r"^(expand|Selection\.counted) \(harness/specs"),
        ("write lines", r"harness/run/processes/coordinator\.py|RunWriter"),
        ("reports", r"harness/(render|results)/|harness/commands/finish\.py"),
        ("start and imports", r"<frozen importlib"),
    ),
    _PROCESS: (
        ("expectations", r"harness/specs/expectations/"),
        ("artifacts", r"harness/run/artifacts\.py"),
        ("oracle", r"harness/run/oracle\.py"),
        ("compare", r"^compare_all |harness/model/diff\.py"),
        ("graphs", r"harness/compile/(graphs|directml)\.py"),
        ("inputs and calls", r"harness/specs/(values|calls)\.py"),
        ("send and receive", r"harness/targets/(frames|process)\.py"),
        ("cases", r"harness/specs/(blocks|expand|selection)\.py"),
        ("lines", r"harness/(results/runfile|run/processes/coordinator)\.py"),
        ("judge", r"harness/run/(judge|job)\.py"),
    ),
    _WORKER: (
        ("refusals", r"^OnnxRuntime\.(core_refuses|unknown_version|elsewhere) "),
        ("sessions", r"^OnnxRuntime\.(session|assignment) "),
        ("run", r"^OnnxRuntime\.run "),
        ("start and imports", r"<frozen importlib"),
        ("frames", r"^(Channel\.|decode_tensor|encode_elements|run_unit|serve)"),
    ),
}
"""By process, its stages: a stage's frames are those that the pattern finds."""
_PROCESSES = ("harness/run/processes/process.py", "harness/targets/process.py")
"""Where a run process is, and the threads that read and write its workers' pipes."""
_OTHER = "other"


def table(specs: Sequence[Path]) -> Iterator[str]:
    """Yield a Markdown table of the processor time of `harness run` of some specs, or of the default ones, on the
    CPU provider."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    profiler = shutil.which("py-spy", path=folders)
    if profiler is None:
        raise SystemExit("--stages needs py-spy: python -m pip install py-spy")
    with tempfile.TemporaryDirectory() as folder:
        out, raw = Path(folder) / "run", Path(folder) / "samples"
        command = [sys.executable, "-m", "harness", "run", *map(str, specs), "-t", "cpu", "--no-cache"]
        command += ["-o", str(out)]  # both runs make and judge every case
        used = usage_of([*command, "--force"])
        seconds, results = used.ru_utime + used.ru_stime, sum(1 for _ in RunReader(out))
        record = [profiler, "record", "-r", str(_RATE), "-f", "raw", "-s", "--nonblocking", "-o", str(raw)]
        usage_of([*record, "--", *command, "--force"])
        samples = _samples(raw.read_text(encoding="utf-8", errors="replace"))
    every = samples.total()
    microseconds = seconds / results * 1e6
    yield f"{results:,} results, {seconds:.1f} s of processor time, {every:,} samples\n"
    yield "| process | stage | µs a result | share |"
    yield "|---|---|--:|--:|"
    for process, stages in _STAGES.items():
        total = sum(number for (where, _), number in samples.items() if where == process)
        yield _row(f"**{process}**", "", total / every, microseconds)
        for stage in (*(name for name, _ in stages), _OTHER):
            if number := samples[process, stage]:
                yield _row("", stage, number / every, microseconds)


def _samples(raw: str) -> Counter[tuple[str, str]]:
    """Count samples by process and stage. A stack is one line, but a command line in it may have several."""
    found = Counter[tuple[str, str]]()
    for stack, number in re.findall(r"^(process .*?) (\d+)$", raw, re.MULTILINE | re.DOTALL):
        found[stage_of(stack)] += int(number)
    return found


def _row(process: str, stage: str, share: float, microseconds: float) -> str:
    return f"| {process} | {stage} | {share * microseconds:,.0f} | {share:.1%} |"


def usage_of(command: Sequence[str], environment: Mapping[str, str] = {}) -> struct_rusage:
    """Run a `harness run`, and return what it and all processes that it waited for used."""
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return usage


def stage_of(stack: str) -> tuple[str, str]:
    """Return process and stage of a stack: processes from the first one on, then frames, the innermost last, all
    joined by semicolons."""
    frames = stack.split(";")
    started = [frame for frame in frames if frame.startswith("process ")]
    worker = "/worker/" in started[-1]
    run = any(place in stack for place in _PROCESSES)
    where = _WORKER if worker else _PROCESS if run else _FIRST
    for frame in reversed(frames):
        for stage, pattern in _STAGES[where]:
            if re.search(pattern, frame):
                return where, stage
    return where, _OTHER
