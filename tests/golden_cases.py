"""The cases of the first three operators as hashes, so that a change of the machinery that alters one of them
is seen.

`python -m tests.golden_cases --write` renews `golden/cases.txt`: one line for each entry of a spec at an
opset, with the number of its cases and the SHA-256 over their rows in the order of ids. A row is id, validity
and level; of one case in sixteen, told by its id, and of all that are written out also the hashes of its
inputs and of what is expected.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from hashlib import sha256
from pathlib import Path

from harness.model.case import Case, Tensor, Validity
from harness.model.expected import Exact
from harness.model.target_info import CPU
from harness.run.oracle import oracle
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs, own_spec
from harness.targets.frames import tensor_bytes
from tests.prepared import prepared_case

COLLECTED = ("GatherElements", "GatherND", "Round")
FILE = Path(__file__).parent / "golden" / "cases.txt"
_SAMPLE = 16


def lines() -> list[str]:
    """Return the lines of the file."""
    found: dict[str, list[str]] = defaultdict(list)
    for case in expand(load_specs([own_spec(name) for name in COLLECTED])):
        found[case.id.partition(";")[0]].append(row(case))
    return [
        f"{entry} {len(rows)} {sha256(chr(10).join(sorted(rows)).encode()).hexdigest()}"
        for entry, rows in sorted(found.items())
    ]


def row(case: Case) -> str:
    """Write a case."""
    told = f"{case.id}|{case.validity.value}|{case.levels.get('directml')}"
    if case.literals is None and sha256(case.id.encode()).digest()[0] % _SAMPLE:
        return told
    prepared = prepared_case(case)
    wanted = oracle(prepared, CPU) if case.validity is not Validity.INVALID else None
    return f"{told}|{_hash(prepared.inputs)}|{'' if wanted is None else _hash(tuple(_exact(each) for each in wanted))}"


def _exact(expected: object) -> Tensor:
    assert isinstance(expected, Exact)
    return expected.tensor


def _hash(tensors: tuple[Tensor, ...]) -> str:
    total = sha256()
    for tensor in tensors:
        total.update(f"{tensor.dtype}{tensor.array.shape}".encode() + tensor_bytes(tensor))
    return total.hexdigest()


def main() -> None:
    """Write the file, or say which of its lines are no longer right."""
    if "--write" in sys.argv[1:]:
        FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8", newline="\n")
        return
    kept = set(FILE.read_text(encoding="utf-8").splitlines())
    for line in sorted(kept ^ set(lines())):
        print("-" if line in kept else "+", line)


if __name__ == "__main__":
    main()
