"""What was run in full, by which an expectation can be found to match nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from harness.operators import OPERATORS
from harness.specs.expectations.located import Located
from harness.specs.reading.load import LoadedSpec, is_whole


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
