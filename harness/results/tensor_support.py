"""Microsoft's tables of tensor support, executed: every operator × tensor × data type × DimensionCount, with
the case behind each cell.

A call is evidence for the cell of a tensor only if everything else in it is documented: all tensors have the
same DimensionCount, input and output the same data type, and the other tensors a data type of their tables.
Only cases that the documents allow count a documented cell as rejected, since others may break another rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from msgspec import UNSET

from harness.model.case import BEYOND, Validity
from harness.model.header import Header
from harness.model.reference.feature_levels import (
    documented_tensor,
    level_key,
    level_order,
    required_tensors,
    table_levels,
    tensors_documented,
)
from harness.model.result import Result
from harness.model.verdict import Outcome

DATA_TYPES = (
    "FLOAT64", "FLOAT32", "FLOAT16", "INT64", "INT32", "INT16", "INT8", "UINT64", "UINT32", "UINT16", "UINT8",
)  # fmt: skip
"""DML_TENSOR_DATA_TYPE, in the order of the documents' tables."""
RANKS = tuple(range(1, 10))
"""DimensionCounts: all that the documents name, and the one above."""
FLOOR = (
    "A minimum feature level that is given when the device is created is a floor, not a cap: the DLL does all that it can whatever the "
    "level. So each target is held against the highest level that its device reports; lower levels are reached with older DLLs alone."
)
_OUTPUT, _INPUT = "OutputTensor", "InputTensor"
_RAN = frozenset({Outcome.PASS, Outcome.MISMATCH, Outcome.ACCEPTED_INVALID, Outcome.ORACLE_ERROR})
_REFUSED = frozenset({Outcome.REJECTED, Outcome.UNSUPPORTED})
_FAILED = frozenset({Outcome.CRASH, Outcome.TIMEOUT})
"""No refusal: a documented cell counts as rejected by it, one that is not documented is not as documented by
it."""


class Status(str, Enum):
    """One cell of the documents compared with the behaviour of a DLL."""

    AS_DOCUMENTED = "as documented"
    REJECTED = "documented, rejected"
    ACCEPTED = "undocumented, accepted"
    NOT_RUN = "not run"


class SupportKey(NamedTuple):
    """A cell: DML_OPERATOR without its prefix, tensor, DML_TENSOR_DATA_TYPE, DimensionCount."""

    operator: str
    tensor: str
    dtype: str
    rank: int


class SupportCell(NamedTuple):
    """`since` is the level whose table first has the cell, None for none; `result` the case behind the
    status, None where none ran."""

    key: SupportKey
    documented: bool
    since: str | None
    status: Status
    result: Result | None


class _Call(NamedTuple):
    """A call's tensors: (name, data type, DimensionCount) each."""

    operator: str
    tensors: tuple[tuple[str, str, int], ...]


@dataclass
class _Seen:
    """The first result of each kind; of those that ran, a pass before any other."""

    ran: Result | None = None
    refused: Result | None = None
    failed: Result | None = None


class TensorSupport:
    """Collects the outcomes of the calls that results name."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._seen: dict[tuple[str, str, bool], _Seen] = defaultdict(_Seen)

    def add(self, result: Result) -> None:
        """Take one result; those that name no call say nothing."""
        if result.call is UNSET:
            return
        seen = self._seen[result.target, result.call, result.validity is Validity.VALID]
        if result.outcome in _RAN:
            if seen.ran is None or (result.outcome is Outcome.PASS and seen.ran.outcome is not Outcome.PASS):
                seen.ran = result
        elif result.outcome in _REFUSED and seen.refused is None:
            seen.refused = result
        elif result.outcome in _FAILED and seen.failed is None:
            seen.failed = result

    @property
    def targets(self) -> list[str]:
        """The targets whose results name calls."""
        named = {target for target, _, _ in self._seen}
        return [target for target in self._header.targets if target in named]

    def level(self, target: str) -> str:
        """Return the feature level to compare a target with: the one that its device reports, otherwise the
        highest published."""
        reported = self._header.targets[target].max_feature_level
        return reported or max((level for level in level_order() if level != BEYOND), key=level_key)

    def cells(self, target: str) -> list[SupportCell]:
        """Return every cell of the tables of the operators that the target's results name, and of what
        borders on them."""
        evidence: dict[SupportKey, dict[bool, _Seen]] = {}
        operators: set[str] = set()
        level = self.level(target)
        for (where, text, valid), seen in self._seen.items():
            call = _parse(text)
            if where != target or call is None:
                continue
            operators.add(call.operator)
            for key in _speaks_of(call, level):
                best = evidence.setdefault(key, {}).setdefault(valid, _Seen())
                if seen.ran is not None and (best.ran is None or best.ran.outcome is not Outcome.PASS):
                    best.ran = seen.ran
                best.refused = best.refused or seen.refused
                best.failed = best.failed or seen.failed
        return [_cell(key, level, evidence.get(key, {})) for key in _keys(sorted(operators))]


def _keys(operators: Iterable[str]) -> Iterator[SupportKey]:
    for operator in operators:
        for tensor in tensors_documented(operator):
            for dtype in DATA_TYPES:
                for rank in RANKS:
                    yield SupportKey(operator, tensor, dtype, rank)


def _cell(key: SupportKey, level: str, evidence: dict[bool, _Seen]) -> SupportCell:
    since = next((each for each in _levels(key.operator) if _documented(key, each)), None)
    documented = _documented(key, level)
    valid, others = evidence.get(True, _Seen()), evidence.get(False, _Seen())
    ran = valid.ran or others.ran
    if documented:
        if ran is not None:
            return SupportCell(key, True, since, Status.AS_DOCUMENTED, ran)
        behind = valid.refused or valid.failed
        return SupportCell(key, True, since, Status.NOT_RUN if behind is None else Status.REJECTED, behind)
    if ran is not None:
        return SupportCell(key, False, since, Status.ACCEPTED, ran)
    refused = valid.refused or others.refused
    return SupportCell(
        key, False, since, Status.NOT_RUN if refused is None else Status.AS_DOCUMENTED, refused
    )


@lru_cache(maxsize=256)
def _levels(operator: str) -> tuple[str, ...]:
    return tuple(level for level in table_levels([f"DML_OPERATOR_{operator}"]) if level != BEYOND)


def _documented(key: SupportKey, level: str) -> bool:
    least, most, dtypes = documented_tensor(key.operator, key.tensor, level)
    return least <= key.rank <= most and key.dtype in dtypes


def _speaks_of(call: _Call, level: str) -> Iterator[SupportKey]:
    """Yield the cells that a call is evidence for."""
    ranks = {rank for _, _, rank in call.tensors}
    dtypes = {name: dtype for name, dtype, _ in call.tensors}
    if len(ranks) != 1 or dtypes.get(_INPUT) != dtypes.get(_OUTPUT):
        return
    rank = ranks.pop()
    unlisted = {
        name
        for name, dtype in dtypes.items()
        if dtype not in documented_tensor(call.operator, name, level)[2]
    }
    for name, dtype in dtypes.items():
        linked = {_INPUT, _OUTPUT} if name in (_INPUT, _OUTPUT) else {name}
        if unlisted <= linked:
            yield SupportKey(call.operator, name, dtype, rank)


@lru_cache(maxsize=4096)
def _parse(text: str) -> _Call | None:
    """Read `GATHER_ND1 InputTensor=FLOAT32[4] …`; None if it is no call of a documented operator.

    An optional tensor may be absent; those of an array are named `InputTensors.0`, `InputTensors.1` and so
    on.
    """
    operator, *terms = text.split()
    tensors = []
    for term in terms:
        name, _, rest = term.partition("=")
        dtype, _, rank = rest.partition("[")
        tensors.append((name, dtype, int(rank.removesuffix("]"))))
    named = {name.partition(".")[0] for name, *_ in tensors}
    if named and required_tensors(operator) <= named <= set(tensors_documented(operator)):
        return _Call(operator, tuple(tensors))
    return None
