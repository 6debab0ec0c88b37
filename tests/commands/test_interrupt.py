"""Ctrl-C, once or more often, at any moment: one line and 130."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pydantic_core import SchemaError, SchemaValidator, core_schema

from harness.model import interrupt
from harness.specs.reading.load import unforeseen
from tests.running import HARNESS, SPECS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc whether the handlers are there")


def ready(pid: int) -> None:
    """Wait until a process catches SIGTERM: Python itself does not."""
    while True:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
        if int(caught.split()[1], 16) & 1 << (signal.SIGTERM - 1):
            return
        time.sleep(0.001)


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0])
@pytest.mark.parametrize("apart", [0.0, 0.01, 0.1])
def test_two_interruptions_are_one(tmp_path: Path, delay: float, apart: float) -> None:
    spec = str(SPECS / "GatherElements.yaml")
    command = [*HARNESS, "run", spec, "-t", "fake", "-j", "2", "-o", str(tmp_path / "o")]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        ready(process.pid)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        time.sleep(apart)
        process.send_signal(signal.SIGINT)
        code = process.wait(60)
        said = process.stderr.read().strip().splitlines()
    assert code == 130, "\n".join(said)
    assert said[-1].startswith("harness: interrupted"), said
    assert not [line for line in said if "Traceback" in line or "Exception ignored" in line]


FINALIZER = """
import os, signal, time
from harness.model import interrupt
from harness.specs.reading.load import unforeseen
interrupt.install()
interrupt.watch_finalizers()
class Late:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass
try:
    Late()
    time.sleep(20)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interruption_in_a_finalizer_is_not_lost() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FINALIZER], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted\n", "")


FROM_A_STRING = """
import os, signal
from harness.model import interrupt
from harness.specs.reading.load import unforeseen
interrupt.install()
try:
    exec("os.kill(os.getpid(), signal.SIGINT)")
except KeyboardInterrupt:
    pass
interrupt.ignore()
"""


def test_an_interruption_of_code_from_a_string_leaves_the_exit_code() -> None:
    """Modules make dataclasses and named tuples that way as they load."""
    assert subprocess.run([sys.executable, "-c", FROM_A_STRING], timeout=120, check=False).returncode == 0


def test_an_interruption_that_comes_as_another_error_is_known() -> None:
    class Interrupting:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises((RuntimeError, KeyboardInterrupt)) as caught:
        type("Made", (), {"entry": Interrupting()})
    assert interrupt.behind(caught.value)
    assert not interrupt.behind(RuntimeError())


def test_an_interruption_while_a_condition_takes_its_lock_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython then leaves a lock that it has not: `RuntimeError: cannot release un-acquired lock`."""
    condition = threading.Condition(threading.Lock())

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(condition, "_acquire_restore", interrupted)
    with pytest.raises(RuntimeError) as caught, condition:
        condition.wait(0.001)
    assert interrupt.behind(caught.value)


def test_an_interruption_while_a_validator_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """pydantic then raises a `SchemaError` that holds nothing of the interruption but its name."""

    class Interrupting:
        def __repr__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(SchemaError) as caught:
        SchemaValidator(core_schema.literal_schema([Interrupting()]))
    assert not interrupt.behind(caught.value)
    monkeypatch.setattr(interrupt, "_first", 1.0)
    assert interrupt.behind(caught.value)
    assert not interrupt.behind(ValueError())
    with pytest.raises(KeyboardInterrupt):
        unforeseen(caught.value)


LOADING = """
import os, signal, sys
class Interrupted:
    def find_spec(self, name, path, target=None):
        if name == "harness.commands.cli":
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt as error:
                raise RuntimeError("Error calling __set_name__") from error
sys.meta_path.insert(0, Interrupted())
from harness.commands.start import main
main()
"""


def test_an_interruption_that_comes_as_another_error_while_modules_load_is_one_line() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOADING], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "harness: interrupted\n")


EXTENSION = """
import os, signal, sys, time
from importlib.machinery import ExtensionFileLoader
from harness.model import interrupt
from harness.specs.reading.load import unforeseen
interrupt.install()
interrupt.watch_finalizers()
class Loader(ExtensionFileLoader):
    def exec_module(self, module):
        os.kill(os.getpid(), signal.SIGINT)
        print("loaded")
try:
    Loader("extension", "extension.so").exec_module(None)
    time.sleep(20)
except KeyboardInterrupt:
    print("interrupted")
interrupt.ignore()
"""


def test_an_interruption_waits_until_an_extension_is_loaded() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", EXTENSION], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "loaded\ninterrupted\n", "")


PATIENCE = """
import os, signal, time
from harness.model import interrupt
from harness.specs.reading.load import unforeseen
interrupt.PATIENCE_SECONDS = 0.1
interrupt.install()
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(20)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGINT)
    print("still there", flush=True)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(20)
"""


def test_a_late_one_ends_what_does_not_end() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PATIENCE], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "still there\n", "")


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As a shell leaves SIGINT for what it starts in the background."""
    before = "import signal; signal.signal(2, signal.SIG_IGN)"
    code = (
        f"{before}; from harness.model import interrupt; interrupt.install(); print(signal.getsignal(2).name)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert ended.stdout == "SIG_IGN\n"
