"""Workers that misbehave in ways that the fake target's scripts cannot act out; run as `python
tests/workers.py NAME [ARGUMENT]`."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.worker import worker


def fake(channel: worker.Channel) -> Any:
    """Make the backend of the fake target; its imports take a while, which most of these workers do not
    have."""
    from harness.targets.fake import FakeRuntime
    from harness.targets.fake_script import Script

    return FakeRuntime(Script(None), channel)


def noisy(_: str) -> None:
    """Print to descriptor 1 in every way a native library might."""
    channel = worker.Channel()

    def shout() -> None:
        print("R" * 100, flush=True)
        os.write(1, b"A\x04\x00\x00\x00\x00\x00\x00\x00" * 50)
        libc = ctypes.CDLL(None)
        libc.puts(b"puts from a native library")
        libc.fflush(None)
        os.write(2, b"and on stderr too\n")

    def backend() -> Any:
        made = fake(channel)
        for name in ("session", "run"):
            setattr(made, name, shouting(getattr(made, name)))
        return made

    def shouting(call: Callable[..., Any]) -> Callable[..., Any]:
        def shouted(*arguments: Any) -> Any:
            shout()
            answer = call(*arguments)
            shout()
            return answer

        return shouted

    shout()
    worker.serve(channel, backend)


def removed(size: str) -> None:
    """Act out DirectML's device that inputs of a size remove: whatever is asked of this process from then on
    fails as well."""
    channel = worker.Channel()
    on_directml = {"provider": "DmlExecutionProvider", "provider_options": {}}
    message = "DmlCommandRecorder.cpp(21)\\onnxruntime_pybind11_state.pyd!00006FFFF6161FA5: Exception(13562) tid(24) 887A0005"

    def backend() -> Any:
        made = fake(channel)
        made._after_failure = lambda device_id: False  # Direct3D's device is still there
        made.after_failure = lambda unit, error: worker.OnnxRuntime.after_failure(
            made, {**unit, **on_directml}, error
        )
        session, run, gone = made.session, made.run, []

        def sessions(unit: Any, model: bytes) -> Any:
            if gone:
                raise RuntimeError(message)
            return session(unit, model)

        def runs(opened: Any, unit: Any, arrays: Any, position: int) -> Any:
            if gone or arrays[0].size == int(size):
                gone.append(True)
                raise RuntimeError(message)
            return run(opened, unit, arrays, position)

        made.session, made.run = sessions, runs
        return made

    worker.serve(channel, backend)


def exits_at_once(_: str) -> None:
    print("the reason", file=sys.stderr, flush=True)
    os._exit(7)


def killed_at_start(_: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dies_at_its_first_starts(state: str) -> None:
    """Die before the greeting until the file has counted down to 0; then be in order."""
    left = int(Path(state).read_text(encoding="ascii"))
    if left:
        Path(state).write_text(str(left - 1), encoding="ascii")
        os.kill(os.getpid(), signal.SIGKILL)
    channel = worker.Channel()
    worker.serve(channel, lambda: fake(channel))


def hangs_at_start(_: str) -> None:
    time.sleep(1e6)


def garbage_at_start(_: str) -> None:
    os.write(1, b"Welcome to a shell that prints on stdout\n")
    time.sleep(1e6)


GREETING = {
    "protocol": worker.PROTOCOL,
    "onnxruntime": "",
    "providers": [],
    "python": "",
    "numpy": "",
    "platform": "",
}


def greets(body: dict[str, Any]) -> None:
    greeting = json.dumps(body).encode()
    os.write(1, struct.pack("<BI", ord("H"), len(greeting)) + greeting)


def half_a_greeting(_: str) -> None:
    os.write(1, struct.pack("<BI", ord("H"), 500) + b'{"protocol"')


def malformed_greeting(_: str) -> None:
    greets({"protocol": 1})
    time.sleep(1e6)


def other_protocol(_: str) -> None:
    greets({**GREETING, "protocol": worker.PROTOCOL + 1})
    time.sleep(1e6)


def dies_after_the_greeting(_: str) -> None:
    greets(GREETING)
    os._exit(0)


def dies_once_before_a_case(state: str) -> None:
    """Leave the first batch unanswered, as an external kill would; every later worker is in order."""
    first = not Path(state).exists()
    Path(state).touch()
    channel = worker.Channel()
    if first:
        channel.read()
        channel.add_json("H", GREETING)
        channel.send()
        channel.read()
        os._exit(9)
    worker.serve(channel, lambda: fake(channel))


def is_killed_at_two_starts(state: str) -> None:
    """End before the greeting, and once during it, as an external kill would; every later worker is in
    order."""
    path = Path(state)
    before = len(path.read_bytes()) if path.exists() else 0
    path.write_bytes(b"x" * (before + 1))
    if before == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if before == 1:
        os.write(1, b"H\x40\x00")
        os.kill(os.getpid(), signal.SIGKILL)
    channel = worker.Channel()
    worker.serve(channel, lambda: fake(channel))


def loses_its_device(state: str) -> None:
    """Fail each case after the second until there is another process, as onnxruntime does once its Direct3D
    device is removed."""
    first = not Path(state).exists()
    Path(state).touch()
    channel = worker.Channel()
    made = fake(channel)
    runs = []

    def run(*arguments: Any) -> Any:
        runs.append(arguments)
        if first and len(runs) > 2:
            made.lost = True
            raise RuntimeError("887A0005 The GPU device instance has been suspended.")
        return right(*arguments)

    right, made.run = made.run, run
    worker.serve(channel, lambda: made)


def starts_a_child(state: str) -> None:
    """Start a process of its own, note its id, then serve."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(state).write_text(str(child.pid), encoding="utf-8")
    channel = worker.Channel()
    worker.serve(channel, lambda: fake(channel))


class Echo:
    """Gives each case its first input back, in a few milliseconds' start; notes the cases that it begins, and ends
    with those that are named."""

    lost = False

    def __init__(self, folder: Path) -> None:
        self._begun = folder / "begun"
        self._doomed = (folder / "doomed").read_text(encoding="utf-8").splitlines()
        self._seconds = float((folder / "seconds").read_text(encoding="ascii"))

    def hello(self) -> dict[str, Any]:
        return {"onnxruntime": "0.0.0", "providers": [], "device": {}}

    def session(self, unit: Any, model: bytes) -> Any:
        return unit

    def assignment(self, session: Any) -> list[list[str]]:
        return [["FakeExecutionProvider", operator] for operator in session["tested"]]

    def run(self, session: Any, unit: Any, arrays: Any, position: int) -> list[tuple[Any, int]]:
        case = unit["fake"][position][0]
        with self._begun.open("a", encoding="utf-8") as file:
            file.write(f"{case}\n")
        if case in self._doomed:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self._seconds)
        return [(arrays[0], unit["inputs"][0][1])]


def echoes(folder: str) -> None:
    channel = worker.Channel()
    worker.serve(channel, lambda: Echo(Path(folder)))


def without_assignment(_: str) -> None:
    """Be an onnxruntime from before 1.24, which tells placement only by a profile."""
    import onnxruntime

    name = "get_provider_graph_assignment_info"
    for one in onnxruntime.InferenceSession.__mro__:
        if name in vars(one):
            delattr(one, name)

    class Older(worker.OnnxRuntime):
        def assignment(self, session: Any) -> None:
            assert not hasattr(session, "get_provider_graph_assignment_info")
            return super().assignment(session)

    channel = worker.Channel()
    worker.serve(channel, Older)


def with_nodes_left_out(_: str) -> None:
    """Be an onnxruntime 1.26, which lists no node around which it inserts Casts."""
    import onnxruntime

    onnxruntime.__version__ = "1.26.0"

    class Lacking(worker.OnnxRuntime):
        def assignment(self, session: Any) -> Any:
            return None if super().assignment(session) is None else []

    channel = worker.Channel()
    worker.serve(channel, Lacking)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else "")
