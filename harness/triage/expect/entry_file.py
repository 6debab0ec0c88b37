"""Edits an expectations file by entries: every byte outside the edited entries stays as it is.

The lines that `specs.source` records locate the entries, which are edited as lines. Writing the whole file
again, even by a round-trip YAML writer, would reflow lists and lines that nobody touched.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.model.errors import SpecError, UsageError
from harness.model.verdict import Outcome
from harness.specs.expectations.expectation_entry import TODO
from harness.specs.reading.source import Source, label_of, parse, shown

WIDTH = 140
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'')
_COMMENT = re.compile(r"(?:^|\s)#")
_REMEDY = "write a list of entries, each on lines of its own, without '...' at the end"


class NewEntry(NamedTuple):
    """An entry to add, but for what only a reviewer can say."""

    match: tuple[str, ...]
    unless: tuple[str, ...]
    when: tuple[tuple[str, str], ...]
    expect: Outcome
    message: str = ""


class EntryFile:
    """The lines of a file, and edits to it; one that is not there yet has none."""

    def __init__(self, source: Source) -> None:
        self.path = source.path
        self.before = self.path.read_bytes().decode("utf-8") if self.path.exists() else ""
        self._lines: list[str | None] = list(self.before.splitlines(keepends=True))
        self._source = source
        self._added: list[NewEntry] = []
        self._dropped: dict[int, tuple[int, int]] = {}
        self._queries: dict[int, dict[str, tuple[str, ...]]] = {}
        first = self.before.splitlines()[source.lines[(0,)] - 1] if source.tree else ""
        self._indent = first[: len(first) - len(first.lstrip())]

    def drop(self, position: int) -> None:
        """Take out an entry; comments above and below it stay."""
        start, stop = self._span(position)
        if stop <= start or self._source.lines.get((position + 1,)) == start + 1:
            raise UsageError(
                f"{self.path}:{start + 1}: entries are edited by lines; begin each of them on a line of its own"
            )
        self._lines[start:stop] = [None] * (stop - start)
        self._dropped[position] = start, stop

    def set_queries(self, position: int, key: str, queries: Sequence[str]) -> None:
        """Write the queries of `match` or `unless` anew; `unless` comes after `match` where it is new."""
        start, stop = self._region(position, key)
        indent = self._indent + ("- " if start == self._span(position)[0] else "  ")
        region = [line for line in self._lines[start:stop] if line is not None]
        self._queries.setdefault(position, {})[key] = tuple(queries)
        comments = [line for line in region if line.strip().startswith("#")]
        written = _queries(key, queries, indent) if queries else ""
        if len(region) == 1 and (beside := _COMMENT.search(_QUOTED.sub(_blank, region[0]))) and written:
            first, line_end, rest = written.partition("\n")
            written = f"{first}  {region[0][beside.start() :].strip()}{line_end}{rest}"
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
        if not self._source.tree:
            kept = "".join(line for line in kept.splitlines(keepends=True) if line.strip() != "[]")
        if not self._added and self._entries_left() == 0:
            kept = kept.rstrip("\n") + ("\n" if kept.strip() else "") + "[]\n"
        if kept and not kept.endswith("\n"):
            kept += "\n"
        return kept + "".join(_entry(entry, self._indent) for entry in self._added)

    def checked(self) -> str:
        """Return the file as edited, read back: the entries are those that were meant, and no comment is
        lost. Errors: UsageError."""
        text = self.text()
        label = label_of(self.path)
        try:
            found = parse(text.encode(), path=self.path, label=label).tree
        except SpecError as error:
            raise UsageError(
                f"{label}: cannot be edited as it is written ({error.problems[0]}); nothing was written: {_REMEDY}"
            ) from error
        if not isinstance(found, tuple) or list(map(_plainly, found)) != self._meant():
            raise UsageError(f"{label}: cannot be edited as it is written; nothing was written: {_REMEDY}")
        lost = self._comments_to_keep() - Counter(_comments(text.splitlines()))
        if lost:
            comment = shown(next(iter(lost)))
            raise UsageError(
                f"{label}: the comment {comment} would be lost; nothing was written: move it to a line of its own above its entry"
            )
        return text

    def _meant(self) -> list[object]:
        """Return what the edited file is to hold."""
        kept = [
            _plainly({**entry, **self._queries.get(position, {})})
            for position, entry in enumerate(self._source.tree)
            if position not in self._dropped
        ]
        return [*kept, *(_plainly(_as_read(entry)) for entry in self._added)]

    def _comments_to_keep(self) -> Counter[str]:
        """Count the comments of the file, but for those within entries that were dropped."""
        lines: list[str] = self.before.splitlines(keepends=True)
        for start, stop in self._dropped.values():
            lines[start:stop] = [""] * (stop - start)
        return Counter(_comments(lines))

    def _entries_left(self) -> int:
        return sum(
            self._lines[self._source.lines[(position,)] - 1] is not None
            for position in range(len(self._source.tree))
        )

    def _span(self, position: int) -> tuple[int, int]:
        """Return the lines of an entry, from 0, without comments and blank lines after it."""
        start = self._source.lines[(position,)] - 1
        stop = self._source.lines.get((position + 1,), len(self._lines) + 1) - 1
        return start, self._trimmed(start, stop)

    def _region(self, position: int, key: str) -> tuple[int, int]:
        """Return the lines of a key with its value; an empty region where the key would go."""
        _, stop = self._span(position)
        begins = sorted(
            line - 1 for path, line in self._source.lines.items() if len(path) == 2 and path[0] == position
        )
        if len(set(begins)) < len(begins):
            raise UsageError(
                f"{self._source.where(position)}: an entry is edited by lines; write each of its keys on a line of its own"
            )
        line = self._source.lines.get((position, key))
        if line is None:
            after = [begin for begin in begins if begin > self._source.lines[(position, "match")] - 1]
            return (after[0], after[0]) if after else (stop, stop)
        return line - 1, self._trimmed(
            line - 1, min([begin for begin in begins if begin > line - 1], default=stop)
        )

    def _trimmed(self, start: int, stop: int) -> int:
        while stop > start + 1 and (
            not (self._lines[stop - 1] or "").strip()
            or (self._lines[stop - 1] or "").lstrip().startswith("#")
        ):
            stop -= 1
        return stop


def _blank(found: re.Match[str]) -> str:
    return "_" * len(found[0])


def _comments(lines: Iterable[str]) -> Iterator[str]:
    """Yield the comments of lines; what looks like one within a text of several lines is taken for one
    too."""
    for line in lines:
        if found := _COMMENT.search(_QUOTED.sub(_blank, line)):
            yield line[found.start() :].strip()


def _as_read(entry: NewEntry) -> dict[str, object]:
    """Return a new entry as reading it gives it."""
    unless = {"unless": entry.unless} if entry.unless else {}
    message = {"message": entry.message} if entry.message else {}
    rest = {"when": dict(entry.when), "expect": entry.expect.value, **message}
    return {"match": entry.match, **unless, **rest, **dict.fromkeys(asked(entry), TODO)}


def asked(entry: NewEntry) -> tuple[str, ...]:
    """Return the fields that a reviewer has to fill in."""
    gives = entry.expect is Outcome.MISMATCH and not entry.message
    return (*(("gives",) if gives else ()), "reason", "link")


def _plainly(entry: object) -> object:
    """Write an entry so that a query and a list of one are the same; no `unless` is an empty one."""
    if not isinstance(entry, dict):
        return entry
    both = {
        key: (entry[key],) if isinstance(entry.get(key), str) else tuple(entry.get(key) or ())
        for key in ("match", "unless")
    }
    return {**entry, **both}


def _queries(key: str, queries: Sequence[str], indent: str) -> str:
    quoted = [f'"{query}"' for query in queries]
    if len(quoted) == 1:
        return f"{indent}{key}: {quoted[0]}\n"
    flow = f"{indent}{key}: [{', '.join(quoted)}]\n"
    inner = " " * (len(indent) + 2)
    if len(flow) <= WIDTH:
        return flow
    return f"{indent}{key}:\n" + "".join(f"{inner}- {query}\n" for query in quoted)


def _entry(entry: NewEntry, at: str) -> str:
    lines = _queries("match", entry.match, f"{at}- ")
    if entry.unless:
        lines += _queries("unless", entry.unless, f"{at}  ")
    conditions = ", ".join(f"{key}: {_plain(value)}" for key, value in entry.when)
    message = (f"message: {_plain(entry.message)}",) if entry.message else ()
    unfilled = (f"{key}: {TODO}" for key in asked(entry))
    rest = (f"when: {{{conditions}}}", f"expect: {entry.expect.value}", *message, *unfilled)
    return lines + "".join(f"{at}  {line}\n" for line in rest)


def _plain(value: str) -> str:
    return value if value.isidentifier() else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
