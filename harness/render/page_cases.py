"""The single results that a run's page shows. It holds all results of a run of up to `WHOLE`, and of a larger run
those that are wrong or unexpected. All results of each operator then lie in a file beside the page, which loads it
on demand (`data.js`). Such a slice is a script that sets one text, because a page opened from disk can read
nothing but scripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path

import msgspec

from harness.model.header import Header
from harness.model.result import Result
from harness.model.verdict import DEFECTS
from harness.render.payload import Payload
from harness.render.terminal import repeated
from harness.render.text import visible
from harness.results import memory
from harness.results.columns import Dataset, rows_of
from harness.results.counted import HEADER
from harness.results.runfile import RunReader
from harness.results.tables import Tables

WHOLE = 200_000
"""Results that a page holds at most, if it holds all of its run's."""
PICKED = 50_000
"""Results of a larger run in its page: as many that are not as expected, and as many known defects."""
OF_OPERATOR = 1_000_000
"""Results in a slice."""
FOLDER = "report-cases"
_FILE = re.compile(r"[A-Za-z][\w.]*")
Slices = dict[str, str]
"""The file of each operator, from the page."""


class PageCases:
    """Takes the results of a run as they stream by, after `Tables` has counted them."""

    def __init__(self, run: RunReader) -> None:
        self.run = run.path
        self.number = 0
        self._taken = Counter[bool]()
        self._picked = _payload(run.header)
        self._whole: Payload | None = _payload(run.header)
        self._cells: Counter[tuple[int, int, int]] = Counter()

    @property
    def cut(self) -> bool:
        """Whether the page lacks results."""
        return self._whole is None

    @property
    def held(self) -> Payload:
        """What the page holds."""
        return self._picked if self._whole is None else self._whole

    def add(self, result: Result, kind: int, state: int, number: int) -> None:
        """Take one result with the numbers of its kind and state, as `Tables.add` returns them; it stands for `number`
        that are counted alike."""
        self.number += number
        if self.number > WHOLE:
            self._whole = None
        said = note(result)
        if self._whole is not None:
            self._whole.add(result, kind, state, said)
        if (result.fails or result.reading in DEFECTS) and self._taken[result.fails] < PICKED:
            self._taken[result.fails] += 1
            self._picked.add(result, kind, state, said)
        self._cells[kind, state, self._picked.entry(result)] += number

    def about(self, slices: Slices) -> str:
        """Say what the page lacks, empty where that is nothing."""
        if not self.cut:
            return ""
        most = (
            f", the first {PICKED:,} each of what is new and of what is known"
            if PICKED in self._taken.values()
            else ""
        )
        which = f"This page holds {len(self.held):,} of {self.number:,} results: what is not as expected, wrong, crashed or accepted"
        more = (
            f"Choose an operator to load all of its results, from {FOLDER}/ beside this page"
            if slices
            else "For all of them, write a folder: harness report RUN -o DIR"
        )
        return f"{which}{most}. {more}."

    def encode(self, tables: Tables, slices: Slices) -> str:
        """Return what the page decodes; `tables` counted the same results."""
        held = self.held
        held.add_tensors(self.run.parent / "artifacts")
        if not self.cut:
            return held.encode(tables)
        cells = zip(*self._cells, strict=True)
        columns = dict(zip(("cell_kind", "cell_state", "cell_entry"), cells, strict=True))
        more = {"run": tables.header.run_id, "slices": slices}
        return held.encode(tables, more, **columns, cell_number=self._cells.values())


def note(result: Result) -> str:
    """Say more of what happened."""
    return ", ".join(filter(None, (repeated(result), memory.in_words(result))))


def write_slices(run: Path, folder: Path) -> Slices:
    """Write the results of each operator into a folder beside the page; return their files. Errors: UsageError,
    OSError."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    slices: Slices = {}
    reader = RunReader(run)
    with Dataset(f"{run}: cannot be divided", scanned=True) as data, data.part(reader) as part:
        wanted = f"SELECT operator, row, {part.line} FROM ({part.numbered}) AS results ORDER BY operator, row"
        rows = rows_of(part.sql, wanted)
        for number, (operator, of) in enumerate(groupby(rows, key=itemgetter(0))):
            taken = {name.lower() for name in slices.values()}
            file = f"{FOLDER}/{operator}.js"
            if not _FILE.fullmatch(operator) or file.lower() in taken:
                file = f"{FOLDER}/_{number}.js"
            name = visible(operator)
            slices[name] = file
            results = (reader.result(row + HEADER, line) for _, row, line in islice(of, OF_OPERATOR))
            text = _slice(_header(reader.header, operator), results, run.parent)
            key = msgspec.json.encode(name).decode()
            (folder / file).write_text(f'(globalThis.slices ??= {{}})[{key}] = "{text}";\n', encoding="utf-8")
    return slices


def _header(header: Header, operator: str) -> Header:
    of = {name: each for name, each in header.origins.items() if name.startswith(f"{operator}:")}
    return msgspec.structs.replace(header, origins=of)


def remove_slices(folder: Path) -> None:
    """Remove the slices of an earlier report. Errors: OSError."""
    for file in (folder / FOLDER).glob("*.js"):
        file.unlink()


def _slice(header: Header, results: Iterable[Result], folder: Path) -> str:
    tables, payload = Tables(header, across_targets=False), _payload(header)
    for result in results:
        payload.add(result, *tables.add(result), note(result))
    tables.finish(None)
    payload.add_tensors(folder / "artifacts")
    return payload.encode(tables, {"run": header.run_id})


def _payload(header: Header) -> Payload:
    return Payload(one_target=len(header.targets) == 1)
