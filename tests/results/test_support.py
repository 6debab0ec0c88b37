from __future__ import annotations

import pytest

from harness.model.case import BEYOND
from harness.model.verdict import Outcome
from harness.results import support_answer
from harness.results.support import Support, support
from harness.results.tables import tabulate
from tests import synthetic
from tests.synthetic import CPU, DML

FLOAT = "GatherND@13:sweep=a;data=float32[2];indices=int64[1]"
BFLOAT = "GatherND@13:sweep=a;data=bfloat16[2];indices=int64[1]"
NARROW = "GatherND@13:sweep=a;data=float32[2];indices=int32[1]"
INT64 = "GatherND@13:sweep=a;data=int64[2];indices=int64[1]"


def rows(*given: tuple[str, str, str, Outcome]) -> list[Support]:
    targets = {"cpu": CPU, "dml": DML}
    results = [
        synthetic.result(case, outcome, target=target, levels={"directml": level})
        for case, target, level, outcome in given
    ]
    return support(tabulate(synthetic.header(targets), results, synthetic.end_of(results)))


@pytest.mark.parametrize(
    ("given", "documented", "registered", "measured", "disagreements"),
    [
        ((FLOAT, "dml", "2_1", Outcome.PASS), ("2_1",), "yes", "yes", ()),
        ((FLOAT, "dml", "2_1", Outcome.MISMATCH), ("2_1",), "yes", "yes", ()),
        ((FLOAT, "dml", "2_1", Outcome.UNSUPPORTED), ("2_1",), "yes", "no", ("registered, but not taken",)),
        ((FLOAT, "dml", BEYOND, Outcome.REJECTED), (BEYOND,), "yes", "no", ()),
        ((FLOAT, "cpu", "2_1", Outcome.CRASH), ("2_1",), "yes", "unclear", ()),
        ((FLOAT, "dml", BEYOND, Outcome.UNSUPPORTED), (BEYOND,), "yes", "no", ()),
        (
            (FLOAT, "dml", BEYOND, Outcome.PASS),
            (BEYOND,),
            "yes",
            "yes",
            ("passes beyond the documented tables",),
        ),
        (
            (NARROW, "dml", "3_0", Outcome.UNSUPPORTED),
            ("3_0",),
            "no",
            "no",
            ("documented from 3_0, but not registered",),
        ),
        ((NARROW, "cpu", "3_0", Outcome.UNSUPPORTED), ("3_0",), "no", "no", ()),
        ((NARROW, "cpu", "3_0", Outcome.PASS), ("3_0",), "no", "yes", ("taken, but not registered",)),
        ((BFLOAT, "cpu", BEYOND, Outcome.PASS), (BEYOND,), "yes", "yes", ()),
        ((INT64, "dml", "4_1", Outcome.UNAVAILABLE), ("4_1",), "yes", "nothing ran", ()),
    ],
)
def test_one_kind(
    given: tuple[str, str, str, Outcome],
    documented: tuple[str, ...],
    registered: str,
    measured: str,
    disagreements: tuple[str, ...],
) -> None:
    (row,) = rows(given)
    assert (row.documented, row.registered, row.measured, row.disagreements) == (
        documented,
        registered,
        measured,
        disagreements,
    )


def test_a_variant_says_nothing_of_the_operators_kernel() -> None:
    assert rows((f"{FLOAT};variant=other", "cpu", "2_1", Outcome.PASS)) == []


def test_kinds_that_agree_in_everything_are_one_row() -> None:
    (row,) = rows(
        (FLOAT, "cpu", "2_1", Outcome.PASS), (FLOAT.replace("float32", "int8"), "cpu", "2_1", Outcome.PASS)
    )
    assert row.dtypes == ("int8", "float32")
    assert row.tally.correct == 2


def test_a_kind_taken_only_in_part() -> None:
    (row,) = rows((FLOAT, "cpu", "2_1", Outcome.PASS), (f"{FLOAT};axis=1", "cpu", "2_1", Outcome.NOT_PLACED))
    assert row.measured == "partly"
    assert row.disagreements == ("registered, but not always taken",)


def test_an_answer_compares_all_its_operators_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr(support_answer, "support", lambda tables: compared.append(tables) or support(tables))
    results = [
        synthetic.result(case, Outcome.PASS, target=target, levels={"directml": "2_1"})
        for case in (FLOAT, "Exp@13:sweep=a;input=float32[2]")
        for target in ("cpu", "dml")
    ]
    tables = tabulate(synthetic.header({"cpu": CPU, "dml": DML}), results, synthetic.end_of(results))
    rows = support_answer.measured_rows(tables, "")
    assert [(row.operator, row.target, row.opsets, row.registered) for row in rows] == [
        ("Exp", "cpu", (13,), "yes"),
        ("Exp", "dml", (13,), "yes"),
        ("GatherND", "cpu", (13,), "yes"),
        ("GatherND", "dml", (13,), "yes"),
    ]
    assert compared == [tables]
