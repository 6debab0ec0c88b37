"""Keeps what the cases of a block came to in the user's cache: requests as they cross the pipe, digests of the answers,
results. Where a provider answers the same to the bit, a later run makes neither case nor graph, and asks no oracle.

A file is named after everything that decides a result: code, releases, processor, seed, target, specs, expectations,
cases. An answer that differs is judged as if nothing were kept, and so is a random part of the rest; where most answers of
a block differ, its file is removed, and the next run keeps it anew. Unexpected results are not kept, nor are those that
depend on what memory held. A file that is absent, damaged or cannot be written costs time and nothing else.
"""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import blake2b, sha256
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
from harness.model.result import Memory, Result, rounded
from harness.model.target_info import CPU, DML
from harness.model.verdict import Verdict, conforms
from harness.operators import COLLECTED, OPERATORS, VARIABLE
from harness.operators.base import Call
from harness.run.artifacts import Artifacts
from harness.run.block_files import FOLDER, Group, OpenedBlock, RereadBlock, read
from harness.run.held_back import worth
from harness.specs.cache import digests, kept, kept_plans
from harness.specs.expectations.target_expectations import TargetExpectations
from harness.specs.selection import CaseBlock, ChosenCases, Selection
from harness.targets.batches import FAKE, sent_of
from harness.targets.execution import Execution, Graph, GraphCases, KeptCase, Optimized, Prepared

_ROOMS = "compile", "run", "targets", "worker"
"""What results follow from besides the rooms of plans, whose digest is at hand."""
_LONGEST = 48 << 10
"""Bytes of the inputs of a case above which these are made again."""
_ANEW = 1024
"""One of so many cases is judged anew."""
_NO_CASE = Prepared(Case("", "", 0, {}, ()), Call({}, {}), ())


class _Place(NamedTuple):
    """A case that is being executed: what holds its id, its record, the block that is kept with it, whether its outputs
    are asked for as artifacts alone, and what it came to until its result is final."""

    prepared: Prepared
    case: KeptCase
    block: OpenedBlock | RereadBlock
    for_tensors: bool = False
    found: KeptCase | None = None
    examined: bool = False
    """Whether its result is to say what its elements are over other memory."""


class KeptBlocks:
    """The blocks of one target in one process; without a `selection` none is kept. `refused` makes the result of a case
    that the provider's API cannot express, and `inexpressible` holds these results. As long as there is room for
    `artifacts`, cases with tensors to keep there are executed in full. What became of graphs holds for one `library`."""

    def __init__(
        self,
        selection: Selection | ChosenCases | None,
        known: TargetExpectations,
        seed: int,
        refused: Callable[[Case, str], Result],
        artifacts: Artifacts | None,
        library: str,
    ) -> None:
        self._provider = known.info.provider
        own = self._provider == FAKE or bool(os.environ.get(VARIABLE))
        self._selection = selection if isinstance(selection, Selection) and not own else None
        self._known = known
        self._seed = seed
        self._refused = refused
        self._room = 0 if artifacts is None else artifacts.room()
        self._library = library
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
            yield from self._again(RereadBlock(path, block, groups))
            return
        records = {
            id(case): (case, KeptCase(piece, position))
            for piece, each in enumerate(block.pieces)
            for position, case in enumerate(each.cases())
            if block.chosen is None or block.chosen(case)
        }
        opened = None if path is None else OpenedBlock(path, len(records))
        yield from self._made(left(case for case, _ in records.values()), records, opened)

    def _again(self, block: RereadBlock) -> Iterator[GraphCases]:
        """Yield what is kept of a block, then those of its cases that are made again."""
        left = []
        for group in block.groups:
            sent = [self._expecting(_NO_CASE, case, block) for case in group.cases if case.sent is not None]
            if sent:
                assert group.graph is not None
                yield GraphCases(_plain(group.graph), sent)
            left += [case for case in group.cases if case.sent is None]
        self.inexpressible += [case.result for case in left if case.result and not case.digest]
        made = [(block.case(case), case) for case in left if case.digest or case.result is None]
        records = {id(case): (case, record) for case, record in made}
        yield from self._made((case for case, _ in made), records, block)

    def _expecting(self, prepared: Prepared, case: KeptCase, block: RereadBlock) -> Prepared:
        """Return a case with what its answer is expected to be, which is judged anew where it says nothing."""
        self._number += 1
        asked, for_tensors = case, self._has_tensors(case.result)
        if self._number % _ANEW == self._anew or for_tensors:
            asked = msgspec.structs.replace(case, digest="")
        elif case.optimized is not None and case.optimized.library != self._library:
            asked = msgspec.structs.replace(case, optimized=None)
        prepared = prepared._replace(kept=asked)
        self._places[id(prepared)] = _Place(prepared, case, block, for_tensors)
        return prepared

    def _has_tensors(self, result: Result | None) -> bool:
        """Say whether tensors of a result are to be kept as artifacts; those for which there is room are."""
        if result is None or not self._room:
            return False
        wrong = isinstance(result.output, str) and not conforms(result.validity, result.outcome)
        found = wrong or result.validity is Validity.UNSPECIFIED
        self._room -= found
        return found

    def _made(
        self,
        cases: Iterable[Case],
        records: Mapping[int, tuple[Case, KeptCase]],
        block: OpenedBlock | RereadBlock | None,
    ) -> Iterator[GraphCases]:
        """Yield the graphs of cases; `records` are by the id of the case."""

        def refuse(case: Case, why: str) -> None:
            result = self._refused(case, why)
            self.inexpressible.append(result)
            if isinstance(block, OpenedBlock):
                _, record = records[id(case)]
                block.groups.append(Group(None, [record]))
                block.settle(record, KeptCase(record.piece, record.position, result=result))

        for graph, made in by_graph(cases, self._seed, self._provider, refuse):
            listed = [records[id(prepared.case)][1] for prepared in made]
            if isinstance(block, OpenedBlock):
                block.groups.append(Group(graph, listed))
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
        if prepared.kept is None or execution.digest != prepared.kept.digest or not execution.digest:
            return None
        case = self._places.pop(id(prepared)).case
        assert case.result is not None
        if case.entries:
            of_operator = self._known.of_operator(case.result.operator)
            positions = [of_operator[each] for each in case.entries]
            conforming = conforms(case.result.validity, case.result.outcome)
            self._known.count(case.result.case, positions, conforms=conforming)
        return self._numbered(case.result, execution)

    def _numbered(self, result: Result, execution: Execution) -> Result:
        """Return a kept result with what is another in each run."""
        number = result.expectation
        if number is not UNSET:
            number = self._known.numbers[self._known.of_operator(result.operator)[number]]
        return msgspec.structs.replace(result, seconds=rounded(execution.seconds), expectation=number)

    def made(self, prepared: Prepared, graph: Graph) -> tuple[Prepared, Graph]:
        """Return a case and its graph as they are made of a spec. Errors: HarnessFault where what was sent is of another
        case."""
        if prepared.kept is None:
            return prepared, graph
        place, again = self._places.pop(id(prepared)), graph
        found = prepared._replace(kept=None)
        if prepared.kept.sent is not None:
            assert isinstance(place.block, RereadBlock)
            case = place.block.case(place.case)
            ((again, (found,)),) = by_graph([case], self._seed, self._provider)
            if again != graph or sent_of(again, found) != prepared.kept.sent:
                raise self._fault(case.id)
        self._places[id(found)] = place._replace(prepared=found)
        return found, again

    def judged(self, prepared: Prepared, graph: Graph, execution: Execution, result: Result) -> Result | None:
        """Take a result from which its final one follows, after the entries counted it. Return the kept result where tensors
        alone were asked for, and are those of before. Errors: HarnessFault where another one is kept of the same
        answer."""
        place = self._places.pop(id(prepared), None)
        if place is None:
            return None
        record, block = place.case, place.block
        of_operator = self._known.of_operator(result.operator)
        entries = tuple(map(of_operator.index, self._known.counted))
        if isinstance(block, OpenedBlock):
            sent = sent_of(graph, prepared)
            kept_inputs = sent if len(sent.payload) <= _LONGEST else None
            found = KeptCase(record.piece, record.position, execution.digest, None, entries, kept_inputs)
            if self._library and execution.nodes and graph.composed and self._provider in (CPU, DML):
                found.optimized = Optimized(
                    self._library, execution.transformers, execution.graph_nodes, execution.graph_edges
                )
            outputs = execution.outputs
            examined = outputs is not None and worth(self._provider, prepared, graph, outputs, result.outcome)
            self._places[id(prepared)] = place._replace(found=found, examined=examined)
            return None
        if record.digest != execution.digest:
            block.differs()
            return None
        assert record.result is not None
        if (_decided(self._placed(result)), entries) != (_decided(record.result), record.entries):
            raise self._fault(result.case)
        return self._numbered(record.result, execution) if place.for_tensors else None

    def hold(self, prepared: Prepared) -> None:
        """Note that the result of a case is held back."""
        place = self._places.get(id(prepared))
        if place is not None and isinstance(place.block, OpenedBlock):
            place.block.hold(place.case)

    def settled(self, prepared: Prepared, result: Result, *, searched: bool) -> None:
        """Keep a final result if it follows from the answer alone, and nothing that was to run again for it is missing;
        `searched` says so of the transformer that causes it."""
        place = self._places.pop(id(prepared), None)
        if place is None or place.found is None or not isinstance(place.block, OpenedBlock):
            return
        memory = result.memory
        clean = isinstance(memory, Memory) and memory.unwritten == memory.outside == memory.unstable == 0
        whole = searched and (clean or not place.examined)
        if whole and place.found.digest and result.verdict is Verdict.EXPECTED:
            place.found.result = self._placed(result)
        place.block.settle(place.case, place.found)

    def _placed(self, result: Result) -> Result:
        """Return a result with the place of its entry among those for its operator, and without its seconds."""
        number = result.expectation
        if number is not UNSET:
            number = self._known.of_operator(result.operator).index(self._known.numbers.index(number))
        return msgspec.structs.replace(result, seconds=0.0, expectation=number)

    def _fault(self, case_id: str) -> HarnessFault:
        folder = cache_folder(FOLDER)
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
        return cache_folder(FOLDER) / f"{total.hexdigest()}.block"

    @cached_property
    def _start(self) -> bytes:
        """A digest of what all blocks depend on, apart from what a device says of itself that is another each time."""
        features = np.show_config(mode="dicts").get("SIMD Extensions")
        code = digests.code(*kept.ROOMS) + digests.code(*_ROOMS)
        info = msgspec.structs.replace(self._known.info, luid=None, device_metadata={})
        conditions = msgspec.json.encode((self._known.target, info, self._seed, features))
        return sha256(code + conditions).digest()

    @cached_property
    def _foreign(self) -> frozenset[str]:
        """The operators with specs that are not the harness's own."""
        assert self._selection is not None
        return frozenset(spec.model.operator for spec in self._selection.plan.specs if not spec.built_in)

    def _operator(self, name: str) -> bytes:
        """Return a digest of an operator's spec and of the expectations for it; empty where the operator is one that no
        file of the harness defines."""
        if name not in self._operators:
            assert self._selection is not None
            spec = self._selection.plan.by_operator.get(name)
            is_graph = spec is not None and spec.graph is not None
            own = spec is None or (spec.built_in if is_graph else COLLECTED.get(name) is OPERATORS[name])
            entries = [self._known.entries[each] for each in self._known.of_operator(name)]
            written = repr([(each.entry, each.queries, each.exceptions) for each in entries]).encode()
            of_spec = b"" if spec is None else kept_plans.digest(spec)
            found = sha256(written + of_spec).digest() if own else b""
            self._operators[name] = found
        return self._operators[name]


def _decided(result: Result) -> Result:
    """Return what is judged of an answer, without numbers whose last digits an order of summation can decide, and without
    what later runs find."""
    return msgspec.structs.replace(result, accuracy=UNSET, diff=None, memory=UNSET, culprit=UNSET)


def _plain(graph: Graph) -> Graph:
    """Return a graph that was decoded, with tuples for what its deployment lists."""
    return graph._replace(deployed=_tuples(graph.deployed)) if graph.deployed else graph


def _tuples(listed: Any) -> Any:
    return tuple(map(_tuples, listed)) if isinstance(listed, list | tuple) else listed
