"""Updates expectation files from a run: removes entries that no longer match, narrows those that partly
match, and proposes missing ones.

Nothing is said of cases that the run does not have (`RunRows.lacks`): no query that is written selects one, and
an entry that matches one is narrowed, never dropped. The decision uses what the targets did and what the files
expect now, not the verdicts that the run recorded: a second update finds nothing to do.

What is proposed are the fewest entries that describe what fails, each checked against every case of the run. An
entry covers one outcome: all results with it if one rule holds for them, else those of one signature. Its queries
select every case of it, and none that ended in another way; if no short rule can do that, the queries name single
cases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.model.caseid import operator_of
from harness.model.errors import HarnessFault
from harness.model.query import Query, parse_all
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from harness.results.rules.feature_table import Rows
from harness.results.rules.query_features import ask
from harness.results.rules.separation import Separation
from harness.results.rules.terms import Term
from harness.results.summary import count
from harness.specs.expectations.expectations import Expectations
from harness.specs.expectations.target_expectations import Located, TargetExpectations, anything
from harness.specs.reading.source import Source, label_of, read
from harness.triage.expect.entry_file import EntryFile, NewEntry, asked
from harness.triage.expect.run_rows import OUTCOMES, RunRows, TargetRows

MOST_RULES = 64
_SIGNATURES = 24
_LEAST, _WORDS = 12, 16
"""Letters and words of a message that an entry holds: at least and at most so many."""
_BEFORE_REASON = re.compile(
    r".*(\] : \d+ : \w+ : |Status Message: |\.(cc|cpp|h):\d+ | was false\. )", re.DOTALL
)
"""The code of an error, its node, and the line of the source that raised it: they are those of other reasons too."""


class EntryQueries(NamedTuple):
    """Queries that select some cases, and the exceptions."""

    match: tuple[str, ...]
    unless: tuple[str, ...] = ()

    def selects(self, rows: TargetRows) -> NDArray[np.bool_]:
        """Say which rows these select."""
        return rows.matched(parse_all(self.match)) & ~rows.matched(parse_all(self.unless))


def propose(
    rows: TargetRows, unexpected: NDArray[np.bool_], when: tuple[tuple[str, str], ...]
) -> Iterator[NewEntry]:
    """Yield the entries for the unexpected rows of one target, by outcome."""
    for outcome in Outcome:
        ended = rows.outcomes == OUTCOMES.index(outcome)
        failing = np.flatnonzero(unexpected & ended)
        if not len(failing):
            continue
        passing = np.flatnonzero(~ended)
        described = np.zeros(len(rows.ids), np.bool_)
        for group in _groups(rows, failing, passing):
            left = group[~described[group]]
            for selecting in describe(rows, left, passing) if len(left) else ():
                selected = selecting.selects(rows)
                described |= selected
                texts = [text for row, text in rows.messages.items() if selected[row]]
                yield NewEntry(selecting.match, selecting.unless, when, outcome, shared_message(texts))


def shared_message(messages: Iterable[str]) -> str:
    """Return the longest run of words that the messages of errors share in the first line of the reason; "" for one that
    is too short to tell a reason from another."""
    reasons = {_BEFORE_REASON.sub("", each, count=1).strip().partition("\n")[0] for each in messages}
    shared: list[str] = []
    for number, reason in enumerate(sorted(reasons)):
        found = SequenceMatcher(None, shared, words := reason.split(), autojunk=False).find_longest_match()
        shared = shared[found.a : found.a + found.size] if number else words
    text = " ".join(shared[:_WORDS])
    tells_apart = len(text) >= _LEAST and text.isprintable() and all(text in reason for reason in reasons)
    return text if tells_apart else ""


def _groups(rows: TargetRows, failing: Rows, passing: Rows) -> list[Rows]:
    """Part rows of one outcome by signature, unless one rule holds for all of them."""
    signed = rows.signed[failing]
    numbers = np.unique(signed)
    if len(numbers) == 1 or len(numbers) > _SIGNATURES or rows.separate(failing, passing, MOST_RULES).exact:
        return [failing]
    return sorted((failing[signed == number] for number in numbers), key=len, reverse=True)


def describe(rows: TargetRows, wanted: Rows, others: Rows, *, exceptions: bool = True) -> list[EntryQueries]:
    """Return what selects all `wanted` rows and none of the `others`; rows of neither may be selected.
    Without `exceptions` in one piece.

    Errors: HarnessFault if the cases cannot be told apart by any query.
    """
    made = _pieces(rows, wanted, others, exceptions)
    _check(rows, made, wanted, others)
    return [selecting for selecting in made if selecting.match]


def _pieces(rows: TargetRows, wanted: Rows, others: Rows, exceptions: bool) -> list[EntryQueries]:
    """Return what selects the `wanted` rows as far as queries can, and none of the `others`."""
    separation = rows.separate(wanted, others, MOST_RULES)
    by_exceptions: dict[tuple[str, ...], list[str]] = {}
    for match, unless in _asked(rows, separation, wanted):
        if unless and not exceptions:
            continue
        by_exceptions.setdefault(unless, []).append(match)
    made = [
        _without(rows, EntryQueries(tuple(match), unless), wanted, others, exceptions)
        for unless, match in by_exceptions.items()
    ]
    left = np.zeros(len(rows.ids), np.bool_)
    left[wanted] = True
    for selecting in made:
        left &= ~selecting.selects(rows)
    if left.any():
        named = tuple(rows.ids[row] for row in np.flatnonzero(left).tolist())
        place = next((n for n, selecting in enumerate(made) if not selecting.unless), None)
        if place is None:
            made.append(EntryQueries(named))
        else:
            made[place] = EntryQueries((*made[place].match, *named))
        made = [_without(rows, selecting, wanted, others, exceptions) for selecting in made]
    return made


def _asked(rows: TargetRows, separation: Separation, wanted: Rows) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the queries of rules, one for each operator with a row for which the rule holds; operators that were not
    run get none."""
    for rule in separation.rules:
        holds = rows.table.all_hold(rule.terms, wanted)
        for operator in sorted({operator_of(rows.ids[row]) for row in wanted[holds].tolist()}):
            others = (term for term in rule.terms if term.column != "operator")
            yield ask((*others, Term("operator", "=", operator)))


def _without(
    rows: TargetRows, selecting: EntryQueries, wanted: Rows, others: Rows, exceptions: bool
) -> EntryQueries:
    """Take back what the queries select of the others: by exceptions, or by leaving out the queries that do
    where these are not allowed."""
    if not exceptions:
        clean = tuple(text for text in selecting.match if not rows.matched([Query.parse(text)])[others].any())
        return EntryQueries(clean)
    wrong = others[selecting.selects(rows)[others]]
    if not len(wrong):
        return selecting
    right = wanted[selecting.selects(rows)[wanted]]
    taken_back = [text for each in _pieces(rows, wrong, right, False) for text in each.match]
    still = wrong[
        ~rows.matched(parse_all(taken_back))[wrong]
    ]  # an id selects the ids that add terms to it: those are then named instead
    return selecting._replace(
        unless=(*selecting.unless, *taken_back, *(rows.ids[row] for row in still.tolist()))
    )


def _check(rows: TargetRows, made: list[EntryQueries], wanted: Rows, others: Rows) -> None:
    selected = np.zeros(len(rows.ids), np.bool_)
    for selecting in made:
        selected |= selecting.selects(rows)
    if not selected[wanted].all() or selected[others].any():
        row = [*wanted[~selected[wanted]].tolist(), *others[selected[others]].tolist()][0]
        raise HarnessFault(
            f"no query tells {rows.ids[row]!r} from the other cases of its kind; write its expectation by hand"
        )


@dataclass
class Update:
    """Edited files, and a summary of the edits in lines."""

    files: dict[Path, EntryFile] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class _SeenRows:
    """The evidence of a run about one entry: rows of each target that ended as expected, that ended differently, and
    that are absent from the run; ids that were not run."""

    kept: dict[str, Rows] = field(default_factory=dict)
    lost: dict[str, Rows] = field(default_factory=dict)
    absent: dict[str, Rows] = field(default_factory=dict)
    unrun: list[str] = field(default_factory=list)


def update(run: RunRows, expectations: Expectations, place: Callable[[str], Path]) -> Update:
    """Return the edits that make the expectations describe the run; `place` names the file that gets the new
    entries of a target."""
    done = Update()
    for located in expectations.entries:
        done.files.setdefault(located.file.path, EntryFile(located.file))
    current = tuple(
        each for located in expectations.entries if (each := _earned(run, located, done)) is not None
    )
    if not run.complete:
        done.notes.append("the run is of some cases only: nothing is written about the others")
    if run.flaky:
        done.notes.append(
            f"{count(run.flaky, 'flaky result')} left aside: what changes between repeats cannot be expected"
        )
    providers = [info.provider for info in run.header.targets.values() if info.unavailable is None]
    for name, rows in run.targets.items():
        if not rows.ids:
            continue
        info = run.header.targets[name]
        known = TargetExpectations(name, tuple(e for e in current if e.entry.when.holds(name, info)))
        unexpected = _unexpected(rows, known, done)
        when = (
            ("provider", info.provider) if providers.count(info.provider) == 1 else ("target", name),
            *(() if run.complete else _release(info)),
        )
        path = place(name)
        for entry in propose(rows, unexpected, when):
            if path not in done.files:
                empty = read(path) if path.exists() else Source(path, label_of(path), (), {})
                done.files[path] = EntryFile(empty)
            done.files[path].add(entry)
            done.notes.append(
                f"added to {label_of(path)}: {entry.expect.value} on {name}: {_few(entry.match)}; "
                f"fill in {', '.join(asked(entry))}"
            )
    return done


def _release(info: TargetInfo) -> tuple[tuple[str, str], ...]:
    """Return the condition that names the release on which some cases were seen."""
    seen = (("onnxruntime", info.onnxruntime), ("directml", info.directml))
    return tuple((name, f"=={version}") for name, version in seen if version is not None)[:1]


def _unexpected(rows: TargetRows, known: TargetExpectations, done: Update) -> NDArray[np.bool_]:
    """Say which rows fail without an entry; one that an entry expects to end otherwise is left to the
    reviewer."""
    unexpected: NDArray[np.bool_] = rows.unexpected.copy()
    otherwise: dict[int, int] = {}
    for row in np.flatnonzero(unexpected).tolist():
        outcome = OUTCOMES[rows.outcomes[row]]
        for position in known.matching(rows.ids[row]):
            located = known.entries[position]
            if located.applies(outcome, anything) and located.entry.expect is not outcome:
                unexpected[row] = False
                otherwise[position] = otherwise.get(position, 0) + 1
                break
    for position, number in otherwise.items():
        ended = count(number, "case ends", "cases end")
        done.notes.append(
            known.entries[position].problem(f"{ended} otherwise on {known.target}: edit the entry")
        )
    return unexpected


def _earned(run: RunRows, located: Located, done: Update) -> Located | None:
    """Return an entry as far as the run bears it out: as it is, narrowed, or None."""
    if located.general or located.entry.sometimes:
        return located  # a case that does otherwise contradicts neither
    seen = _SeenRows()
    applies = False
    for name, rows in run.targets.items():
        info: TargetInfo = run.header.targets[name]
        if not rows.ids or not located.entry.when.holds(name, info):
            continue
        applies = True
        matched = rows.matched(located.queries) & ~rows.matched(located.exceptions)
        ended = rows.outcomes == OUTCOMES.index(located.entry.expect)
        seen.kept[name] = np.flatnonzero(matched & ended)
        seen.lost[name] = np.flatnonzero(matched & ~ended & ~rows.open)
        seen.absent[name] = np.flatnonzero(matched & rows.absent)
        seen.unrun += [rows.ids[row] for row in seen.absent[name].tolist()]
        seen.unrun += filter(located.matches, rows.unrun)
    kept, lost = (sum(map(len, each.values())) for each in (seen.kept, seen.lost))
    all_ran = {query.operator for query in located.queries} <= run.operators
    if not applies or (not lost and (kept or not all_ran)):
        return located
    if not lost and seen.unrun:
        if run.complete:
            done.notes.append(located.problem(f"left as it is: {len(seen.unrun):,} of its cases did not run"))
        return located
    if not kept and not seen.unrun and all_ran:
        why = (
            f"none of its {count(lost, 'case')} ends in {located.entry.expect.value} now"
            if lost
            else "it matches no case"
        )
        done.files[located.file.path].drop(located.position)
        done.notes.append(located.problem(f"dropped: {why}"))
        return None
    return _narrowed(run, located, seen, done)


def _narrowed(run: RunRows, located: Located, seen: _SeenRows, done: Update) -> Located:
    kept_ids = {run.targets[name].ids[row] for name, rows in seen.kept.items() for row in rows.tolist()}
    lost_ids = {run.targets[name].ids[row] for name, rows in seen.lost.items() for row in rows.tolist()}
    if kept_ids & lost_ids:
        done.notes.append(
            located.problem("left as it is: it holds on one target and not on another; narrow its 'when'")
        )
        return located
    edited = done.files[located.file.path]
    queries = tuple(
        query
        for query in located.queries
        if query.operator not in run.operators or any(map(query.matches, (*kept_ids, *seen.unrun)))
    )
    exceptions = list(located.exceptions)
    if len(queries) < len(located.queries):
        edited.set_queries(located.position, "match", [query.text for query in queries])
    for name, lost in seen.lost.items():
        rows = run.targets[name]
        narrowed = replace(located, queries=queries, exceptions=tuple(exceptions))
        still = np.array([row for row in lost.tolist() if narrowed.matches(rows.ids[row])], np.intp)
        if len(still):
            others = np.concatenate([seen.kept[name], seen.absent[name]])
            for selecting in describe(rows, still, others, exceptions=False):
                exceptions += [Query.parse(text) for text in selecting.match]
    if len(exceptions) > len(located.exceptions):
        edited.set_queries(located.position, "unless", [query.text for query in exceptions])
    gone = f"{len(lost_ids):,} of {count(len(lost_ids) + len(kept_ids), 'case')}"
    done.notes.append(located.problem(f"narrowed: {gone} no longer end in {located.entry.expect.value}"))
    return replace(located, queries=queries, exceptions=tuple(exceptions))


def _few(texts: Sequence[str]) -> str:
    return texts[0] + (
        f" and {count(len(texts) - 1, 'more query', 'more queries')}" if len(texts) > 1 else ""
    )
