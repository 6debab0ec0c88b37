"""The results of a run as rows of a table with features that queries can select: the basis for checking and
proposing expectations."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Validity
from harness.model.caseid import operator_of
from harness.model.errors import NothingRan
from harness.model.header import Header
from harness.model.query import Query
from harness.model.result_key import result_key
from harness.model.verdict import NOT_EXECUTED, Outcome, conforms
from harness.results.compare.comparison import twice
from harness.results.numbering import Numbering
from harness.results.result_signature import ResultSignature, signature
from harness.results.rules.feature_table import FeatureTable, Rows
from harness.results.rules.query_features import level_asked, names_asked, numbers_asked
from harness.results.rules.separation import Population, Separation
from harness.results.runfile import RunReader

_PARTIAL = frozenset({"not in the query", "in another shard", "adds no new pair"})
OUTCOMES = tuple(Outcome)


class TargetRows:
    """What one target did, row by row; arrays are of one length."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ids: list[str] = []
        self.unrun: list[str] = []
        """Cases that did not run: nothing is known of them."""
        self.table = FeatureTable((numbers_asked, names_asked, level_asked))
        self._outcomes = array("B")
        self._fails = array("B")
        self._open = array("B")
        self._signatures = array("I")
        self.signatures: Numbering[ResultSignature] = Numbering()

    def add(self, case: str, validity: Validity, outcome: Outcome, found: ResultSignature) -> None:
        """Take one result."""
        self.ids.append(case)
        self.table.add(case, "")
        self._outcomes.append(OUTCOMES.index(outcome))
        self._fails.append(not conforms(validity, outcome))
        self._open.append(validity is Validity.UNSPECIFIED)
        self._signatures.append(self.signatures[found.pooled])

    @property
    def outcomes(self) -> NDArray[np.uint8]:
        """Positions in `OUTCOMES`."""
        return np.frombuffer(self._outcomes, np.uint8)

    @property
    def fails(self) -> NDArray[np.bool_]:
        """Where the result does not conform."""
        return np.frombuffer(self._fails, np.uint8).astype(np.bool_)

    @property
    def open(self) -> NDArray[np.bool_]:
        """Where the case is unspecified."""
        return np.frombuffer(self._open, np.uint8).astype(np.bool_)

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
    """All executed results of a run, by target."""

    def __init__(self, run: RunReader) -> None:
        """Read a run. Errors: UsageError for a damaged one, NothingRan for one without results."""
        self.header: Header = run.header
        self.targets = {name: TargetRows(name) for name in run.header.targets}
        places = {name: place for place, name in enumerate(self.targets)}
        seen: set[bytes] = set()
        self.flaky = 0
        """Results that are left out, because a flaky case cannot be expected to do anything."""
        for line, result in enumerate(run, start=2):
            key = result_key(result.case, places[result.target])
            if key in seen:
                raise twice(run, line, result)
            seen.add(key)
            self.flaky += result.flaky
            if result.outcome in NOT_EXECUTED:
                self.targets[result.target].unrun.append(result.case)
            elif not result.flaky:
                self.targets[result.target].add(
                    result.case, result.validity, result.outcome, signature(result)
                )
        self.operators = {operator_of(case) for rows in self.targets.values() for case in rows.ids}
        if not self.operators:
            raise NothingRan(f"{run.path}: nothing ran, so nothing can be expected of it")
        self.complete = run.end is not None and not run.truncated and not _PARTIAL & run.end.left_out.keys()
