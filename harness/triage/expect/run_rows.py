"""The results of a run as rows of a table with features that queries can select: the basis for checking and
proposing expectations."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Validity
from harness.model.caseid import operator_of
from harness.model.errors import NothingRan
from harness.model.header import Header
from harness.model.query import Query
from harness.model.result import Result, inexpressible
from harness.model.result_key import result_key
from harness.model.verdict import NOT_EXECUTED, Outcome, Verdict
from harness.results.numbering import Numbering
from harness.results.result_signature import ResultSignature, signature
from harness.results.rules.feature_table import FeatureTable, Rows
from harness.results.rules.features import names_asked, numbers_asked
from harness.results.rules.separation import Population, Separation
from harness.results.runfile import RunReader
from harness.specs.expectations.expectation_entry import Entry
from harness.specs.expectations.expectations import Expectations
from harness.specs.expectations.target_expectations import Located
from harness.specs.selection import NO_NEW_PAIR, NOT_ASKED, OTHER_SHARD

OUTCOMES = tuple(Outcome)
_ABSENT = len(OUTCOMES)
"""Stands where `OUTCOMES` have a position, of a case that the run does not have."""


class TargetRows:
    """The results of one target, row by row; the arrays have equal length."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ids: list[str] = []
        self.unrun: list[str] = []
        """Cases that the target's release or its API cannot be asked."""
        self.messages: dict[int, str] = {}
        """What the errors of unexpected refusals and declared shapes say, by row."""
        self.table = FeatureTable(
            (numbers_asked, names_asked, lambda _level: {})
        )  # no query asks for a level
        self._outcomes = array("B")
        self._unexpected = array("B")
        self._open = array("B")
        self._signatures = array("I")
        self.signatures: Numbering[ResultSignature] = Numbering()

    def add(self, result: Result, *, known: bool) -> None:
        """Take one result; `known` if an entry explains it. An oracle error is nothing to expect of a target."""
        outcome, unspecified = result.outcome, result.validity is Validity.UNSPECIFIED
        unexpected = not (known or result.conforms or outcome is Outcome.ORACLE_ERROR)
        if unexpected and outcome in (Outcome.REJECTED, Outcome.MISMATCH) and result.error:
            self.messages[len(self.ids)] = result.error.message
        signed = self.signatures[signature(result).pooled]
        self._row(result.case, OUTCOMES.index(outcome), unexpected, unspecified, signed)

    def add_absent(self, case: str) -> None:
        """Take a case that the run does not have: no query may select it."""
        self._row(case, _ABSENT, False, True, 0)

    def _row(self, case: str, outcome: int, unexpected: bool, unspecified: bool, signed: int) -> None:
        self.ids.append(case)
        self.table.add(case, "")
        self._outcomes.append(outcome)
        self._unexpected.append(unexpected)
        self._open.append(unspecified)
        self._signatures.append(signed)

    @property
    def outcomes(self) -> NDArray[np.uint8]:
        """Positions in `OUTCOMES`."""
        return np.frombuffer(self._outcomes, np.uint8)

    @property
    def unexpected(self) -> NDArray[np.bool_]:
        """Where the result does not conform and no entry explains it."""
        return np.frombuffer(self._unexpected, np.uint8).astype(np.bool_)

    @property
    def open(self) -> NDArray[np.bool_]:
        """Where any result would do: the case is unspecified, or absent."""
        return np.frombuffer(self._open, np.uint8).astype(np.bool_)

    @property
    def absent(self) -> NDArray[np.bool_]:
        """Where the run does not have the case."""
        return np.asarray(self.outcomes == _ABSENT)

    @property
    def signed(self) -> NDArray[np.uint32]:
        """Numbers of the signatures."""
        return np.frombuffer(self._signatures, np.uint32)

    def matched(self, queries: Iterable[Query]) -> NDArray[np.bool_]:
        """Say which rows any of some queries selects."""
        wanted = tuple(queries)
        return np.fromiter(
            (any(query.matches(case) for query in wanted) for case in self.ids), np.bool_, len(self.ids)
        )

    def separate(self, failing: Rows, passing: Rows, most: int) -> Separation:
        """Return rules for some rows against others."""
        return Population(self.table, passing).separate(failing, most)


class RunRows:
    """All executed results of a run, by target; `complete` if it has every case of its operators."""

    def __init__(self, run: RunReader, expectations: Expectations) -> None:
        """Read a run. Errors: UsageError for a damaged one, NothingRan for one without results."""
        self.header: Header = run.header
        self.targets = {name: TargetRows(name) for name in run.header.targets}
        places = {name: place for place, name in enumerate(self.targets)}
        entries = {name: expectations.for_target(name, info) for name, info in run.header.targets.items()}
        then = [
            located.entry
            for located in expectations.entries
            if located.stated() in run.header.expectations.values()
        ]
        self._seen: set[bytes] = set()
        self.flaky = 0
        """Results that are left out, because a flaky case cannot be expected to do anything."""
        beyond_api = 0
        for line, result in enumerate(run, start=2):
            key = result_key(result.case, places[result.target])
            if key in self._seen:
                raise run.twice(line, result)
            self._seen.add(key)
            self.flaky += result.flaky
            beyond_api += inexpressible(result)
            if result.outcome in NOT_EXECUTED:
                self.targets[result.target].unrun.append(result.case)
            elif not result.flaky:
                known = entries[result.target].record(
                    result.case,
                    result.outcome,
                    conforms=result.conforms,
                    beyond=result.beyond,
                    allows=partial(_allows, result, then),
                )
                expected = known is not None and known.expect is result.outcome
                self.targets[result.target].add(result, known=expected)
        self.operators = {operator_of(case) for rows in self.targets.values() for case in rows.ids}
        if not self.operators:
            raise NothingRan(f"{run.path}: nothing ran, so nothing can be expected of it")
        asked, merged, end = run.header.selection, run.header.merged, run.end
        some = {NOT_ASKED, OTHER_SHARD}
        if asked is None or asked.select == "pairwise":
            some.add(NO_NEW_PAIR)  # of a spec's own sweeps it counts what no run has
        self.complete = (
            end is not None
            and not run.truncated
            and not some & end.left_out.keys()
            and not (merged is not None and merged.missing)
            and len(self._seen) == end.selected + beyond_api
        )

    def lacks(self, planned: Iterable[str]) -> None:
        """Take the planned cases without a result in the run; their outcomes are unknown."""
        ran = [(place, rows) for place, rows in enumerate(self.targets.values()) if rows.ids]
        for case in planned:
            for place, rows in ran:
                if result_key(case, place) not in self._seen:
                    rows.add_absent(case)


def _allows(result: Result, then: Sequence[Entry], entry: Entry) -> bool:
    """Say whether an entry may explain a result; an entry that the run knew may do so only if the result was
    expected."""
    return result.verdict is Verdict.EXPECTED or all(entry is not each for each in then)


class RunOutcomes:
    """The outcomes of a run by target; those of cases that were not run or have no defined result are unknown."""

    def __init__(self, reader: RunReader) -> None:
        self._targets = reader.header.targets
        self._by_target: dict[str, dict[str, Outcome]] = {name: {} for name in self._targets}
        for result in reader:
            if result.validity is not Validity.UNSPECIFIED and result.outcome not in NOT_EXECUTED:
                self._by_target[result.target][result.case] = result.outcome

    def otherwise(self, located: Located, case_id: str) -> bool | None:
        """Say whether a case does other than the entry expects, on a target of the entry; None if none ran
        it."""
        known = [
            self._by_target[name][case_id] is not located.entry.expect
            for name, info in self._targets.items()
            if located.entry.when.holds(name, info) and case_id in self._by_target[name]
        ]
        return any(known) if known else None
