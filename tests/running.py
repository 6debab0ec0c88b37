"""Runs the command line inside this process, and reads what it wrote."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from harness.commands import cli
from harness.model.progress import PLANNING

SPECS = Path(__file__).resolve().parents[1] / "specs"
ROUND = SPECS / "Round.yaml"
"""The smallest spec: most tests of a whole run need no other."""
HARNESS = (sys.executable, "-m", "harness")
"""The command line as a program."""


class Ended(NamedTuple):
    """How a command ended: exit code, and what it wrote."""

    code: int
    out: str
    err: str


def harness(*arguments: str | Path) -> Ended:
    """Run `harness ARGUMENTS` in the current folder."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    code = 0
    try:
        with (
            mock.patch.object(sys, "argv", ["harness", *map(str, arguments)]),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            cli.main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    out.flush()
    return Ended(code, out.buffer.getvalue().decode(), err.getvalue())  # type: ignore[attr-defined]


def complaint(ended: Ended) -> str:
    """Return the one line of an error, without the program's name; on a slow machine lines of progress stand before it."""
    lines = [line for line in ended.err.splitlines() if not line.startswith(f"{PLANNING}: ")]
    assert len(lines) == 1, ended.err
    assert lines[0].startswith("harness: ")
    return lines[0].removeprefix("harness: ")


def lines_of(run: Path) -> list[dict[str, Any]]:
    """Return all lines of a run file, or of the one in a folder."""
    path = run / "run.jsonl" if run.is_dir() else run
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def results_of(run: Path, target: str | None = None) -> dict[str, dict[str, Any]]:
    """Return the results of a run by case; every case once."""
    found = [line for line in lines_of(run) if line["type"] == "result" and target in (None, line["target"])]
    by_case = {line["case"]: line for line in found}
    assert len(by_case) == len(found)
    return by_case


def without_time(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Leave out the one thing that differs between two equal runs."""
    return {
        case: {key: value for key, value in result.items() if key != "seconds"}
        for case, result in results.items()
    }


def raising(error: BaseException | type[BaseException]) -> Callable[..., Any]:
    """Return a function that ends with an error, whatever it is asked."""

    def raised(*_: object, **__: object) -> None:
        raise error

    return raised


def without_onnxruntime(code: str) -> None:
    """Run code in a process of its own, which must load neither onnx nor onnxruntime."""
    loaded = "assert not {'onnx', 'onnxruntime'} & set(sys.modules), sorted(sys.modules)"
    lines = f"import sys; from pathlib import Path\n{code}\n{loaded}"
    subprocess.run([sys.executable, "-c", lines], check=True)


def planted(folder: Path, *rules: tuple[str, str]) -> str:
    """Return the name of a fake target that follows a script."""
    return f"fake,script={script_of(folder, rules)}"


def script_of(folder: Path, rules: Sequence[tuple[str, str]], startup: str = "ok") -> Path:
    """Write a script for the fake target."""
    path = folder / "script.yaml"
    text = "".join(f'  - {{match: "{query}", do: {how}}}\n' for query, how in rules)
    path.write_text(
        f"startup: {startup}\nrules:\n{text}" if rules else f"startup: {startup}\n", encoding="utf-8"
    )
    return path
