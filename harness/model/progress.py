"""Shows progress of runs and installations on stderr: a bar with the time left on a terminal, plain lines
elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from harness.model.result import Result

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn

PLANNING, RECORDING, FUSING, WHOLE = "expanding specs", "recording", "transformers", "the whole model on "
PLANTING = "other outputs"
"""Steps that are no run of cases; the last stands before a target's name."""
_UNITS = {PLANNING: "specs", RECORDING: "nodes", FUSING: "graphs", PLANTING: "entries"}
"""What they count."""
_PLAIN_EVERY = 5.0
_PLAIN_AFTER = 1.0
"""Seconds that lie at least between two lines of a run's progress, of which there is none before `_PLAIN_EVERY`."""
_EXPECTED = b'"verdict":"expected"'
"""Most results hold this, and need not be decoded."""
_decode = msgspec.json.Decoder(Result).decode
_ESTIMATE_AFTER = 2.0
"""Seconds after which the pace of a step says something about its end."""


class Progress:
    """Shows how far each target is, and how many results are unexpected so far; use as a context manager.

    Elsewhere than on a terminal it prints a line each ten percent, those of a quick run left out.
    """

    def __init__(self, *, baseline: bool = False) -> None:
        """`baseline` says that an earlier run judges, so that improvements are not unexpected."""
        self._terminal = sys.stderr.isatty()
        self._baseline = baseline
        self._opened = self._began = self._last = time.monotonic()
        self._step = ("", 0)
        self._bar: Bar | None = None
        self._tasks: dict[str, int] = {}
        self._unexpected: dict[str, int] = {}

    def watch(self, lines: bytes) -> None:
        """Take lines that were written to the run file: whole results of one target."""
        for line in lines.splitlines():
            if line and _EXPECTED not in line:
                result = _decode(line)
                if result.unexpected(baseline=self._baseline):
                    self._unexpected[result.target] = self._unexpected.get(result.target, 0) + 1

    def update(self, target: str, done: int, total: int) -> None:
        """Tell that `done` of `total` cases of a target are done, or of a step before them."""
        if self._terminal:
            self._show(target, done, total)
            return
        now = time.monotonic()
        if target != self._step[0]:
            self._step, self._began, self._last = (target, 0), now, now
        tenth = 10 * done // total if total else 10
        if tenth > self._step[1] and now - self._last >= _PLAIN_AFTER and now - self._opened >= _PLAIN_EVERY:
            self._step, self._last = (target, tenth), now
            left = _left(ProgressStep(target, done, total, ""), now - self._began)
            print(
                f"{target}: {100 * done // total} %, {done:,} of {total:,} {self._unit(target)}{left}",
                file=sys.stderr,
                flush=True,
            )

    def _unit(self, target: str) -> str:
        counted = "runs" if target.startswith(WHOLE) else _UNITS.get(target)
        return counted or f"cases, {self._unexpected.get(target, 0):,} unexpected"

    def _show(self, target: str, done: int, total: int) -> None:
        if self._bar is None:
            from rich.progress import MofNCompleteColumn, TaskProgressColumn, TextColumn

            self._bar = _bar(TaskProgressColumn(), MofNCompleteColumn(), TextColumn("{task.fields[unit]}"))
        if target not in self._tasks:
            self._tasks[target] = self._bar.add_task(target, total=total, unit="")
        task = self._bar.task_ids[list(self._tasks).index(target)]
        self._bar.update(task, completed=done, unit=self._unit(target))

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def telling(step: str, *, when: bool = True) -> Iterator[Callable[[int, int], None]]:
    """Show how far a step is, as the function that it gives is called; nothing, unless `when`."""
    with Progress() as progress:
        yield partial(progress.update, step) if when else lambda _done, _total: None


class ProgressStep(NamedTuple):
    """How far one step of an installation is: `done` of `total`, counted in `unit`."""

    what: str
    done: int
    total: int
    unit: str

    def __str__(self) -> str:
        return f"{self.what}: {self.done:,} of {self.total:,} {self.unit}"


class Steps:
    """Shows the messages and steps of an installation; within `with`, on a terminal, as one line that is
    written over.

    Elsewhere a message is a line, and a step one every few seconds and one at its end.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._bar: Bar | None = None
        self._what = ""
        self._began = self._last = 0.0

    def __call__(self, step: str | ProgressStep) -> None:
        """Show a message, or how far a step is."""
        now = time.monotonic()
        what = step.what if isinstance(step, ProgressStep) else step
        begins = what != self._what
        if begins:
            self._what, self._began, self._last = what, now, now
        if self._bar is not None:
            self._show(self._bar, step, begins)
        elif (
            not isinstance(step, ProgressStep)
            or now - self._last >= _PLAIN_EVERY
            or (step.done >= step.total and not begins)
        ):
            self._last = now
            left = _left(step, now - self._began) if isinstance(step, ProgressStep) else ""
            print(f"{self._name}: {step}{left}", file=sys.stderr, flush=True)

    def _show(self, bar: Bar, step: str | ProgressStep, begins: bool) -> None:
        if begins:
            for task in bar.task_ids:
                bar.remove_task(task)
        if not bar.task_ids:
            bar.add_task(f"{self._name}: {self._what}", total=None, unit="")
        if isinstance(step, ProgressStep):
            unit = f"{step.done:,}/{step.total:,} {step.unit}"
            bar.update(bar.task_ids[0], completed=step.done, total=step.total, unit=unit)

    def __enter__(self) -> Steps:
        if sys.stderr.isatty():
            from rich.progress import TextColumn

            self._bar = _bar(TextColumn("{task.fields[unit]}"))
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _left(step: ProgressStep, seconds: float) -> str:
    """Say how long a step still takes at the pace that it had so far, or nothing as long as that is a
    guess."""
    if seconds < _ESTIMATE_AFTER or not 0 < step.done < step.total:
        return ""
    left = round(seconds / step.done * (step.total - step.done))
    return f", about {left // 60} min left" if left >= 120 else f", about {left} s left"


def _bar(*columns: ProgressColumn) -> Bar:
    """Start a progress bar on stderr with a label, the share done, the elapsed and the remaining time; it
    disappears when stopped."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    shown = (
        TextColumn("{task.description}"),
        BarColumn(12),
        *columns,
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    bar = Bar(*shown, console=Console(stderr=True), transient=True)
    bar.start()
    return bar
