"""Keeps which outputs passed in the user's cache, so that the same outputs are not held against the oracle again: a
provider that did not change costs no oracle.

A row is the digest of a case and of its outputs to the bit; its file is named after everything else that decides: code,
releases, processor, seed. Other outputs, and all that does not pass, are judged anew, and so is a random part of the rest.
A file that is absent, damaged or cannot be written costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from hashlib import blake2b, sha256
from pathlib import Path

import msgspec
import numpy as np

from harness.model.cache_folder import cache_folder
from harness.model.case import Case, Tensor, Validity
from harness.model.errors import HarnessFault
from harness.model.result import Accuracy, NanBits
from harness.model.verdict import Outcome
from harness.operators import OPERATORS
from harness.run.judge import Compare, Judgement, compared
from harness.run.oracle import declared_by
from harness.specs.cache import digests, kept, kept_plans
from harness.specs.expand import Plan
from harness.specs.selection import ChosenCases, Selection
from harness.targets.batches import FAKE
from harness.targets.execution import Prepared
from harness.targets.frames import tensor_bytes

try:
    import sqlite3
except ImportError:  # a Python that was built without it
    sqlite3 = None  # type: ignore[assignment]

_ROOMS = "compile", "run", "targets", "worker"
"""What judgements follow from besides the rooms of plans, whose digest is at hand."""
_DIGEST = 16
_TOGETHER = 2000
"""Rows that are written in one transaction."""
_OLD = 2
"""Files that stay beside the one in use."""

Row = tuple[Accuracy | None, bool, NanBits | None, tuple[int, int] | None]


@contextlib.contextmanager
def judging(selection: Selection | ChosenCases, provider: str, seed: int) -> Iterator[Compare]:
    """Compare the outputs of one provider with what is kept of a selection's cases. The fake target is the formula
    itself, and costs it anyway."""
    if sqlite3 is None or provider == FAKE or not isinstance(selection, Selection):
        yield compared
        return
    judgements = _KeptJudgements(selection.plan, provider, seed)
    try:
        yield judgements.compared
    finally:
        judgements.close()


class _KeptJudgements:
    """Judges outputs of one provider; `close` writes what is new."""

    def __init__(self, plan: Plan, provider: str, seed: int) -> None:
        self._provider = provider
        self._plan = plan
        self._starts: dict[str, bytes] = {}
        self._new: list[tuple[bytes, bytes]] = []
        self._again = random.randrange(256)
        self._decode = msgspec.msgpack.Decoder(Row).decode
        self._database: sqlite3.Connection | None = None
        self._path = _path(seed)
        with self._harmless():
            self._database = _opened(self._path)

    def compared(self, prepared: Prepared, outputs: tuple[Tensor, ...], provider: str) -> Judgement:
        """Hold the outputs of `provider` against the oracle's, or remember that they pass. Errors: HarnessFault where
        a kept pass is none."""
        start = self._start(prepared.case) if self._database is not None else b""
        if not start:
            return compared(prepared, outputs, provider)
        key = _key(start, prepared.case, outputs)
        found = self._found(key)
        if found is not None and key[0] != self._again:
            accuracy, empty, nans, sampled = found
            return Judgement(
                Outcome.PASS, provider, accuracy=accuracy, empty=empty, nans=nans, sampled=sampled
            )
        judgement = compared(prepared, outputs, provider)
        row = (judgement.accuracy, judgement.empty, judgement.nans, judgement.sampled)
        if found is not None and (judgement.outcome, row) != (Outcome.PASS, found):
            raise HarnessFault(
                f"{prepared.case.id}: outputs that passed before do not pass as they did: delete {self._path}"
            )
        if found is None and judgement.outcome is Outcome.PASS:
            self._new.append((key, msgspec.msgpack.encode(row)))
            if len(self._new) >= _TOGETHER:
                self._write()
        return judgement

    def close(self) -> None:
        """Write what is new."""
        self._write()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _found(self, key: bytes) -> Row | None:
        found: list[Row] = []
        with self._harmless():
            assert self._database is not None
            rows = self._database.execute("SELECT row FROM passes WHERE key = ?", (key,))
            found = [self._decode(row) for (row,) in rows]
        return found[0] if found else None

    def _write(self) -> None:
        with self._harmless():
            if self._database is not None and self._new:
                with self._database:
                    self._database.executemany("INSERT OR REPLACE INTO passes VALUES (?, ?)", self._new)
        self._new = []

    @contextlib.contextmanager
    def _harmless(self) -> Iterator[None]:
        """Do without the file from where it fails on, and remove it if it is damaged."""
        try:
            yield
        except (OSError, sqlite3.Error, msgspec.DecodeError) as error:
            if self._database is not None:
                self._database.close()
                self._database = None
            if not isinstance(error, OSError | sqlite3.OperationalError):
                with contextlib.suppress(OSError):
                    self._path.unlink()

    def _start(self, case: Case) -> bytes:
        """Return the digest of what decides about all cases of an operator; empty where that is not files alone."""
        if case.validity is not Validity.VALID:
            return b""
        if case.operator not in self._starts:
            specs = [spec for spec in self._plan.specs if spec.model.operator == case.operator]
            own = all(kept_plans.keeps(spec, OPERATORS[case.operator]) for spec in specs)
            text = declared_by(self._provider).encode()
            found = sha256(text + b"".join(map(kept_plans.digest, specs))).digest() if own else b""
            self._starts[case.operator] = found
        return self._starts[case.operator]


def _key(start: bytes, case: Case, outputs: tuple[Tensor, ...]) -> bytes:
    total = blake2b(start, digest_size=_DIGEST)
    total.update(case.id.encode("utf-8", "surrogatepass"))
    for output in outputs:
        total.update(f"\0{output.dtype}{output.array.shape}".encode())
        total.update(tensor_bytes(output))
    return total.digest()


def _path(seed: int) -> Path:
    """Return the file for the present code and processor."""
    features = np.show_config(mode="dicts").get("SIMD Extensions")
    code = digests.code(*kept.ROOMS) + digests.code(*_ROOMS)
    total = sha256(code + f"{seed} {features}".encode())
    return cache_folder("judgements") / f"passes-{total.hexdigest()[:16]}.sqlite"


def _opened(path: Path) -> sqlite3.Connection:
    """Open a file; where it is new, few others stay."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        there = sorted(path.parent.glob("passes-*.sqlite"), key=lambda each: -each.stat().st_mtime)
        for old in there[_OLD:]:
            for each in old.parent.glob(f"{old.name}*"):
                each.unlink(missing_ok=True)
    database = sqlite3.connect(path, check_same_thread=False)  # a generator may be ended by another thread
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("CREATE TABLE IF NOT EXISTS passes (key BLOB PRIMARY KEY, row BLOB) WITHOUT ROWID")
    return database
