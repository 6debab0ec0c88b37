"""Applies the cross-check to the failing results of a run, line by line of its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from harness.model.case import Validity
from harness.model.header import Header
from harness.model.result import Result
from harness.model.result_key import result_key
from harness.model.verdict import NOT_EXECUTED, conforms
from harness.results.cross_check import (
    COMPOSED,
    Agreement,
    CheckedResult,
    checked_pair,
    compare,
    composed,
    did,
)


class CrossChecked:
    """Holds both targets' results of a case against each other; one result a case is remembered until the
    other one comes."""

    def __init__(self, header: Header) -> None:
        self.pair = checked_pair(header)
        self._first: dict[bytes, tuple[CheckedResult, int]] = {}
        self._known: dict[tuple[CheckedResult, int], tuple[CheckedResult, int]] = {}
        self._said: dict[int, Agreement] = {}

    def add(self, line: int, result: Result) -> None:
        """Take one result of any target, which stands on a line of the run file."""
        if self.pair is None or result.target not in self.pair:
            return
        if result.outcome in NOT_EXECUTED or result.validity is Validity.UNSPECIFIED:
            return
        key = result_key(result.case, 0)
        first = self._first.pop(key, None)
        if first is None:
            conforming = result.conforms
            mine = (did(result), 0 if conforming else line)
            self._first[key] = self._known.setdefault(mine, mine) if conforming else mine
            return
        provider, api = (first[0], did(result)) if result.target == self.pair[1] else (did(result), first[0])
        agreement = COMPOSED if composed(result.case) else compare(provider, api)
        for each, where in (first, (did(result), line)):
            if not conforms(each.validity, each.outcome):
                self._said[where] = agreement

    def of(self, target: str, lines: Iterable[int]) -> tuple[str, Counter[Agreement]]:
        """Return which target the cross-check holds this one against, and what the two say of the failing results on some
        lines; ("", {}) without one."""
        if self.pair is None or target not in self.pair:
            return "", Counter()
        other = self.pair[1] if target == self.pair[0] else self.pair[0]
        return other, Counter(self._said[line] for line in lines if line in self._said)
