"""An expectations file that is edited by entries: every byte that belongs to no edited entry stays as it is.

Entries are found by the lines that `specs.source` knows of them, and edited as lines; writing the whole file again, even by a round-trip
YAML writer, would reflow lists and lines that nobody touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from harness.errors import UsageError
from harness.expectations import TODO
from harness.records import Outcome
from harness.specs.source import Source

WIDTH = 140


class NewEntry(NamedTuple):
    """An entry to add, but for what only a reviewer can say."""

    match: tuple[str, ...]
    unless: tuple[str, ...]
    when: tuple[tuple[str, str], ...]
    expect: Outcome


class EntryFile:
    """The lines of a file, and edits to it; `source` is None for a file that is not there yet."""

    def __init__(self, path: Path, source: Source | None) -> None:
        self.path = path
        self.before = path.read_bytes().decode("utf-8") if source is not None else ""
        self._lines: list[str | None] = list(self.before.splitlines(keepends=True))
        self._source = source
        self._added: list[NewEntry] = []
        first = 0 if source is None or not source.tree else source.lines[(0,)] - 1
        line = self._lines[first] if self._lines else ""
        self._indent = (line or "")[: len(line or "") - len((line or "").lstrip())] if source is not None and source.tree else ""

    def drop(self, position: int) -> None:
        """Take out an entry; comments above and below it stay."""
        start, stop = self._span(position)
        if stop <= start or (self._source is not None and self._source.lines.get((position + 1,)) == start + 1):
            raise UsageError(f"{self.path}:{start + 1}: entries are edited by lines; begin each of them on a line of its own")
        self._lines[start:stop] = [None] * (stop - start)

    def set_queries(self, position: int, key: str, queries: Sequence[str]) -> None:
        """Write the queries of `match` or `unless` anew; `unless` comes after `match` where it is new."""
        assert self._source is not None
        start, stop = self._region(position, key)
        indent = self._indent + ("- " if start == self._span(position)[0] else "  ")
        region = [line for line in self._lines[start:stop] if line is not None]
        comments = [line for line in region if line.strip().startswith("#")]
        written = _queries(key, queries, indent) if queries else ""
        if start == stop:  # the key is new: it goes before the next one
            before = self._lines[start]
            self._lines[start] = written + (before or "")
            return
        self._lines[start:stop] = [written + "".join(comments), *[None] * (stop - start - 1)]

    def add(self, entry: NewEntry) -> None:
        """Add an entry at the end."""
        self._added.append(entry)

    def text(self) -> str:
        """Return the file as edited; a list without entries is written as `[]`."""
        kept = "".join(line for line in self._lines if line is not None)
        if self._source is None or not self._source.tree:
            kept = "".join(line for line in kept.splitlines(keepends=True) if line.strip() != "[]")
        if not self._added and self._entries_left() == 0:
            kept = kept.rstrip("\n") + ("\n" if kept.strip() else "") + "[]\n"
        if kept and not kept.endswith("\n"):
            kept += "\n"
        return kept + "".join(_entry(entry, self._indent) for entry in self._added)

    def _entries_left(self) -> int:
        if self._source is None:
            return 0
        return sum(self._lines[self._source.lines[(position,)] - 1] is not None for position in range(len(self._source.tree)))

    def _span(self, position: int) -> tuple[int, int]:
        """Return the lines of an entry, from 0, without comments and blank lines after it."""
        assert self._source is not None
        start = self._source.lines[(position,)] - 1
        stop = self._source.lines.get((position + 1,), len(self._lines) + 1) - 1
        return start, self._trimmed(start, stop)

    def _region(self, position: int, key: str) -> tuple[int, int]:
        """Return the lines of a key with its value; an empty region where the key would go."""
        assert self._source is not None
        _, stop = self._span(position)
        begins = sorted(line - 1 for path, line in self._source.lines.items() if len(path) == 2 and path[0] == position)
        if len(set(begins)) < len(begins):
            raise UsageError(f"{self._source.where(position)}: an entry is edited by lines; write each of its keys on a line of its own")
        line = self._source.lines.get((position, key))
        if line is None:
            after = [begin for begin in begins if begin > self._source.lines[(position, "match")] - 1]
            return (after[0], after[0]) if after else (stop, stop)
        return line - 1, self._trimmed(line - 1, min([begin for begin in begins if begin > line - 1], default=stop))

    def _trimmed(self, start: int, stop: int) -> int:
        while stop > start + 1 and (not (self._lines[stop - 1] or "").strip() or (self._lines[stop - 1] or "").lstrip().startswith("#")):
            stop -= 1
        return stop


def _queries(key: str, queries: Sequence[str], indent: str) -> str:
    quoted = [f'"{query}"' for query in queries]
    if len(quoted) == 1:
        return f"{indent}{key}: {quoted[0]}\n"
    flow = f"{indent}{key}: [{', '.join(quoted)}]\n"
    inner = " " * (len(indent) + 2)
    return flow if len(flow) <= WIDTH else f"{indent}{key}:\n" + "".join(f"{inner}- {query}\n" for query in quoted)


def _entry(entry: NewEntry, at: str) -> str:
    lines = _queries("match", entry.match, f"{at}- ")
    if entry.unless:
        lines += _queries("unless", entry.unless, f"{at}  ")
    conditions = ", ".join(f"{key}: {_plain(value)}" for key, value in entry.when)
    rest = (f"when: {{{conditions}}}", f"expect: {entry.expect.value}", f"reason: {TODO}", f"link: {TODO}")
    return lines + "".join(f"{at}  {line}\n" for line in rest)


def _plain(value: str) -> str:
    return value if value.isidentifier() else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
