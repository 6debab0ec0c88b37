"""Progress of a run on stderr: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_PLAIN_EVERY = 5.0


class Progress:
    """Shows how far each target is; use as a context manager."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last = time.monotonic()
        self._bar: object | None = None
        self._tasks: dict[str, int] = {}

    def update(self, target: str, done: int, total: int) -> None:
        """Tell that `done` of `total` cases of a target are done."""
        if self._terminal:
            self._show(target, done, total)
        elif time.monotonic() - self._last >= _PLAIN_EVERY:
            self._last = time.monotonic()
            print(f"{target}: {done:,} of {total:,} cases", file=sys.stderr, flush=True)

    def _show(self, target: str, done: int, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        if self._bar is None:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
        assert isinstance(self._bar, Bar)
        if target not in self._tasks:
            self._tasks[target] = self._bar.add_task(target, total=total)
        self._bar.update(self._bar.task_ids[list(self._tasks).index(target)], completed=done)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        stop = getattr(self._bar, "stop", None)
        if stop is not None:
            stop()
