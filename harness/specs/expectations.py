"""Expectations: reviewed entries that declare an outcome known, with a reason and a link.

An entry applies to a target if every condition of its `when` holds there. In a complete run an entry is a
problem if it matches no case (unmatched), if all its cases now conform (stale), or if its date has passed
(expired).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion
from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError, WithJsonSchema

from harness.model.caseid import operator_of, parse
from harness.model.errors import SpecError, UsageError
from harness.model.query import Query
from harness.model.records import Expectation, Outcome, TargetInfo
from harness.model.reference.kernels import registered
from harness.operators import OPERATORS
from harness.specs import source
from harness.specs.load import LoadedSpec, default_folder, is_whole, yaml_files
from harness.specs.problems import validation_problems
from harness.specs.schema import DIALECT, Alternatives, Strict, Text, refuse
from harness.specs.source import Source, shown


def _query(text: str) -> str:
    try:
        Query.parse(text)
    except UsageError as error:
        raise refuse(str(error)) from None
    return text


def _specifier(text: str) -> str:
    try:
        SpecifierSet(text.replace("_", "."))
    except InvalidSpecifier:
        raise refuse(f"{shown(text)} is not a version range such as '>=1.20,<1.25'") from None
    return text


def _not_pass(name: object) -> object:
    allowed = tuple(outcome.value for outcome in Outcome if outcome is not Outcome.PASS)
    if name == Outcome.PASS.value:
        raise refuse("'pass' needs no expectation", allowed=allowed)
    if not isinstance(name, str) or name not in allowed:
        raise refuse(
            f"{shown(name)} is not an outcome", given=name if isinstance(name, str) else None, allowed=allowed
        )
    return Outcome(name)


TODO = "TODO"
"""What `expect update` writes for a reason or a link that a reviewer has to give; lint and runs fail until it
is replaced."""


def _url(text: str) -> str:
    if text != TODO and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", text):
        raise refuse(f"{shown(text)} is not a link such as 'https://…'")
    return text


def _date(text: object) -> date | None:
    if text is None:
        return None
    try:
        if isinstance(text, str) and len(text) == 10:
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise refuse(f"{shown(text)} is not a date such as 2027-01-31")


QueryText = Annotated[str, AfterValidator(_query)]
VersionRange = Annotated[str, Field(min_length=1), AfterValidator(_specifier)]
_UNEXPECTED = {"enum": [outcome.value for outcome in Outcome if outcome is not Outcome.PASS]}


class When(Strict):
    """Where an entry applies; a condition that is absent holds everywhere, a version that a target cannot
    tell lies in no range."""

    target: Alternatives[Text] = ("*",)
    provider: Text | None = None
    adapter: Text | None = None
    onnxruntime: VersionRange | None = None
    directml: VersionRange | None = None
    max_feature_level: VersionRange | None = None

    def holds(self, target: str, info: TargetInfo) -> bool:
        """Say whether every condition holds for a target."""
        ranges = (
            (self.onnxruntime, info.onnxruntime),
            (self.directml, info.directml),
            (self.max_feature_level, info.max_feature_level),
        )
        return (
            any(fnmatchcase(target, glob) for glob in self.target)
            and (self.provider is None or fnmatchcase(info.provider, self.provider))
            and (self.adapter is None or fnmatchcase(info.adapter or "", self.adapter))
            and all(wanted is None or _within(version, wanted) for wanted, version in ranges)
        )


class Entry(Strict):
    """One expectation as the file writes it."""

    match: Alternatives[QueryText]
    unless: Alternatives[QueryText] | None = None
    """Cases that `match` selects and the entry does not speak of."""
    when: When = When()
    kernel: Literal["none"] | None = None
    """`none`: the entry holds where the kernel tables name no kernel of the provider for the case's element
    types; what it expects is that the provider refuses, in any of the ways of `WITHOUT_KERNEL`, or is not
    asked."""
    level: Literal["beyond"] | None = None
    """`beyond`: the entry holds for cases that no published level allows."""
    pending: bool = False
    """Whether nobody has looked yet at what these cases do here: whatever it is, it is recorded, shown and no
    failure, until `expires`."""
    sometimes: bool = False
    """Whether a case shows it depends on values that its id does not tell: one that conforms contradicts
    nothing."""
    expect: Annotated[Outcome, BeforeValidator(_not_pass), WithJsonSchema(_UNEXPECTED)]
    title: Text | None = None
    """The finding in a few words, and below it why; `documents` says what Microsoft's documents have to
    say."""
    reason: Text
    documents: Text | None = None
    link: Annotated[str, AfterValidator(_url)]
    expires: Annotated[date, BeforeValidator(_date)] | None = None


_FILE = TypeAdapter(tuple[Entry, ...])


def expectations_json_schema() -> str:
    """Return the JSON Schema of an expectations file, for editors, as the text of
    `docs/expectations.schema.json`."""
    return json.dumps({"$schema": DIALECT} | _FILE.json_schema() | {"title": "Expectations"}, indent=2) + "\n"


def _within(version: str | None, wanted: str) -> bool:
    """Say whether a version, or a feature level such as `5_0`, lies in a range."""
    if version is None:
        return False
    try:
        return SpecifierSet(wanted.replace("_", ".")).contains(version.replace("_", "."), prereleases=True)
    except InvalidVersion:
        return False


WITHOUT_KERNEL = frozenset({Outcome.UNSUPPORTED, Outcome.NOT_PLACED, Outcome.REJECTED})
"""What a case comes to without a kernel: ONNX Runtime says so, or it composes the operator of others, which
may have no kernel either."""


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

    def unfilled(self) -> list[str]:
        """Return a problem if a reviewer has yet to say why, or to link to something."""
        entry = self.entry
        missing = [
            name
            for name, text in (("reason", entry.reason), ("link", entry.link))
            if text.strip().upper() == TODO
        ]
        return (
            [self.problem(f"not reviewed yet: fill in {' and '.join(map(repr, missing))}")] if missing else []
        )

    def speaks_of(self, operators: Collection[str]) -> bool:
        """Say whether the entry can match a case of one of these operators."""
        return any(
            query.operator is None or fnmatchcase(name, query.operator)
            for query in self.queries
            for name in operators
        )

    @property
    def built_in(self) -> bool:
        """Say whether the entry comes with the harness."""
        return self.file.path.resolve().parent == (default_folder() / "expectations").resolve()

    @property
    def general(self) -> bool:
        """Say whether the entry speaks of cases by what is known of them in general: no kernel, no level, not
        looked at yet."""
        return self.entry.pending or self.entry.kernel is not None or self.entry.level is not None

    def stated(self) -> Expectation:
        """Return the entry as a run's header states it: without what it matches, which the results say."""
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
        )

    def applies(self, outcome: Outcome | None) -> bool:
        """Say whether the entry speaks of a case that it matches, by its outcome alone: one that holds
        sometimes only where it shows."""
        return not self.general and not (self.entry.sometimes and outcome is not self.entry.expect)

    def matches(self, case_id: str) -> bool:
        return any(q.matches(case_id) for q in self.queries) and not any(
            q.matches(case_id) for q in self.exceptions
        )


class ExpectationScope(NamedTuple):
    """What was run in full, by which an entry can be found to match nothing: these operators, of the
    harness's own specs all or not.

    The harness's own entries are written for all of its own specs: of a part of these, or of others, they
    need not hold. Other entries need not where they speak of an operator that was not run.
    """

    operators: Collection[str]
    whole: bool

    @classmethod
    def of(cls, specs: Sequence[LoadedSpec]) -> ExpectationScope:
        """Return what a run of all cases of these specs is a run of."""
        return cls({spec.model.operator for spec in specs}, is_whole([spec.path for spec in specs]))

    def judges(self, located: Located) -> bool:
        """Say whether an entry that matches nothing here is wrong."""
        if located.built_in:
            return self.whole
        return located.speaks_of(self.operators) or not located.speaks_of(
            OPERATORS.keys() - set(self.operators)
        )


@dataclass(frozen=True)
class Expectations:
    """All entries, in the order of the files."""

    entries: tuple[Located, ...] = ()

    def for_target(self, target: str, info: TargetInfo) -> TargetExpectations:
        """Return the entries that apply to one target of a run."""
        found = [
            (number, located)
            for number, located in enumerate(self.entries)
            if located.entry.when.holds(target, info)
        ]
        return TargetExpectations(
            target, tuple(e for _, e in found), info, tuple(number for number, _ in found)
        )

    def stated(self, targets: Mapping[str, TargetInfo], operators: Collection[str]) -> dict[int, Expectation]:
        """Return for a run's header, by number, the entries that apply to one of its targets and speak of one
        of its operators."""
        return {
            number: located.stated()
            for number, located in enumerate(self.entries)
            if any(located.entry.when.holds(name, info) for name, info in targets.items())
            and located.speaks_of(operators)
        }


@dataclass
class Used:
    """What a run showed of an entry: how many cases it matched and how many of these did not conform."""

    matched: int = 0
    not_conforming: int = 0


class Known(NamedTuple):
    """What is expected of a case's outcome, and the `number` of the entry that says so among all entries."""

    expect: Outcome | None
    number: int


class Findings(NamedTuple):
    """What a part of a run showed: for each entry (matched, not conforming), and for two entries that
    conflict the case."""

    used: tuple[tuple[int, int], ...]
    conflicts: dict[tuple[int, int], str]


@dataclass
class TargetExpectations:
    """The expectations for one target; tell `record` whether each case conforms, it says what was expected of
    it.

    `used` counts by position in `entries`; `numbers` are the places of these among all entries.
    """

    target: str
    entries: tuple[Located, ...] = ()
    info: TargetInfo = field(default_factory=lambda: TargetInfo(""))
    numbers: tuple[int, ...] = ()
    used: list[Used] = field(default_factory=list)
    _by_operator: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    _conflicts: dict[tuple[int, int], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.used = [Used() for _ in self.entries]
        self.numbers = self.numbers or tuple(range(len(self.entries)))

    def entry(self, case_id: str, *, beyond: bool = False, outcome: Outcome | None = None) -> Entry | None:
        """Return the entry that speaks of a case, None if none does. With several, the first one counts, and
        general ones last.

        `beyond` says that no level allows the case; with an `outcome`, entries that hold sometimes count
        where they expect it.
        """
        found = self.matching(case_id)
        if outcome is None:
            special = [n for n in found if not self.entries[n].general]
        else:
            special = self._special(found, case_id, outcome, beyond=beyond)
        position = next(iter(special), None)
        if position is None:
            position = next((n for n in found if self._speaks_in_general(n, case_id, beyond=beyond)), None)
        return None if position is None else self.entries[position].entry

    def record(
        self, case_id: str, outcome: Outcome | None, *, conforms: bool, beyond: bool = False
    ) -> Known | None:
        """Count the result of a case for the entries that match it; return what the first of them expects,
        None if none does.

        `outcome` is None for an earlier result of which only that it conforms or not is known; `beyond` says
        that no level allows the case.
        """
        found = self._special(self.matching(case_id), case_id, outcome, beyond=beyond)
        if not found:
            return self._refused(case_id, outcome, conforms=conforms, beyond=beyond)
        for position in found:
            self.used[position].matched += 1
            self.used[position].not_conforming += not conforms
        for first, second in combinations(found, 2):
            if self.entries[first].entry.expect is not self.entries[second].entry.expect:
                self._conflict((first, second), case_id)
        return Known(self.entries[found[0]].entry.expect, self.numbers[found[0]])

    def _special(
        self, matching: Sequence[int], case_id: str, outcome: Outcome | None, *, beyond: bool
    ) -> list[int]:
        """Return those of the matching entries that speak of the case for a reason of its own; none where a
        refusal has a general reason that is certain, and the others hold only sometimes."""
        found = [n for n in matching if self.entries[n].applies(outcome)]
        if outcome in WITHOUT_KERNEL and all(self.entries[n].entry.sometimes for n in found):
            general = [n for n in matching if self.entries[n].general and not self.entries[n].entry.pending]
            if any(self._speaks_in_general(n, case_id, beyond=beyond) for n in general):
                return []
        return found

    def _refused(
        self, case_id: str, outcome: Outcome | None, *, conforms: bool, beyond: bool
    ) -> Known | None:
        """Return the outcome where an entry expects it in general: a refusal without a kernel or beyond every
        level, or anything yet."""
        if conforms:
            return None
        refused = outcome in (None, *WITHOUT_KERNEL)
        for position in self.matching(case_id):
            pending = self.entries[position].entry.pending
            if pending or (refused and self._speaks_in_general(position, case_id, beyond=beyond)):
                self.used[position].matched += 1
                self.used[position].not_conforming += 1
                return Known(outcome, self.numbers[position])
        return None

    def _speaks_in_general(self, position: int, case_id: str, *, beyond: bool) -> bool:
        entry = self.entries[position].entry
        return (
            entry.pending
            or (entry.level is not None and beyond)
            or (entry.kernel is not None and self._has_no_kernel(case_id))
        )

    def _has_no_kernel(self, case_id: str) -> bool:
        """Say whether the kernel tables name no kernel of the target's provider for a case's element
        types."""
        told = parse(case_id)
        types = {name.partition(".")[0]: dtype for name, dtype in told.dtypes()}
        return registered(self.info, told.operator, told.opset, types) in ("no", "unknown")

    def _conflict(self, entries: tuple[int, int], case_id: str) -> None:
        """Keep one example: the same one whatever the order of the cases."""
        self._conflicts[entries] = min(case_id, self._conflicts.get(entries, case_id))

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
        """Return what is wrong after a run: conflicting and expired entries, and where `scope` was run in
        full unmatched and stale ones."""
        found = [
            self.entries[second].problem(
                f"expects {self.entries[second].entry.expect.value} where {self.entries[first].file.where(self.entries[first].position)} "
                f"expects {self.entries[first].entry.expect.value}: {case_id}"
            )
            for (first, second), case_id in sorted(self._conflicts.items())
        ]
        found += [
            line for located in self.entries for line in (*located.unfilled(), *_expired(located, today))
        ]
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
        operator = operator_of(case_id)
        candidates = self._by_operator.get(operator)
        if candidates is None:
            candidates = self._by_operator[operator] = list(self._candidates(operator))
        found = [i for needle, i in candidates if needle in case_id and self.entries[i].matches(case_id)]
        return list(dict.fromkeys(found)) if len(found) > 1 else found

    def _candidates(self, operator: str) -> Iterator[tuple[str, int]]:
        """Yield (text that the id must hold, position) for each query that can match an id of this operator:
        looking for it is cheap."""
        for i, located in enumerate(self.entries):
            for query in located.queries:
                if query.operator is None or fnmatchcase(operator, query.operator):
                    yield max((term.needle for term in query.terms), key=len, default=""), i


def load_expectations(paths: Sequence[Path] = ()) -> Expectations:
    """Load expectation files, or the `*.yaml` in folders; without any, the harness's own. Raise SpecError
    with every problem."""
    problems: list[str] = []
    entries: list[Located] = []
    default = default_folder() / "expectations"
    for path in yaml_files(paths or ([default] if default.is_dir() else []), problems, empty=True):
        try:
            entries.extend(_load(path))
        except SpecError as error:
            problems.extend(error.problems)
    if problems:
        raise SpecError(problems)
    return Expectations(tuple(entries))


def _load(path: Path) -> list[Located]:
    file = source.read(path)
    if not isinstance(file.tree, tuple):
        raise SpecError(
            [file.problem((), f"an expectations file should be a list of entries, not {shown(file.tree)}")]
        )
    try:
        entries = _FILE.validate_python(file.tree)
    except ValidationError as error:
        raise SpecError(file.by_line(validation_problems(file, error, Entry))) from error
    return [
        Located(e, tuple(map(Query.parse, e.match)), file, i, tuple(map(Query.parse, e.unless or ())))
        for i, e in enumerate(entries)
    ]


def lint(
    expectations: Expectations,
    today: date,
    case_ids: Iterable[str] = (),
    scope: ExpectationScope | None = None,
) -> list[str]:
    """Return what is wrong with entries before any run: expired, written twice, and, given every case of a
    scope, matching none."""
    problems: list[str] = []
    seen: dict[tuple[object, ...], Located] = {}
    for located in expectations.entries:
        problems += [*located.unfilled(), *_expired(located, today)]
        entry = located.entry
        scope_of = (
            frozenset(entry.match),
            frozenset(entry.unless or ()),
            entry.when,
            entry.kernel,
            entry.level,
        )
        first = seen.setdefault(scope_of, located)
        if first is not located:
            problems.append(
                located.problem(
                    f"has the same 'match', 'unless' and 'when' as {first.file.where(first.position)}"
                )
            )
    unmatched = [located for located in expectations.entries if scope is not None and scope.judges(located)]
    for case_id in case_ids:
        if not unmatched:
            break
        unmatched = [located for located in unmatched if not located.matches(case_id)]
    return problems + [
        located.problem("matches no case; remove it or correct its query") for located in unmatched
    ]


def _expired(located: Located, today: date) -> list[str]:
    expires = located.entry.expires
    return (
        [located.problem(f"expired on {expires}; look whether it still holds")]
        if expires is not None and expires < today
        else []
    )


if __name__ == "__main__":
    print(expectations_json_schema(), end="")
