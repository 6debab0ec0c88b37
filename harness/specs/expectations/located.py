"""An expectation with its place in a file: the cases that it matches, and its problems before any run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import NamedTuple

from harness.model.header import Expectation
from harness.model.query import Query
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

    def unfilled(self) -> list[str]:
        """Return a problem if a reviewer has yet to state the outputs, the reason or a link."""
        entry = self.entry
        missing = [
            name
            for name, text in (("gives", entry.gives), ("reason", entry.reason), ("link", entry.link))
            if text is not None and text.strip().upper() == TODO
        ]
        return [self.problem(f"not reviewed yet: fill in {', '.join(missing)}")] if missing else []

    def expired(self, today: date) -> list[str]:
        """Return a problem if the entry's date has passed."""
        expires = self.entry.expires
        return (
            [self.problem(f"expired on {expires}; look whether it still holds")]
            if expires is not None and expires < today
            else []
        )

    def speaks_of(self, operators: Collection[str]) -> bool:
        """Say whether the entry can match a case of one of these operators."""
        return any(query.speaks_of(name) for query in self.queries for name in operators)

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
        """Say whether an entry that matches nothing here is wrong."""
        if located.built_in:
            return self.whole
        return located.speaks_of(self.operators) or not located.speaks_of(
            OPERATORS.keys() - set(self.operators)
        )
