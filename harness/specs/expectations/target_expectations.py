"""An expectation with its place in a file: the cases that it matches, and its problems before any run. The
expectations for one target during a run: the expected outcome of each case, and the evidence about each entry.

In a complete run an entry is a problem if it matches no case (unmatched), if all its cases now conform (stale), or
if its date has passed (expired).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from itertools import combinations
from operator import itemgetter
from typing import NamedTuple

from msgspec import UnsetType

from harness.model.caseid import MODEL_CALL, MODEL_REGION, operator_of, parse
from harness.model.header import Expectation
from harness.model.onnx_schemas import is_graph
from harness.model.query import Query
from harness.model.reference.kernels import registered
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from harness.operators import OPERATORS
from harness.specs.expectations.expectation_entry import TODO, Entry
from harness.specs.reading.load import LoadedSpec, default_folder, is_whole
from harness.specs.reading.source import Source

WITHOUT_KERNEL = frozenset({Outcome.UNSUPPORTED, Outcome.NOT_PLACED, Outcome.REJECTED})
"""What a case comes to without a kernel: ONNX Runtime says so, or it composes the operator of others, which
may have no kernel either."""


Allows = Callable[[Entry], bool]
"""Says whether outputs are those that an entry states."""


def anything(_: Entry) -> bool:
    """Stand for outputs that are not known."""
    return True


@dataclass(frozen=True)
class Located:
    """An entry with its place in a file."""

    entry: Entry
    queries: tuple[Query, ...]
    file: Source
    position: int
    exceptions: tuple[Query, ...] = ()

    def problem(self, what: str) -> str:
        """Return one line: `file:line: [position]: what`."""
        return self.file.problem((self.position,), what)

    def flaws(self, today: date) -> Iterator[str]:
        """Yield a problem if a reviewer has yet to state the outputs, the reason or a link, and if the entry's date has
        passed."""
        entry = self.entry
        missing = [
            name
            for name, text in (("gives", entry.gives), ("reason", entry.reason), ("link", entry.link))
            if text is not None and text.strip().upper() == TODO
        ]
        if missing:
            yield self.problem(f"not reviewed yet: fill in {', '.join(missing)}")
        if entry.expires is not None and entry.expires < today:
            yield self.problem(f"expired on {entry.expires}; look whether it still holds")

    def speaks_of(self, operators: Collection[str]) -> bool:
        """Say whether the entry can match a case of one of these operators."""
        return any(
            query.literal in operators if query.literal else any(map(query.speaks_of, operators))
            for query in self.queries
        )

    @cached_property
    def built_in(self) -> bool:
        """Whether the entry comes with the harness."""
        return self.file.path.resolve().parent == (default_folder() / "expectations").resolve()

    @property
    def general(self) -> bool:
        """Say whether the entry classes cases in general: no kernel, no level, not examined yet."""
        return self.entry.pending or self.entry.kernel is not None or self.entry.level is not None

    def stated(self) -> Expectation:
        """Return the entry as the header of a run states it, without the counts of its matches, which follow
        from the results."""
        entry = self.entry
        allowed = (
            tuple(outcome for outcome in Outcome if outcome in WITHOUT_KERNEL)
            if self.general
            else (entry.expect,)
        )
        return Expectation(
            () if entry.pending else allowed,
            entry.reason,
            entry.link,
            entry.title,
            entry.documents,
            entry.pending,
            {
                name: wanted
                for name in ("onnxruntime", "directml")
                if (wanted := getattr(entry.when, name)) is not None
            },
        )

    def applies(self, outcome: Outcome | None, allows: Allows) -> bool:
        """Say whether the entry speaks of a case that it matches, by what came of it alone: one that holds
        sometimes only where it shows."""
        return not self.general and not (
            self.entry.sometimes and (outcome is not self.entry.expect or not allows(self.entry))
        )

    def matches(self, case_id: str) -> bool:
        return any(q.matches(case_id) for q in self.queries) and not any(
            q.matches(case_id) for q in self.exceptions
        )


def of_models(query: Query) -> bool:
    """Say whether a query selects calls or regions of a user's models alone."""
    return f"case={MODEL_CALL}" in query.text or query.text.startswith(MODEL_REGION)


class ExpectationScope(NamedTuple):
    """The operators that ran in full, for which an entry can be found to match nothing; `whole` if these are
    all specs of the harness.

    The harness's own entries are written for all of its own specs: of a part of these, or of others, they
    need not hold. Other entries need not where they speak of an operator that was not run.
    """

    operators: Collection[str]
    whole: bool

    @classmethod
    def of(cls, specs: Sequence[LoadedSpec]) -> ExpectationScope:
        """Return the scope of a run of all cases of these specs."""
        return cls({spec.model.operator for spec in specs}, is_whole([spec.path for spec in specs]))

    def judges(self, located: Located) -> bool:
        """Say whether an entry that matches nothing here is wrong; one of models alone is not, of which no spec is here."""
        if located.built_in:
            return self.whole and not all(of_models(query) for query in located.queries)
        return located.speaks_of(self.operators) or not located.speaks_of(
            OPERATORS.keys() - set(self.operators)
        )


@dataclass
class Used:
    """The evidence about an entry: the number of cases that it matched, and of those that did not conform."""

    matched: int = 0
    not_conforming: int = 0


class Known(NamedTuple):
    """The expected outcome of a case, and the `number` of the entry that states it."""

    expect: Outcome | None
    number: int


class Findings(NamedTuple):
    """The evidence from a part of a run: for each entry (matched, not conforming), and for two conflicting
    entries the case."""

    used: tuple[tuple[int, int], ...]
    conflicts: dict[tuple[int, int], str]


_Candidate = tuple[str, Query, tuple[Query, ...], int]
"""A query of an entry: the longest text of its terms, itself, what the entry excepts, and the entry's position."""


@dataclass
class TargetExpectations:
    """The expectations for one target; `record` takes whether each case conforms and returns the expected
    outcome.

    `used` counts by position in `entries`; `numbers` are the places of these among all entries.
    """

    target: str
    entries: tuple[Located, ...] = ()
    info: TargetInfo = field(default_factory=lambda: TargetInfo(""))
    numbers: tuple[int, ...] = ()
    used: list[Used] = field(default_factory=list)
    counted: Sequence[int] = ()
    """The positions of the entries for which `record` counted the last case."""
    _by_operator: dict[str, list[tuple[Query, int]]] = field(default_factory=dict)
    _start: str = ""
    _candidates: Sequence[_Candidate] = ()
    _conflicts: dict[tuple[int, int], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.used = [Used() for _ in self.entries]
        self.numbers = self.numbers or tuple(range(len(self.entries)))

    def entry(
        self, case_id: str, *, beyond: bool = False, outcome: Outcome | None = None, allows: Allows = anything
    ) -> Entry | None:
        """Return the entry that speaks of a case, None if none does. With several, the first one counts, and
        general ones last.

        `beyond` says that no level allows the case; with an `outcome`, entries that hold sometimes count
        where they expect it, and with a `diff` entries that allow it.
        """
        found = self.matching(case_id)
        if outcome is None:
            special = [n for n in found if not self.entries[n].general]
        else:
            applying = self._special(found, case_id, outcome, allows, beyond=beyond)
            special = [n for n in applying if allows(self.entries[n].entry)]
        position = next(iter(special), None)
        if position is None:
            position = next(
                (n for n in found if self._speaks_in_general(n, case_id, outcome, beyond=beyond)), None
            )
        return None if position is None else self.entries[position].entry

    def record(
        self,
        case_id: str,
        outcome: Outcome | None,
        *,
        conforms: bool,
        beyond: bool = False,
        allows: Allows = anything,
    ) -> Known | None:
        """Count the result of a case for the entries that match it; return what the first of them expects
        that `allows` its outputs, None if none does.

        `outcome` is None for an earlier result of which only that it conforms or not is known; `beyond` says
        that no level allows the case.
        """
        self.counted = ()
        matching = self.matching(case_id)
        if not matching:
            return None
        if conforms and all(self.entries[n].general for n in matching):
            return None  # what they say is of refusals
        found = self._special(matching, case_id, outcome, allows, beyond=beyond)
        if not found:
            return None if conforms else self._refused(matching, case_id, outcome, beyond=beyond)
        self.count(case_id, found, conforms=conforms)
        first = next((n for n in found if allows(self.entries[n].entry)), None)
        return None if first is None else Known(self.entries[first].entry.expect, self.numbers[first])

    def count(self, case_id: str, positions: Sequence[int], *, conforms: bool) -> None:
        """Count a result for the entries at some positions, which speak of it."""
        self.counted = positions
        for position in positions:
            self.used[position].matched += 1
            self.used[position].not_conforming += not conforms
        for one, other in combinations(positions, 2):
            if self.entries[one].entry.expect is not self.entries[other].entry.expect:
                self._conflict((one, other), case_id)

    def _special(
        self, matching: Sequence[int], case_id: str, outcome: Outcome | None, allows: Allows, *, beyond: bool
    ) -> list[int]:
        """Return those of the matching entries that speak of the case for a reason of its own; none where a
        refusal has a general reason that is certain, and the others hold only sometimes or expect something else."""
        found = [n for n in matching if self.entries[n].applies(outcome, allows)]
        own = (self.entries[n].entry for n in found)
        if outcome in WITHOUT_KERNEL and all(each.sometimes or each.expect is not outcome for each in own):
            general = [n for n in matching if self.entries[n].general and not self.entries[n].entry.pending]
            if any(self._speaks_in_general(n, case_id, outcome, beyond=beyond) for n in general):
                return []
        return found

    def _refused(
        self, matching: Sequence[int], case_id: str, outcome: Outcome | None, *, beyond: bool
    ) -> Known | None:
        """Return the outcome where an entry expects it in general: a refusal without a kernel or beyond every
        level, or anything yet."""
        refused = outcome in (None, *WITHOUT_KERNEL)
        for position in matching:
            pending = self.entries[position].entry.pending
            if pending or (refused and self._speaks_in_general(position, case_id, outcome, beyond=beyond)):
                self.count(case_id, (position,), conforms=False)
                return Known(outcome, self.numbers[position])
        return None

    def _speaks_in_general(
        self, position: int, case_id: str, outcome: Outcome | None, *, beyond: bool
    ) -> bool:
        entry = self.entries[position].entry
        return (
            entry.pending
            or (entry.level is not None and beyond)
            or (entry.kernel is not None and self._has_no_kernel(case_id, outcome))
        )

    def _has_no_kernel(self, case_id: str, outcome: Outcome | None) -> bool:
        """Say whether the kernel tables name no kernel of the target's provider for a case's element types; of a
        graph, whether the provider says that it has none."""
        key = parse(case_id)
        if is_graph(key.operator):
            return outcome in (Outcome.UNSUPPORTED, Outcome.NOT_PLACED)
        types = {name.partition(".")[0]: dtype for name, dtype in key.dtypes()}
        return registered(self.info, key.operator, key.opset, types) in ("no", "unknown")

    def _conflict(self, entries: tuple[int, int], case_id: str) -> None:
        """Keep one example, the same one for every order of the cases."""
        self._conflicts[entries] = min(case_id, self._conflicts.get(entries, case_id))

    def named(self, number: int | UnsetType) -> Allows:
        """Say of each entry whether a recorded result names it, by its number among all entries."""
        place = self.numbers.index(number) if number in self.numbers else None
        return lambda entry: place is not None and entry is self.entries[place].entry

    def findings(self) -> Findings:
        """Return what the recorded results showed, for another who records a part of the same run to
        `merge`."""
        return Findings(
            tuple((used.matched, used.not_conforming) for used in self.used), dict(self._conflicts)
        )

    def merge(self, findings: Findings) -> None:
        """Count what another part of the run showed."""
        for used, (matched, not_conforming) in zip(self.used, findings.used, strict=True):
            used.matched += matched
            used.not_conforming += not_conforming
        for entries, case_id in findings.conflicts.items():
            self._conflict(entries, case_id)

    def problems(self, today: date, scope: ExpectationScope | None) -> list[str]:
        """Return the problems after a run: conflicting and expired entries, and for operators of `scope`
        unmatched and stale ones."""
        found = [
            self.entries[second].problem(
                f"expects {self.entries[second].entry.expect.value} where {self.entries[first].file.where(self.entries[first].position)} "
                f"expects {self.entries[first].entry.expect.value}: {case_id}"
            )
            for (first, second), case_id in sorted(self._conflicts.items())
        ]
        found += [line for located in self.entries for line in located.flaws(today)]
        if scope is not None:
            for located, used in zip(self.entries, self.used, strict=True):
                if (
                    not scope.judges(located)
                    or located.entry.sometimes
                    or located.entry.pending
                    or located.entry.level is not None
                ):
                    continue
                if not used.matched:
                    found.append(
                        located.problem(f"matches no case on {self.target}; remove it or correct its query")
                    )
                elif not used.not_conforming:
                    cases = f"all {used.matched:,} cases conform" if used.matched > 1 else "its case conforms"
                    found.append(located.problem(f"{cases} on {self.target}; remove it or narrow its 'when'"))
        return found

    def matching(self, case_id: str) -> list[int]:
        """Return the positions in `entries` of all that match a case."""
        start = case_id.partition(";")[0]
        if start != self._start:
            self._start, self._candidates = start, self._speaking_of(start)
        found = [
            i
            for needle, query, exceptions, i in self._candidates
            if needle in case_id
            and query.matches(case_id)
            and not (exceptions and any(each.matches(case_id) for each in exceptions))
        ]
        return list(dict.fromkeys(found)) if len(found) > 1 else found

    def _speaking_of(self, start: str) -> list[_Candidate]:
        """Return the queries that can match an id that starts with an operator, its opset and an entry, as neighbours
        do, each with the text that the id must hold: looking for that is cheap."""
        queries = self._queries(operator_of(start))
        return [
            (
                max((term.needle for term in query.terms), key=len, default=""),
                query,
                self.entries[i].exceptions,
                i,
            )
            for query, i in queries
            if query.may_go_on(start)
        ]

    def _queries(self, operator: str) -> list[tuple[Query, int]]:
        """Return the queries that can match a case of an operator, each with the position of its entry."""
        found = self._by_operator.get(operator)
        if found is None:
            several = [(query, i) for query, i in self._by_literal.get(None, ()) if query.speaks_of(operator)]
            found = sorted([*self._by_literal.get(operator, ()), *several], key=itemgetter(1))
            self._by_operator[operator] = found
        return found

    @cached_property
    def _by_literal(self) -> Mapping[str | None, list[tuple[Query, int]]]:
        """The queries, each with the position of its entry, by the one operator that they speak of."""
        found: dict[str | None, list[tuple[Query, int]]] = {}
        for i, located in enumerate(self.entries):
            for query in located.queries:
                found.setdefault(query.literal, []).append((query, i))
        return found

    def of_operator(self, operator: str) -> list[int]:
        """Return the positions of the entries that can speak of a case of an operator, in order."""
        return list(dict.fromkeys(position for _, position in self._queries(operator)))
