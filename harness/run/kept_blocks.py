"""Keeps what the cases of a block came to in the user's cache: requests as they cross the pipe, digests of the answers,
results. Where a provider answers the same to the bit, a later run makes neither case nor graph, and asks no oracle.

A file is named after everything that decides a result: code, releases, processor, seed, target, specs, expectations,
cases. An answer that differs is judged as if nothing were kept, and so is a random part of the rest; where most answers of
a block differ, its file is removed, and the next run keeps it anew. Unexpected results, outputs that do not conform and
results of unspecified cases are not kept. A file that is absent, damaged or cannot be written costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from hashlib import blake2b, sha256
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET

from harness.compile.prepare import by_graph
from harness.model.cache_folder import cache_folder
from harness.model.case import Case, Validity
from harness.model.caseid import operator_of
from harness.model.errors import HarnessFault
from harness.model.result import Result, rounded
from harness.model.verdict import Verdict, conforms
from harness.operators import COLLECTED, OPERATORS, VARIABLE
from harness.operators.base import Call
from harness.specs.cache import digests, kept, kept_plans
from harness.specs.expectations.target_expectations import TargetExpectations
from harness.specs.selection import CaseBlock, ChosenCases, Selection
from harness.targets.batches import FAKE, sent_of
from harness.targets.execution import Execution, Graph, GraphCases, KeptCase, Prepared

_ROOMS = "compile", "run", "targets", "worker"
"""What results follow from besides the rooms of plans, whose digest is at hand."""
_LONGEST = 24 << 10
"""Bytes of the inputs of a case above which these are made again."""
_ANEW = 256
"""One of so many cases is judged anew."""
_SPACE = 400 << 20
"""Bytes of all files together."""
_NO_CASE = Prepared(Case("", "", 0, {}, ()), Call({}, {}), ())
_FOLDER = "blocks"


class _Group(msgspec.Struct, array_like=True):
    """Neighbouring cases. Of those that can be sent as they are `graph` is the graph; without, they are made again."""

    graph: Graph | None
    cases: list[KeptCase]


class _Opened:
    """A block whose cases are executed for the first time: where it will be kept, its groups as they are made, and the
    number of its cases without a result."""

    def __init__(self, path: Path, left: int) -> None:
        self.path = path
        self.groups: list[_Group] = []
        self.left = left
        if not left:
            self._write()

    def done(self) -> None:
        """Count a result; with the last one the block is written."""
        self.left -= 1
        if not self.left:
            self._write()

    def _write(self) -> None:
        for group in self.groups:
            if any(case.result is None or case.sent is None for case in group.cases):
                group.graph = None
                for case in group.cases:
                    case.sent = None
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            kept.put(self.path, zlib.compress(msgspec.msgpack.encode(self.groups), 1))


class _Reread:
    """A block that was kept."""

    def __init__(self, path: Path, block: CaseBlock, groups: Sequence[_Group]) -> None:
        self.groups = groups
        self._path = path
        self._pieces = block.pieces
        self._made: dict[int, list[Case]] = {}
        self._differing = 0

    def case(self, record: KeptCase) -> Case:
        """Make a case of the block."""
        if record.piece not in self._made:
            self._made[record.piece] = list(self._pieces[record.piece].cases())
        return self._made[record.piece][record.position]

    def differs(self) -> None:
        """Count an answer that is not the kept one; if most are, the block is to be kept anew."""
        self._differing += 1
        if 2 * self._differing > sum(bool(case.digest) for group in self.groups for case in group.cases):
            with contextlib.suppress(OSError):
                self._path.unlink()


class _Place(NamedTuple):
    """A case that is being executed: what holds its id, its record, and the block that is kept with it."""

    prepared: Prepared
    case: KeptCase
    block: _Opened | _Reread


class KeptBlocks:
    """The blocks of one target in one process; without a `selection` none is kept. `refused` makes the result of a case
    that the provider's API cannot express, and `inexpressible` holds these results."""

    def __init__(
        self,
        selection: Selection | ChosenCases | None,
        known: TargetExpectations,
        seed: int,
        refused: Callable[[Case, str], Result],
    ) -> None:
        self._provider = known.info.provider
        own = self._provider == FAKE or bool(os.environ.get(VARIABLE))
        self._selection = selection if isinstance(selection, Selection) and not own else None
        self._known = known
        self._seed = seed
        self._refused = refused
        self._operators: dict[str, bytes] = {}
        self._places: dict[int, _Place] = {}
        self._anew = random.randrange(_ANEW)
        self._number = 0
        self.inexpressible: list[Result] = []

    def groups(
        self, block: CaseBlock, left: Callable[[Iterable[Case]], Iterable[Case]]
    ) -> Iterator[GraphCases]:
        """Yield the cases of a block that are `left` to execute, as they are kept or as they are made."""
        path = self._path(block)
        if path is not None and (groups := read(path)) is not None:
            yield from self._again(_Reread(path, block, groups))
            return
        records = {
            id(case): (case, KeptCase(piece, position))
            for piece, each in enumerate(block.pieces)
            for position, case in enumerate(each.cases())
            if block.chosen is None or block.chosen(case)
        }
        opened = None if path is None else _Opened(path, len(records))
        yield from self._made(left(case for case, _ in records.values()), records, opened)

    def _again(self, block: _Reread) -> Iterator[GraphCases]:
        """Yield what is kept of a block, in the order in which it was executed."""
        for whole, alike in groupby(block.groups, lambda group: group.graph is not None):
            if whole:
                for group in alike:
                    assert group.graph is not None
                    yield GraphCases(
                        _plain(group.graph), [self._expecting(_NO_CASE, case, block) for case in group.cases]
                    )
                continue
            cases = [case for group in alike for case in group.cases]
            self.inexpressible += [case.result for case in cases if case.result and not case.digest]
            made = [(block.case(case), case) for case in cases if case.digest or case.result is None]
            records = {id(case): (case, record) for case, record in made}
            yield from self._made((case for case, _ in made), records, block)

    def _expecting(self, prepared: Prepared, case: KeptCase, block: _Reread) -> Prepared:
        """Return a case with what its answer is expected to be, which is judged anew where it says nothing."""
        self._number += 1
        asked = case
        if self._number % _ANEW == self._anew:
            asked = copy(case)
            asked.digest = ""
        prepared = prepared._replace(kept=asked)
        self._places[id(prepared)] = _Place(prepared, case, block)
        return prepared

    def _made(
        self,
        cases: Iterable[Case],
        records: Mapping[int, tuple[Case, KeptCase]],
        block: _Opened | _Reread | None,
    ) -> Iterator[GraphCases]:
        """Yield the graphs of cases; `records` are by the id of the case."""

        def refuse(case: Case, why: str) -> None:
            result = self._refused(case, why)
            self.inexpressible.append(result)
            if isinstance(block, _Opened):
                _, record = records[id(case)]
                record.result = result
                block.groups.append(_Group(None, [record]))
                block.done()

        for graph, made in by_graph(cases, self._seed, self._provider, refuse):
            listed = [records[id(prepared.case)][1] for prepared in made]
            if isinstance(block, _Opened):
                block.groups.append(_Group(graph, listed))
                for prepared, record in zip(made, listed, strict=True):
                    self._places[id(prepared)] = _Place(prepared, record, block)
            elif block is not None:
                made = [
                    prepared if record.result is None else self._expecting(prepared, record, block)
                    for prepared, record in zip(made, listed, strict=True)
                ]
            yield GraphCases(graph, made)

    def result(self, prepared: Prepared, execution: Execution) -> Result | None:
        """Return the kept result of a case that is answered as it was; None where it is to be judged."""
        if execution.outputs is not None or execution.error is not None:
            return None
        case = self._places.pop(id(prepared)).case
        assert case.result is not None
        result, number = case.result, case.result.expectation
        if case.entries:
            of_operator = self._known.of_operator(result.operator)
            positions = [of_operator[each] for each in case.entries]
            self._known.count(result.case, positions, conforms=conforms(result.validity, result.outcome))
            if number is not UNSET:
                number = self._known.numbers[of_operator[number]]
        return msgspec.structs.replace(result, seconds=rounded(execution.seconds), expectation=number)

    def made(self, prepared: Prepared, graph: Graph) -> tuple[Prepared, Graph]:
        """Return a case and its graph as they are made of a spec. Errors: HarnessFault where what was sent is of another
        case."""
        if prepared.kept is None:
            return prepared, graph
        place, again = self._places.pop(id(prepared)), graph
        found = prepared._replace(kept=None)
        if prepared.kept.sent is not None:
            assert isinstance(place.block, _Reread)
            case = place.block.case(place.case)
            ((again, (found,)),) = by_graph([case], self._seed, self._provider)
            if again != graph or sent_of(again, found) != prepared.kept.sent:
                raise self._fault(case.id)
        self._places[id(found)] = _Place(found, place.case, place.block)
        return found, again

    def judged(self, prepared: Prepared, graph: Graph, execution: Execution, result: Result | None) -> None:
        """Keep a result that follows from the answer alone; None stands for one that does not. Errors: HarnessFault where
        another one is kept of the same answer."""
        place = self._places.pop(id(prepared), None)
        if place is None:
            return
        case = KeptCase(place.case.piece, place.case.position)
        if result is not None and _follows(result, execution):
            of_operator, number = self._known.of_operator(result.operator), result.expectation
            if number is not UNSET:
                number = of_operator.index(self._known.numbers.index(number))
            case.digest = execution.digest
            case.result = msgspec.structs.replace(result, seconds=0.0, expectation=number)
            case.entries = tuple(map(of_operator.index, self._known.counted))
        before, block = place.case, place.block
        if isinstance(block, _Opened):
            sent = sent_of(graph, prepared)
            before.digest, before.result, before.entries = case.digest, case.result, case.entries
            before.sent = sent if len(sent.payload) <= _LONGEST else None
            block.done()
        elif before.digest != execution.digest:
            block.differs()
        elif (_decided(case.result), case.entries) != (_decided(before.result), before.entries):
            raise self._fault(prepared.case.id)

    def _fault(self, case_id: str) -> HarnessFault:
        folder = cache_folder(_FOLDER)
        return HarnessFault(f"{case_id}: what is kept of this case is of another: delete {folder}")

    def _path(self, block: CaseBlock) -> Path | None:
        """Return where a block is kept; None where it depends on more than files."""
        if self._selection is None:
            return None
        total = blake2b(self._start, digest_size=20)
        operators: dict[str, None] = {}
        for piece in block.pieces:
            name = operator_of(piece.name)
            operators[name] = None
            total.update(f"{piece.name} {piece.most}\0".encode("utf-8", "surrogatepass"))
            if piece.most == 1 and name in self._foreign:  # whose elements may be in files beside the spec
                total.update(pickle.dumps(list(piece.cases())))
        if block.chosen is not None:
            total.update(repr([query.text for query in self._selection.queries]).encode())
        for name in operators:
            if not (decided := self._operator(name)):
                return None
            total.update(decided)
        return cache_folder(_FOLDER) / f"{total.hexdigest()}.block"

    @cached_property
    def _start(self) -> bytes:
        """A digest of what all blocks depend on, apart from what a device says of itself that is another each time."""
        features = np.show_config(mode="dicts").get("SIMD Extensions")
        code = digests.code(*kept.ROOMS) + digests.code(*_ROOMS)
        info = msgspec.structs.replace(self._known.info, luid=None, device_metadata={})
        told = msgspec.json.encode((self._known.target, info, self._seed, features))
        return sha256(code + told).digest()

    @cached_property
    def _foreign(self) -> frozenset[str]:
        """The operators with specs that are not the harness's own."""
        assert self._selection is not None
        return frozenset(spec.model.operator for spec in self._selection.plan.specs if not spec.built_in)

    def _operator(self, name: str) -> bytes:
        """Return a digest of an operator's specs and of the expectations for it; empty where the operator is one that no
        file of the harness defines."""
        if name not in self._operators:
            assert self._selection is not None
            specs = [spec for spec in self._selection.plan.specs if spec.model.operator == name]
            own = all(
                spec.built_in if spec.graph is not None else COLLECTED.get(name) is OPERATORS[name]
                for spec in specs
            )
            entries = [self._known.entries[each] for each in self._known.of_operator(name)]
            told = repr([(each.entry, each.queries, each.exceptions) for each in entries]).encode()
            found = sha256(told + b"".join(map(kept_plans.digest, specs))).digest() if own else b""
            self._operators[name] = found
        return self._operators[name]


def _follows(result: Result, execution: Execution) -> bool:
    """Say whether a result is the same whenever the answer is: nothing was written beside it, and nothing ran again."""
    return (
        execution.digest != ""
        and result.verdict is Verdict.EXPECTED
        and result.validity is not Validity.UNSPECIFIED
        and (execution.outputs is None or conforms(result.validity, result.outcome))
    )


def _decided(result: Result | None) -> Result | None:
    """Return a result without its accuracy, whose last digits an order of summation can decide."""
    return None if result is None else msgspec.structs.replace(result, accuracy=UNSET)


def _plain(graph: Graph) -> Graph:
    """Return a graph that was decoded, with tuples for what its deployment lists."""
    return graph._replace(deployed=_tuples(graph.deployed)) if graph.deployed else graph


def _tuples(listed: Any) -> Any:
    return tuple(map(_tuples, listed)) if isinstance(listed, list | tuple) else listed


def read(path: Path) -> list[_Group] | None:
    """Return the groups of a kept block; None where the file is absent or damaged."""
    data = kept.read(path)
    with contextlib.suppress(OSError, zlib.error, msgspec.MsgspecError):
        if data is not None:
            found: list[_Group] = _decode(zlib.decompress(data))
            with contextlib.suppress(OSError):
                os.utime(path)  # what is used stays
            return found
    return None


_decode = msgspec.msgpack.Decoder(list[_Group]).decode


def make_room(since: float) -> None:
    """Where the blocks of all runs take too much space, remove those not used `since` a time, and then the last ones
    that were: the first ones of a large run stay for the next."""
    found: list[tuple[float, int, str]] = []
    with contextlib.suppress(OSError):
        for each in os.scandir(cache_folder(_FOLDER)):
            with contextlib.suppress(OSError):
                state = each.stat()
                found.append((state.st_mtime, state.st_size, each.path))
    found.sort()
    unused = [each for each in found if each[0] < since]
    total = sum(size for _, size, _ in found)
    for _, size, path in (*unused, *reversed(found[len(unused) :])):
        if total <= _SPACE:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= size
