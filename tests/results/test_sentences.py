from __future__ import annotations

from harness.model.case import Validity
from harness.model.query import Query
from harness.model.result import NOT_EXPRESSIBLE, Error, Result
from harness.model.verdict import Outcome
from harness.results.requirements import ObservedResult, Rules, by_origin, rules
from tests import synthetic
from tests.plans import DEEPEST, plan_of


def planned() -> dict[str, Validity]:
    return {case.id: case.validity for case in plan_of(*DEEPEST)}


def test_every_sentence_has_cases_on_both_sides_or_says_why_not() -> None:
    cases = planned()
    by_name: dict[str, list[str]] = {}
    for case in cases:
        head, _, terms = case.partition(":")
        by_name.setdefault(f"{head.partition('@')[0]}:{terms.partition(';')[0]}", []).append(case)
    for rule in rules():
        where = f"{rule.document}: {rule.sentence}"
        for side, queries, never in (
            ("keeps", rule.holds, Validity.INVALID),
            ("breaks", rule.breaks, Validity.VALID),
        ):
            assert queries or rule.without, f"{where}: no case {side} it, and no reason"
            for query in queries:
                found = [
                    case for case in by_name.get(query.text.partition(";")[0], ()) if query.matches(case)
                ]
                assert found, f"{query.text} names no case"
                assert never not in {cases[case] for case in found}, query.text


def test_queries_begin_with_operator_and_origin() -> None:
    for text in by_origin():
        operator, _, origin = text.partition(":")
        assert operator in ("GatherElements", "GatherND", "Round")
        assert origin.startswith(("case=", "sweep="))
        assert "*" not in text


def test_every_literal_case_of_the_api_breaks_or_keeps_a_named_sentence() -> None:
    queries: list[Query] = [query for found in by_origin().values() for _, _, query in found]
    literal = [case for case in planned() if "api=directml" in case and ":case=" in case]
    assert len(literal) > 80
    for case in literal:
        assert any(query.matches(case) for query in queries), case


def result(case: str, outcome: Outcome, validity: Validity) -> Result:
    classes = {Outcome.REJECTED: "CreateOperator E_INVALIDARG", Outcome.NOT_RUN: NOT_EXPRESSIBLE}
    error = Error(classes[outcome], "x") if outcome in classes else None
    return synthetic.result(case, outcome, target="directml", validity=validity, stage="load", error=error)


def test_both_sides_are_counted_with_stage_and_hresult() -> None:
    results = [
        result("Round@22:case=api_halves_to_even;X=float32[2,3];api=directml", Outcome.PASS, Validity.VALID),
        result(
            "Round@22:case=api_no_such_mode;X=float32[2,3];api=directml", Outcome.REJECTED, Validity.INVALID
        ),
        result(
            "Round@22:case=api_no_such_mode_far;X=float32[2,3];api=directml",
            Outcome.ACCEPTED_INVALID,
            Validity.INVALID,
        ),
        result(
            "Round@22:case=api_no_such_mode_far;X=float32[2,3];api=directml",
            Outcome.NOT_RUN,
            Validity.INVALID,
        ),
    ]
    collected = Rules()
    for one in results:
        collected.add(one)
    (modes,) = [each for each in collected.tested() if each.rule.sentence.startswith("A DML_ROUNDING_MODE")]
    assert list(modes.holds.counts.values()) == [1]
    assert modes.breaks.counts == {
        ObservedResult(Validity.INVALID, Outcome.REJECTED, "load", "CreateOperator E_INVALIDARG"): 1,
        ObservedResult(Validity.INVALID, Outcome.ACCEPTED_INVALID, "load", ""): 1,
    }


def test_a_result_that_no_rule_names_is_passed_over() -> None:
    collected = Rules()
    collected.add(result("Round@22:sweep=random;X=float32[64]", Outcome.PASS, Validity.VALID))
    assert not any(each.holds.counts or each.breaks.counts for each in collected.tested())


def test_a_rule_of_one_operator_is_not_told_by_the_cases_of_another() -> None:
    collected = Rules()
    one = "GatherND@13:sweep=api_dimension_count;data=float32[3];indices=int64[2,1];values=in_range;api=directml;operator="
    collected.add(result(f"{one}DML_OPERATOR_GATHER_ND1", Outcome.PASS, Validity.VALID))
    told = {each.rule.document for each in collected.tested() if each.holds.counts}
    assert told == {"DML_GATHER_ND1_OPERATOR_DESC"}
