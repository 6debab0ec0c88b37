from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from harness.model.case import Validity
from harness.model.header import Header
from harness.model.result import NOT_EXPRESSIBLE, Error, Result
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from harness.results.counted import read_tables
from harness.results.cross_check import CheckedResult, CrossCheck, Suspect, checked_pair, compare
from harness.results.runfile import RunReader
from tests import synthetic
from tests.results.test_columns import columns_of
from tests.running import harness
from tests.synthetic import write_results

DML = TargetInfo("DmlExecutionProvider", directml_sha256="aa", adapter="GPU")
API = TargetInfo("DirectML", directml_sha256="aa", adapter="GPU")
CASE = "Round@11:case=a;X=float32[2]"
VALID, INVALID = Validity.VALID, Validity.INVALID
PASS, MISMATCH, REJECTED, ACCEPTED = (
    Outcome.PASS,
    Outcome.MISMATCH,
    Outcome.REJECTED,
    Outcome.ACCEPTED_INVALID,
)


def result(
    target: str,
    outcome: Outcome,
    output: str | UnsetType = UNSET,
    case: str = CASE,
    validity: Validity = VALID,
) -> Result:
    return synthetic.result(case, outcome, target=target, validity=validity, output=output)


@pytest.mark.parametrize(
    ("provider", "api", "points"),
    [
        (CheckedResult(VALID, PASS), CheckedResult(VALID, PASS), Suspect.NOWHERE),
        (CheckedResult(VALID, MISMATCH, "1"), CheckedResult(VALID, PASS), Suspect.LOWERING),
        (CheckedResult(VALID, PASS), CheckedResult(VALID, MISMATCH, "1"), Suspect.LOWERING),
        (CheckedResult(VALID, MISMATCH, "1"), CheckedResult(VALID, MISMATCH, "1"), Suspect.DIRECTML),
        (CheckedResult(VALID, MISMATCH, "1"), CheckedResult(VALID, MISMATCH, "2"), Suspect.LOWERING),
        (CheckedResult(VALID, MISMATCH, "1"), CheckedResult(VALID, MISMATCH), Suspect.UNCLEAR),
        (CheckedResult(VALID, REJECTED), CheckedResult(VALID, REJECTED), Suspect.DIRECTML),
        (CheckedResult(VALID, REJECTED), CheckedResult(VALID, PASS), Suspect.LOWERING),
        (CheckedResult(VALID, PASS), CheckedResult(VALID, REJECTED), Suspect.LOWERING),
        (CheckedResult(VALID, Outcome.NOT_PLACED), CheckedResult(VALID, PASS), Suspect.LOWERING),
        (CheckedResult(INVALID, REJECTED), CheckedResult(INVALID, REJECTED), Suspect.NOWHERE),
        (CheckedResult(INVALID, REJECTED), CheckedResult(INVALID, ACCEPTED, "1"), Suspect.CHECKED),
        (CheckedResult(INVALID, Outcome.NOT_PLACED), CheckedResult(INVALID, REJECTED), Suspect.LOWERING),
        (CheckedResult(INVALID, Outcome.UNSUPPORTED), CheckedResult(INVALID, REJECTED), Suspect.LOWERING),
        (CheckedResult(INVALID, ACCEPTED), CheckedResult(INVALID, ACCEPTED), Suspect.UNCLEAR),
        (CheckedResult(INVALID, ACCEPTED, "1"), CheckedResult(INVALID, ACCEPTED, "1"), Suspect.DIRECTML),
        (CheckedResult(INVALID, ACCEPTED, "1"), CheckedResult(INVALID, ACCEPTED, "2"), Suspect.LOWERING),
        (CheckedResult(VALID, Outcome.CRASH), CheckedResult(VALID, PASS), Suspect.UNCLEAR),
    ],
)
def test_where_the_two_point(provider: CheckedResult, api: CheckedResult, points: Suspect) -> None:
    assert compare(provider, api).points is points


def test_the_two_share_a_dll_and_an_adapter() -> None:
    def header(**targets: TargetInfo) -> Header:
        return Header(1, "r", "", 0, {}, targets)

    assert checked_pair(header(dml=DML, directml=API)) == ("dml", "directml")
    assert checked_pair(
        header(directml=API, old=TargetInfo("DmlExecutionProvider", directml_sha256="bb"), dml=DML)
    ) == ("dml", "directml")
    assert (
        checked_pair(
            header(dml=TargetInfo("DmlExecutionProvider", directml_sha256="bb", adapter="GPU"), directml=API)
        )
        is None
    )
    assert checked_pair(header(dml=DML)) is None


def test_cases_are_grouped_and_what_points_somewhere_comes_first() -> None:
    cross_check = CrossCheck(Header(1, "r", "", 0, {}, {"cpu": TargetInfo("C"), "dml": DML, "directml": API}))
    names = [f"Round@11:case={letter};X=float32[2]" for letter in "abcdef"]
    outcomes_of = [
        ((PASS, UNSET), (PASS, UNSET)), ((PASS, UNSET), (PASS, UNSET)), ((PASS, UNSET), (MISMATCH, "1")),
        ((ACCEPTED, "1"), (ACCEPTED, "1")), ((ACCEPTED, "1"), (ACCEPTED, "2")), ((ACCEPTED, UNSET), (ACCEPTED, UNSET)),
    ]  # fmt: skip
    for target, place in (("dml", 0), ("directml", 1)):
        for name, outcomes in zip(names, outcomes_of, strict=True):
            outcome, output = outcomes[place]
            cross_check.add(result(target, outcome, output, name, INVALID if outcome is ACCEPTED else VALID))
    assert cross_check.compared == 6
    assert [(group.agreement.points, group.number, group.example) for group in cross_check.groups()] == [
        (Suspect.LOWERING, 1, names[2]),
        (Suspect.LOWERING, 1, names[4]),
        (Suspect.DIRECTML, 1, names[3]),
        (Suspect.UNCLEAR, 1, names[5]),
        (Suspect.NOWHERE, 2, names[0]),
    ]


def test_a_mode_that_the_provider_composes_is_not_compared() -> None:
    case = "Round@11:case=a;X=float32[2];variant=toward_zero"
    cross_check = CrossCheck(Header(1, "r", "", 0, {}, {"dml": DML, "directml": API}))
    for target in ("dml", "directml"):
        cross_check.add(result(target, PASS, case=case))
    assert cross_check.compared == 0


def test_a_case_that_one_of_them_cannot_express_is_not_compared() -> None:
    cross_check = CrossCheck(Header(1, "r", "", 0, {}, {"dml": DML, "directml": API}))
    beyond = Error(NOT_EXPRESSIBLE, "a call of DirectML's own API")
    cross_check.add(msgspec.structs.replace(result("dml", Outcome.NOT_RUN), error=beyond))
    cross_check.add(result("directml", PASS))
    assert cross_check.compared == 0


@pytest.mark.slow
def test_columns_are_held_against_each_other_as_lines_are(tmp_path: Path) -> None:
    """Every pair of outcomes, of outputs that are the same, others or not known, of calls that are composed or that an API
    lacks, of cases of one target alone; in any order, under names that a report shortens."""
    names = {"dml": "dml,runtime=/a/python", "directml": "directml,runtime=/b/python"}
    made = []
    places = itertools.product(
        (PASS, MISMATCH, REJECTED, ACCEPTED, Outcome.CRASH, Outcome.NOT_RUN),
        (UNSET, "aa", "bb"),
        (VALID, INVALID),
    )
    for number, (first, second) in enumerate(itertools.product(list(places), repeat=2)):
        case = f"Round@{11 + number % 2}:case=c{number};X=float32[2]" + ";variant=v" * (number % 17 == 0)
        both = [
            result("dml", *first[:2], case, first[2]),
            result("directml", *second[:2], case, second[2]),
        ]
        if number % 7 == 0 and second[0] is Outcome.NOT_RUN:
            both[1] = msgspec.structs.replace(both[1], error=Error(NOT_EXPRESSIBLE, ""))
        made += both[: 1 + (number % 13 > 0)][:: 1 - 2 * (number % 3 == 0)]
    made = [msgspec.structs.replace(each, target=names[each.target]) for each in made]
    run = write_results(tmp_path / "run.jsonl", made, {names["dml"]: DML, names["directml"]: API})
    lines, columns = read_tables(RunReader(run)), read_tables(RunReader(columns_of(run)))
    assert lines.cross_check is not None
    assert columns.cross_check is not None
    assert columns.cross_check.groups() == lines.cross_check.groups()
    assert columns.cross_check.pair == ("dml,runtime=…/python", "directml,runtime=…/python")
    assert 900 < columns.cross_check.compared == lines.cross_check.compared < len(made) // 2
    assert len({group.agreement for group in lines.cross_check.groups()}) >= 8
    for format in ("markdown", "csv", "html"):
        assert harness("report", tmp_path / "run.parquet", "--format", format) == harness(
            "report", run, "--format", format
        )
