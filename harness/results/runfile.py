"""Run files: append-only JSON lines, written as results arrive and readable when cut off.

Line 1 is a `Header`, then follows one `Result` per line, and last an `End`. A run that dies loses at most its
last line, which is then incomplete; the reader omits such a line and says so. Any other damage is an error
that names the line.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from harness.model import compressed as packed
from harness.model.errors import HarnessFault, UsageError, naming
from harness.model.file_lock import claim
from harness.model.header import SCHEMA, End, Header
from harness.model.result import Result
from harness.model.verdict import Outcome
from harness.results import columns

_LINES = 64
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
NAMES = (*(f"run.jsonl{suffix}" for suffix in packed.SUFFIXES), f"run{columns.SUFFIX}")
"""What a run file is called in its folder, the one before the other."""
_REPORTS = {b"<!doctype html": "an HTML page", b"<?xml": "an XML file", b"# ": "a Markdown file"}
"""What begins a file that is taken for a run, and is made of one."""
FREE = "free some space"
"""What to do after a full disk."""


def _create(path: str, flags: int) -> int:
    """Open a file, new or not, as it is: nothing may be cut off before it is claimed."""
    return os.open(path, flags | os.O_CREAT, 0o666)


class RunWriter:
    """Writes a run file in whole lines, as the only one who does."""

    def __init__(
        self,
        path: Path,
        header: Header | None = None,
        *,
        keep: int | None = None,
        after_full: str = FREE,
        whole: bool = False,
    ) -> None:
        """Open `path` for a new run that starts with `header`, or continue it after its first `keep` bytes.

        Raises UsageError where it cannot be written or another process is writing it; `after_full` is what to
        do after a full disk. A `whole` file is deleted if an exception ends its context.
        """
        self.path = path
        self._after_full = after_full
        self._whole = whole
        self._size = keep or 0
        self._lines = ResultLines(lambda lines, _number: self.append(lines))
        with naming(path, "written"):
            self._file: io.FileIO = open(path, "r+b", buffering=0, opener=_create)  # noqa: SIM115 - closed by close()
        if not claim(self._file.fileno()):
            self._file.close()
            raise busy(path)
        with naming(path, "written"):
            if os.fstat(self._file.fileno()).st_size > self._size:
                self._file.truncate(self._size)
            self._file.seek(self._size)
        if header is not None:
            try:
                self.add(header)
                self.flush()
            except (HarnessFault, UnicodeEncodeError):
                self.discard()  # a run without a header is none
                raise

    def add(self, record: Result | Header | End) -> None:
        """Append one line; it is in the hands of the operating system with the next `flush`, after some dozen
        lines at the latest."""
        self._lines.add(record)

    def flush(self) -> None:
        """Hand over all lines; call before waiting for anything."""
        self._lines.flush()

    def append(self, data: bytes) -> None:
        """Write whole lines at once. A full disk leaves whole lines and is an error that says how to go
        on."""
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            whole = data.rfind(b"\n", 0, len(data) - len(view)) + 1
            with contextlib.suppress(OSError):
                self._file.truncate(self._size + whole)
            raise HarnessFault(f"{self.path}: {error.strerror}; {self._after_full}") from error
        self._size += len(data)

    def close(self, end: End | None = None) -> None:
        """Write `end` if the run is complete, and close the file."""
        try:
            if end is not None:
                self.add(end)
            self.flush()
        finally:
            self._file.close()

    def discard(self) -> None:
        """Close the file and delete it."""
        self._file.close()
        with contextlib.suppress(OSError):
            self.path.unlink()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None and self._whole:
            self.discard()
        elif not self._file.closed:
            self.close()


class ResultLines:
    """Makes lines of records and hands them on, some dozen at a time: `hand_on(lines, number)`."""

    def __init__(self, hand_on: Callable[[bytes, int], None]) -> None:
        self._hand_on = hand_on
        self._encode = msgspec.json.Encoder().encode
        self._pending: list[bytes] = []

    def add(self, record: Result | Header | End) -> None:
        """Take one record; it is handed on with the next `flush`, after some dozen at the latest."""
        self._pending.append(self._encode(record))
        if len(self._pending) >= _LINES:
            self.flush()

    def flush(self) -> None:
        """Hand on what there is; call before waiting for anything."""
        if self._pending:
            pending, self._pending = self._pending, []
            self._hand_on(b"\n".join(pending) + b"\n", len(pending))


def _why(error: Exception) -> str:
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


def run_file(path: Path) -> Path:
    """Return the run file in a folder, the plain one before a compressed one and that before columns; a path that
    is no folder is the file itself."""
    if not path.is_dir():
        return path
    names = [path / name for name in NAMES]
    return next((name for name in names if name.exists()), names[0])


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a run file, plain, compressed or as columns. Errors: UsageError that names the file."""
    return columns.lines(path) if columns.there(path) else packed.lines(path)


class RunReader:
    """Reads a run file once, result by result; `end` and `truncated` are known after the last one.

    A result for a target or an expectation that the header does not name, a pass on another provider than the
    target's, a line after the end, and an end that counts other results than there are, are damage.
    """

    def __init__(self, path: Path) -> None:
        """Open a run file, plain, compressed (`packed`) or as columns, or the one in a folder. Errors: UsageError naming
        file and line."""
        self.path = run_file(path)
        self.end: End | None = None
        self.truncated = False
        self.bytes_read = 0
        """Bytes of the header and of the complete results: where a continued run goes on."""
        self._decode = msgspec.json.Decoder(Result).decode
        self._lines = lines(self.path)
        first = next(self._lines, None)
        if first is None:
            raise UsageError(f"{self.path}: the run file is empty")
        self.header = self._header(first)

    def _header(self, line: bytes) -> Header:
        if not line.endswith(b"\n"):
            raise UsageError(
                f"{self.path}:1: the header is cut off: nothing of this run was kept; start a new one"
            )
        try:
            header = msgspec.json.decode(line, type=Header)
        except _UNREADABLE as error:
            what = next(
                (what for begin, what in _REPORTS.items() if line.lstrip().lower().startswith(begin)), ""
            )
            if self.path.suffix == ".yaml":  # whose comments look like Markdown's headings
                what = "a spec or another YAML file"
            if what:
                raise UsageError(
                    f"{self.path}: is {what}, not a run: name its run.jsonl or the folder"
                ) from error
            raise UsageError(f"{self.path}:1: not the header of a run file: {_why(error)}") from error
        if header.schema != SCHEMA:
            raise UsageError(
                f"{self.path}:1: run file schema {header.schema}; this harness reads schema {SCHEMA}: use the harness that wrote it"
            )
        self.bytes_read = len(line)
        return header

    def __iter__(self) -> Iterator[Result]:
        decode = msgspec.json.Decoder(Result | End).decode
        found = Counter[str]()
        for number, line in enumerate(self._lines, start=2):
            if not line.endswith(b"\n"):
                self.truncated = True
                return
            try:
                record = decode(line)
            except _UNREADABLE as error:
                raise self.damaged(number, _why(error)) from error
            if self.end is not None:
                raise self.damaged(number, "a line after the end")
            if isinstance(record, End):
                if why := miscounted(record, found):
                    raise self.damaged(number, why)
                self.end = record
                continue
            self.bytes_read += len(line)
            if why := self._wrong(record):
                raise self.damaged(number, why)
            found[record.outcome.value] += 1
            found[record.verdict.value] += 1
            yield record

    def _wrong(self, result: Result) -> str | None:
        """Report a name that the header lacks, or an id that queries cannot match."""
        if not result.case.startswith(f"{result.operator}@"):
            return f"operator {result.operator[:40]!r} of the case {result.case[:40]!r}"
        target = self.header.targets.get(result.target)
        if target is None:
            return f"target {result.target!r} is not in the header"
        if result.outcome is Outcome.PASS and result.placed_on != target.provider:
            return f"pass on {result.placed_on}, but {result.target} is {target.provider}"
        if isinstance(result.expectation, int) and result.expectation not in self.header.expectations:
            return f"expectation {result.expectation} is not in the header"
        return None

    def result(self, number: int, line: bytes) -> Result:
        """Return the result that one line holds, `number` its place. Errors: UsageError for a damaged one."""
        try:
            found = self._decode(line)
        except _UNREADABLE as error:
            raise self.damaged(number, _why(error)) from error
        if why := self._wrong(found):
            raise self.damaged(number, why)
        return found

    def twice(self, number: int, result: Result) -> UsageError:
        """Return the error for a result that is in the run twice."""
        return self.damaged(number, f"{result.case[:200]!r} on {result.target} is in it twice")

    def damaged(self, number: int, what: str) -> UsageError:
        """Return the error of a line that cannot be read."""
        return UsageError(f"{self.path}:{number}: damaged run file: {what}")


def miscounted(end: End, found: Counter[str]) -> str | None:
    """Say what the end of a run counts that is not in its file: lines are missing, or altered."""
    counted = Counter(end.outcomes) + Counter(end.verdicts)
    for name in sorted({*counted, *found}):
        if counted[name] != found[name]:
            return (
                f"the end counts {counted[name]:,} results that are {name!r}, the file holds {found[name]:,}"
            )
    return None


def rewrite(path: Path, header: Header, keep: Callable[[Result], bool]) -> int:
    """Give a run file another header and only the results to keep, all or nothing; return its bytes, which a
    continued run goes on after.

    Errors: UsageError where another process is writing it, or it cannot be written.
    """
    partial = path.with_name(f".{path.name}.part")
    with naming(path, "written"):
        with open(path, "r+b") as file:
            if not claim(file.fileno()):
                raise busy(path)
            with RunWriter(partial) as writer:
                writer.add(header)
                for result in filter(keep, RunReader(path)):
                    writer.add(result)
        size = partial.stat().st_size
        os.replace(partial, path)
    return size


def busy(path: Path) -> UsageError:
    """Return the error for a run file that another process is writing."""
    return UsageError(
        f"{path}: another harness is writing it: wait for its end, or choose another folder with -o"
    )
