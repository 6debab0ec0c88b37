"""Selections: shards, pairs, and ids and inputs that depend on nothing but the case."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from harness.model.case import Case, TensorSpec, Validity
from harness.model.errors import SpecError
from harness.model.header import Shard
from harness.model.query import Query, parse_all
from harness.specs import selection as selections
from harness.specs.expand import Plan, SweepPlan, expand
from harness.specs.find_case import find_case
from harness.specs.reading.load import load_specs
from harness.specs.selection import Selection
from harness.specs.sweeps.calls import call_of, case_inputs
from harness.targets.frames import tensor_bytes
from tests.plans import PARTS, plan_in_parts, plan_of
from tests.running import SPECS, harness, lines_of

SOME = ("Gather", "Round", "Add", "Concat", "Softmax")


def plan() -> Plan:
    return plan_of(*SOME)


def fresh_plan() -> Plan:
    """Return a plan that has not yet counted what it leaves out."""
    return expand(load_specs([SPECS / f"{operator}.yaml" for operator in SOME]))


@cache
def valid() -> tuple[Case, ...]:
    return tuple(Selection(plan()).cases(valid=True))


@pytest.mark.parametrize("part", PARTS)
def test_ids_are_unique(part: str) -> None:
    ids = [case.id for case in plan_in_parts(part)]
    assert len(ids) == len(set(ids))
    assert all(Query.parse(case).matches(case) for case in ids), "an id is no query"


@pytest.mark.parametrize("of", [1, 2, 3, pytest.param(7, marks=pytest.mark.slow)])
def test_shards_partition_the_cases(of: int) -> None:
    parts = [
        [case.id for case in Selection(plan(), shard=Shard(n, of)).cases(valid=True)]
        for n in range(1, of + 1)
    ]
    assert sorted(case for part in parts for case in part) == sorted(case.id for case in valid())
    assert all(abs(len(part) - len(valid()) / of) < 0.1 * len(valid()) for part in parts)


@pytest.mark.parametrize("queries", [(), SOME, ("*", "Round")])
def test_a_shard_makes_no_case_of_the_others(
    monkeypatch: pytest.MonkeyPatch, queries: tuple[str, ...]
) -> None:
    whole = sum(1 for _ in plan())
    counts = Selection(plan(), shard=Shard(2, 5)).counted()
    made: list[Case] = []

    def counted(sweep: SweepPlan, *given: Any, make: Any = SweepPlan._cases) -> Iterator[Case]:
        for case in make(sweep, *given):
            made.append(case)
            yield case

    monkeypatch.setattr(SweepPlan, "_cases", counted)
    chosen = Selection(plan(), parse_all(queries), Shard(2, 5))
    number, left_out = chosen.counted()
    assert (number, left_out) == counts
    assert not chosen.complete
    assert left_out[selections.OTHER_SHARD] == whole - number
    assert len(made) <= number < whole / 4


def terms(case: Case) -> list[str]:
    head, _, rest = case.id.partition(":")
    return [head, *rest.split(";")]


def test_pairwise_covers_every_pair_that_occurs() -> None:
    chosen = list(Selection(plan(), pairwise=True).cases(valid=True))
    swept = [case for case in valid() if case.literals is None]
    wanted = {pair for case in swept for pair in combinations(terms(case), 2)}
    assert wanted <= {pair for case in chosen for pair in combinations(terms(case), 2)}
    assert len(chosen) < len(valid())
    assert {case.id for case in chosen} <= {case.id for case in valid()}
    assert {case.id for case in valid() if case.literals is not None} <= {case.id for case in chosen}


def test_pairwise_counts_what_it_leaves_out() -> None:
    selection = Selection(plan(), parse_all(["Round"]), pairwise=True)
    chosen, left_out = selection.counted()
    assert (chosen, left_out) == selection.counted()
    assert chosen == sum(1 for _ in selection)
    _, combinations = plan().counted()
    passed_over = left_out["adds no new pair"] - combinations["adds no new pair"]
    assert chosen + passed_over == sum(case.operator == "Round" for case in plan())
    assert not selection.complete


@pytest.mark.slow
def test_invalid_cases_are_never_thinned_out() -> None:
    everything = [case.id for case in Selection(plan()).cases(valid=False)]
    assert [case.id for case in Selection(plan(), pairwise=True).cases(valid=False)] == everything
    assert all(case.validity is not Validity.VALID for case in Selection(plan()).cases(valid=False))


SPEC = """\
operator: Round
opsets: [22]
lowers_to: {directml: DML_OPERATOR_ELEMENT_WISE_ROUND}
"""
CASE = """\
  - name: one
    source: a test
    inputs: {X: {dtype: float32, shape: [6], fill: random}}
"""
OTHER_CASE = CASE.replace("one", "another")
SWEEP = (
    "  - {name: first, X: {dtype: [float32, float16], shape: [[5], [2, 3]], values: [random, ordinary]}}\n"
)
OTHER_SWEEP = "  - {name: second, X: {dtype: [float64], shape: [[5]], values: [random]}}\n"
MORE_IN_SWEEP = (
    "  - {name: first, X: {dtype: [float64, float16, float32], shape: [[9], [2, 3], [5]], "
    "values: [halves, ordinary, random]}}\n"
)


def inputs_by_id(folder: Path, cases: str, sweeps: str, seed: int = 0) -> dict[str, str]:
    """Return a hash of the inputs of each case of a spec."""
    path = folder / "Round.yaml"
    path.write_text(f"{SPEC}cases:\n{cases}sweeps:\n{sweeps}", encoding="utf-8")
    found = {}
    for case in expand(load_specs((path,))):
        data = b"".join(tensor_bytes(tensor) for tensor in case_inputs(call_of(case), case, seed))
        found[case.id] = hashlib.sha256(data).hexdigest()
    return found


@pytest.mark.parametrize(
    ("cases", "sweeps"),
    [
        (OTHER_CASE + CASE, SWEEP),
        (CASE + OTHER_CASE, SWEEP),
        (CASE, OTHER_SWEEP + SWEEP),
        (CASE, SWEEP + OTHER_SWEEP),
        (CASE, MORE_IN_SWEEP),
    ],
)
def test_other_cases_change_neither_ids_nor_inputs(tmp_path: Path, cases: str, sweeps: str) -> None:
    before = inputs_by_id(tmp_path, CASE, SWEEP)
    assert len(before) == 9
    after = inputs_by_id(tmp_path, cases, sweeps)
    assert len(after) > len(before)
    assert {case: after.get(case) for case in before} == before


def test_the_seed_changes_random_inputs_and_no_id(tmp_path: Path) -> None:
    first, again, other = (inputs_by_id(tmp_path, CASE, SWEEP, seed) for seed in (0, 0, 1))
    assert first == again
    assert first.keys() == other.keys()
    assert not set(first.values()) & set(other.values())


def test_no_two_cases_have_the_same_random_inputs(tmp_path: Path) -> None:
    found = inputs_by_id(tmp_path, CASE + OTHER_CASE, SWEEP + OTHER_SWEEP)
    assert len(set(found.values())) == len(found)


def test_inputs_are_the_same_on_every_platform() -> None:
    """Frozen: other bits here mean other data in every case, and that no earlier run is comparable any
    more."""
    shapes = (("data", "float16", (2, 3), "random"), ("indices", "int64", (2, 3), "mixed"))
    case = Case(
        "GatherElements@13:frozen",
        "GatherElements",
        13,
        {"axis": 1},
        tuple(TensorSpec(*shape) for shape in shapes),
    )
    data, indices = case_inputs(call_of(case), case, 0)
    assert tensor_bytes(data).hex() == "386ee701bd33fa7731e8678a"
    assert indices.array.tolist() == [[1, -1, -2], [-2, -3, 1]]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        command = (
            "run",
            SPECS / "Round.yaml",
            "-t",
            "fake",
            "-k",
            "Round@22:sweep=rank;X=float16[3]",
            "--seed",
            "5",
            "-o",
            name,
        )
        assert harness(*command).code == 0
    a, b = (
        sorted(str({**line, "seconds": 0, "run_id": "", "command": ""}) for line in lines_of(tmp_path / name))
        for name in "ab"
    )
    assert a == b


@pytest.mark.parametrize("few", [5000, pytest.param(10, marks=pytest.mark.slow)])
def test_counting_changes_nothing_that_is_selected(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few cases are remembered when they are counted; what a target then gets is what looking for them
    gives."""
    monkeypatch.setattr(selections, "_FEW", few)
    fresh, counted = (
        Selection(fresh_plan(), parse_all(["Gather@13:data=int8", "Round"]), Shard(1, 3)) for _ in range(2)
    )
    total, left_out = counted.counted()
    assert (total, left_out) == counted.counted()
    looked_up = {valid: [case.id for case in fresh.cases(valid=valid)] for valid in (True, False)}
    assert {valid: [case.id for case in counted.cases(valid=valid)] for valid in (True, False)} == looked_up
    assert total == sum(map(len, looked_up.values()))
    assert min(map(len, looked_up.values())) > 10
    found = [case.id for block in counted.blocks(20) for case in block.cases()]
    assert found == [*looked_up[True], *looked_up[False]]


@pytest.mark.parametrize(
    "queries",
    [
        ["Round@22:case=*"],
        ["sweep=ran*", "Gather@13:sweep=sizes;data=int8"],
        ["Gather*"],
        ["axis=-1"],
        ["R?und@22", "case=*"],
    ],
)
def test_a_sweep_that_no_query_can_select_is_left_out_as_its_cases_would_be(queries: list[str]) -> None:
    asked = parse_all(queries)
    everything = fresh_plan()
    one_by_one = [
        case.id
        for valid in (True, False)
        for case in everything.cases(valid=valid)
        if any(q.matches(case.id) for q in asked)
    ]
    chosen = Selection(everything, asked)
    assert [case.id for case in chosen] == one_by_one
    total, combinations = everything.counted()
    number, left_out = chosen.counted()
    assert (number, left_out.pop("not in the query")) == (len(one_by_one), total - len(one_by_one))
    assert total > number
    assert left_out == combinations


def test_operators_that_no_query_speaks_of_are_not_planned() -> None:
    """Planning them takes many seconds; what is selected is the same, and specs of one's own are planned and
    checked all the same."""
    queries = parse_all(["Soft*@13:axis=-1", "Add:case=*"])
    told: list[tuple[int, int]] = []
    planned = expand(
        load_specs([SPECS / f"{operator}.yaml" for operator in SOME]),
        queries,
        tell=lambda *of: told.append(of),
    )
    assert told == [(0, 2), (1, 2), (2, 2)]
    assert {sweep.operator.name for sweep in planned.sweeps} == {"Add", "Softmax"}
    assert {spec.model.operator for spec in planned.specs} == set(SOME)
    first, second = (
        [case.id for case in Selection(each, queries).cases(valid=True)] for each in (planned, plan())
    )
    assert first == second


def test_own_specs_are_checked_whatever_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "Round.yaml").write_text(f"{SPEC}sweeps:\n{SWEEP.replace('5', '-5')}", encoding="utf-8")
    with pytest.raises(SpecError, match="-5"):
        expand(load_specs([tmp_path / "Round.yaml"]), parse_all(["Add"]))


@pytest.mark.slow
def test_the_whole_product_of_a_sweep(tmp_path: Path) -> None:
    """What `--select all` adds is judged, resumed and found by its id like any other case."""
    query = "Softmax@13:sweep=axis_out_of_range"
    default, product = (
        set(harness("list", "-k", query, *options).out.split()) for options in ((), ("--all",))
    )
    assert default < product
    ended = harness("run", "-t", "fake", "-k", query, "--select", "all", "-o", tmp_path / "run")
    assert ended.code == 0, ended.err
    header, *results, _ = lines_of(tmp_path / "run")
    assert header["selection"]["select"] == "all"
    assert {result["case"] for result in results} == product
    (spec,) = load_specs([SPECS / "Softmax.yaml"])
    added = min(product - default)
    assert find_case([spec], added).case.id == added
    assert (
        "already complete"
        in harness("run", "--resume", "-o", tmp_path / "run").err
        + harness("run", "--resume", "-o", tmp_path / "run").out
    )
