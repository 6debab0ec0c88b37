"""Rules written as queries select exactly the cases for which they hold."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from harness.model.query import parse_all
from harness.results.rules.feature_table import FeatureTable
from harness.results.rules.features import names_asked, numbers_asked
from harness.results.rules.query_features import ask
from harness.results.rules.terms import Term
from tests.plans import plan_in_parts
from tests.sampled import one_of


@cache
def cases() -> tuple[list[str], FeatureTable, list[Term]]:
    ids = [case.id for case in plan_in_parts("one of each family")][::17]
    table = FeatureTable((numbers_asked, names_asked, lambda _level: {}))
    for case in ids:
        table.add(case, "")
    values = table.values(np.arange(len(ids)))
    return ids, table, list(table.candidates(values, values))


def check(rule: tuple[Term, ...]) -> None:
    ids, table, _ = cases()
    asked = ask(rule)
    match, unless = parse_all([asked.match]), parse_all(asked.unless)
    holds = np.logical_and.reduce([table.mask(term, np.arange(len(ids))) for term in rule])
    selected = [match[0].matches(case) and not any(query.matches(case) for query in unless) for case in ids]
    different = [ids[row] for row in np.flatnonzero(holds != np.array(selected))]
    assert not different, (list(map(str, rule)), asked, different[:3])


@pytest.mark.slow
def test_every_term_alone() -> None:
    for term in cases()[2]:
        check((term,))


@pytest.mark.parametrize("seed", one_of(4, range(4)))
def test_terms_together(seed: int) -> None:
    ids, table, terms = cases()
    rng = random.Random(seed)
    for _ in range(60):
        row = np.array([rng.randrange(len(ids))])
        holding = [term for term in terms if table.mask(term, row)[0]]
        check(tuple(rng.sample(holding, rng.choice((2, 3, 4)))))


@pytest.mark.parametrize(
    ("terms", "match", "unless"),
    [
        (
            ["operator=GatherND", "opset=@13", "data=float16", "data.rank>=3"],
            "GatherND@13:data=float16[*,*,*,...]",
            (),
        ),
        (["data.begins=[3,*,*]", "data.ends=[*,*,1]", "data.rank=3"], "data=*[3,*,1]", ()),
        (
            ["batch_dims>=1", "batch_dims<=2", "shapes!=static"],
            "batch_dims<=2;batch_dims>=1",
            ("shapes=static",),
        ),
        (
            ["operator=Round", "has.variant=no", "X.rank<=7"],
            "Round:X=*[...]",
            ("X=*[*,*,*,*,*,*,*,*,...]", "variant=*"),
        ),
        (["operator!=Round", "opset!=@11"], "*", ("*@11", "Round")),
        ([], "*", ()),
    ],
)
def test_reads_as_people_write_it(terms: list[str], match: str, unless: tuple[str, ...]) -> None:
    split = [text.replace("!=", " != ").replace(">=", " >= ").replace("<=", " <= ") for text in terms]
    parsed = []
    for text in split:
        column, relation, value = text.split() if " " in text else text.partition("=")
        parsed.append(Term(column, relation, int(value) if value.isdecimal() else value))  # type: ignore[arg-type]
    assert ask(parsed) == (match, unless)
