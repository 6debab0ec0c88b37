"""No case of the first three operators changes without being seen (`golden_cases`)."""

from __future__ import annotations

import msgspec

from harness.model.case import Validity
from harness.specs.expand import expand
from harness.specs.reading.load import default_folder, load_specs
from tests.golden_cases import FILE, lines, row


def test_the_cases_are_those_of_the_file() -> None:
    kept = FILE.read_text(encoding="utf-8").splitlines()
    assert sum(int(line.split()[1]) for line in kept) == 51_724
    assert lines() == kept


def test_a_row_tells_whatever_a_case_is_judged_by() -> None:
    case = next(
        case for case in expand(load_specs([default_folder() / "Round.yaml"])) if case.literals is not None
    )
    assert case.literals is not None
    (array,) = case.literals
    other = array.copy()
    other.reshape(-1).view("u1")[0] ^= 1
    changes = (
        {"id": case.id + ";x"},
        {"validity": Validity.UNSPECIFIED},
        {"levels": {"directml": "9_9"}},
        {"literals": (other,)},
    )
    rows = {row(msgspec.structs.replace(case, **change)) for change in changes}
    assert len(rows | {row(case)}) == 1 + len(changes)
