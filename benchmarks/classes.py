"""The default specs by class of operators: a bare loop over the calls of a run, the first run, and the second.

The bare loop is what ONNX Runtime itself takes for the calls of the second run, in one process: sessions are created, run and
ended once more, and only the time within that counts. Runs over other memory and the search of a transformer are in the runs
alone.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.stages import usage_of
from harness.commands.start import main
from harness.model.cache_folder import CACHE_ENV, cache_folder
from harness.operators import OPERATORS
from harness.results.runfile import RunReader
from harness.specs.reading.load import default_folder, load_specs
from harness.targets.process import WorkerProcess
from harness.worker import worker

_GRAPHS = "graphs of operators"
_THIS = "-m", "benchmarks.classes"


def table() -> Iterator[str]:
    """Yield a Markdown table of the processor time of the default specs on the CPU provider."""
    yield "| class | results | bare loop, µs a result | first run | second run | second run / bare loop |"
    yield "|---|--:|--:|--:|--:|--:|"
    plans = cache_folder("plans")
    everything = np.zeros(4)
    for name, specs in _classes().items():
        with tempfile.TemporaryDirectory() as folder:
            cache, sent = Path(folder) / "cache", Path(folder) / "sent"
            cache.mkdir()
            sent.mkdir()
            (cache / "plans").symlink_to(plans)
            environment = {CACHE_ENV: str(cache)}
            run = ["run", *map(str, specs), "-t", "cpu", "--force", "-o", f"{folder}/run"]
            usages = [
                usage_of([sys.executable, *program, *run], environment)
                for program in (("-m", "harness"), ("-m", "harness"), (*_THIS, "record", str(sent)))
            ]
            first, second, _ = (usage.ru_utime + usage.ru_stime for usage in usages)
            results = sum(1 for _ in RunReader(Path(folder) / "run"))
            bare = float(subprocess.check_output([sys.executable, *_THIS, "replay", str(sent)]))
        measured = np.array([results, bare, first, second])
        everything += measured
        yield _row(name, *measured)
    yield _row("all", *everything)


def _row(name: str, results: float, bare: float, first: float, second: float) -> str:
    each = " | ".join(f"{seconds / results * 1e6:,.0f}" for seconds in (bare, first, second))
    return f"| {name} | {results:,.0f} | {each} | {second / bare:.1f} |"


def _classes() -> dict[str, list[Path]]:
    """Return the default specs by the folder of the family of their operator."""
    found: dict[str, list[Path]] = {}
    for spec in load_specs([default_folder()]):
        room = type(OPERATORS[spec.model.operator].family).__module__.split(".")[2]
        found.setdefault(_GRAPHS if spec.graph is not None else room.replace("_", " "), []).append(spec.path)
    return dict(sorted(found.items()))


def record(folder: Path, arguments: Sequence[str]) -> None:
    """Run `harness` with some arguments, and write what its workers are sent to files of a folder."""

    def send(process: WorkerProcess, header: object, payload: Sequence[bytes] = ()) -> None:
        head, body = msgspec.json.encode(header), b"".join(payload)
        with (folder / f"{os.getpid()}-{process.pid}").open("ab") as file:
            file.write(worker.REQUEST.pack(len(head), len(body)) + head + body)
        sent(process, header, payload)

    sent = WorkerProcess.send
    WorkerProcess.send = send  # type: ignore[method-assign]
    sys.argv[1:] = arguments
    main()


class _Recorded(worker.Channel):
    """A channel that reads requests from a file and drops the answers."""

    def __init__(self, path: Path) -> None:
        self._in = path.open("rb")
        self._pending = []

    def send(self) -> None:
        self._pending.clear()


def replay(folder: Path) -> None:
    """Print the seconds of processor time within ONNX Runtime for the requests that `record` wrote.

    A process of its own takes what one worker was sent. Where a case ends it, what is left was sent to another worker.
    """
    worker.load()  # once, for all processes
    seconds = np.frombuffer(mmap.mmap(-1, 8), np.float64)
    for path in sorted(folder.iterdir()):
        process = os.fork()
        if not process:
            _replay(path, seconds)
            os._exit(0)
        os.waitpid(process, 0)
    print(seconds[0])


def _replay(path: Path, seconds: Any) -> None:
    """Run the graphs of a file, and add the processor time within ONNX Runtime to `seconds`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    worker.np = np
    channel, backend, ort = _Recorded(path), worker.OnnxRuntime(), worker.load()

    def timed(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            started = time.thread_time()  # runs of several threads overlap
            try:
                return call(*arguments, **named)
            finally:
                seconds[0] += time.thread_time() - started

        return called

    for name in ("__init__", "run", "run_with_iobinding"):
        setattr(ort.InferenceSession, name, timed(getattr(ort.InferenceSession, name)))
    ort.InferenceSession.__del__ = timed(lambda session: session.__dict__.clear())
    backend.core_refuses = backend.elsewhere = backend.unknown_version = lambda *_: None  # type: ignore[method-assign]
    while (request := channel.read()) is not None:
        header, payload = request
        at = 0
        for unit in header.get("units", ()):
            whole = dict(header["kinds"][unit["kind"]], **unit, tells_transformers=False)
            if not whole.get("patterns") and not whole.get("disabled"):
                worker.run_unit(channel, backend, whole, payload, at)
            at += unit["bytes"]


if __name__ == "__main__":
    command, place, *rest = sys.argv[1:]
    record(Path(place), rest) if command == "record" else replay(Path(place))
