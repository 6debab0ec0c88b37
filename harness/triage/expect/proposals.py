"""Proposes expectations: the fewest entries that describe what fails, each checked against every case of the
run.

An entry covers one outcome: all results with it if one rule holds for them, else those of one signature. Its
queries select every case of it, and none that ended in another way; if no short rule can do that, the queries
name single cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.model.caseid import operator_of
from harness.model.errors import HarnessFault
from harness.model.query import Query, parse_all
from harness.model.verdict import Outcome
from harness.results.rules.feature_table import Rows
from harness.results.rules.query_features import ask
from harness.results.rules.separation import Separation
from harness.results.rules.terms import Term
from harness.triage.expect.entry_file import NewEntry
from harness.triage.expect.run_rows import OUTCOMES, TargetRows

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
                told = [text for row, text in rows.messages.items() if selected[row]]
                yield NewEntry(selecting.match, selecting.unless, when, outcome, shared_message(told))


def shared_message(messages: Iterable[str]) -> str:
    """Return the longest run of words that the messages of errors share in the first line of the reason; "" for one that
    is too short to tell a reason from another."""
    reasons = {_BEFORE_REASON.sub("", each, count=1).strip().partition("\n")[0] for each in messages}
    shared: list[str] = []
    for number, reason in enumerate(sorted(reasons)):
        found = SequenceMatcher(None, shared, words := reason.split(), autojunk=False).find_longest_match()
        shared = shared[found.a : found.a + found.size] if number else words
    text = " ".join(shared[:_WORDS])
    told = len(text) >= _LEAST and text.isprintable() and all(text in reason for reason in reasons)
    return text if told else ""


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
        holds = np.logical_and.reduce(
            [np.ones(len(wanted), np.bool_), *(rows.table.mask(term, wanted) for term in rule.terms)]
        )
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
