"""What an id says of a case, and terms about it."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.rules.feature_table import FeatureTable
from harness.rules.features import features
from harness.rules.terms import Term, say
from tests.plans import default_ids

BATCHES = "GatherND@12:sweep=batch;data=float16[2,3,4];indices=int64[3,5,2];batch_dims=1;values=mixed"


def test_shapes_attributes_and_their_relations() -> None:
    found = features(BATCHES)
    wanted = {
        "operator": "GatherND",
        "opset": 12,
        "sweep": "batch",
        "data": "float16",
        "dtype": "float16",
        "data.kind": "float",
        "data.bits": 16,
        "data.rank": 3,
        "rank": 3,
        "data.elements": 24,
        "data.multiple_of_4": "yes",
        "indices": "int64",
        "indices.shape": "[3,5,2]",
        "batch_dims": 1,
        "batch_sizes": "differ",
        "tuple": 2,
        "slice_rank": 0,
        "result_rank": 2,
        "values": "mixed",
        "shapes": "symbolic",
        "initializer": "none",
        "in_place": "false",
        "variant": "none",
    }
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        ("GatherND@11:case=a;data=float32[3];indices=int64[2,1]", {"batch_dims": 0, "batch_sizes": "equal"}),
        ("GatherND@12:case=a;data=float32[3];indices=int64[2,1];batch_dims=-1", {"batch_dims": -1, "batch_dims_in_range": "no"}),
        ("GatherND@12:case=a;data=float32[3];indices=int64[2,0]", {"tuple": 0, "indices.empty": "yes", "tuples": 2}),
        ("GatherElements@13:case=a;data=bool[3,4];indices=int32[3,2];axis=-1", {"axis": -1, "axis.last": "yes", "along_axis": "fewer"}),
        ("GatherElements@13:case=a;data=bool[3,4];indices=int32[2,4];axis=1", {"off_axis": "fewer", "along_axis": "same"}),
        ("GatherElements@13:case=a;data=bool[3,4];indices=int32[2,5]", {"axis": 0, "axis.last": "no", "off_axis": "more"}),
        ("GatherElements@13:case=a;data=bool[3];indices=int32[2,5];axis=7", {"ranks": "differ", "axis_in_range": "no"}),
        ("Round@22:case=a;X=float64[];values=ordinary;in_place=true", {"X.rank": 0, "X.elements": 1, "in_place": "true", "rank": 0}),
        ("Round@22:case=a;X=bool[0,3]", {"X.smallest": 0, "X.empty": "yes", "X.bits": 8}),
        ("something else", {"operator": "something else"}),
    ],
)
def test_every_kind_of_case(case: str, wanted: dict[str, object]) -> None:
    found = features(case)
    assert {name: found.get(name) for name in wanted} == wanted


def test_the_table_says_of_every_case_what_the_case_says() -> None:
    ids = default_ids()[::97]
    table = FeatureTable()
    for case in ids:
        table.add(case, "2_1")
    rows = range(len(ids))
    keys = table.keys(list(rows))  # type: ignore[arg-type]
    terms = list(table.candidates(keys, keys))
    assert len(terms) > 500
    described = [features(case) for case in ids]
    for term in terms:
        assert table.mask(term, list(rows)).tolist() == [term.holds(of) for of in described], str(term)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["data.rank>=3", "axis<=-1", "values!=mixed", "operator=GatherND", "data.shape=[2,3]", "batch_sizes=differ"]
)
def test_a_term_is_read_as_it_is_written(text: str) -> None:
    assert str(Term.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "write column=value, with =, !=, >= or <=, for example 'data.rank>=3'"),
        ("data.rank>3", "write column=value"),
        ("rank", "write column=value"),
        ("data>=float16", ">= compares integers"),
        ("data=a;b", "write column=value"),
    ],
)
def test_what_is_no_term_is_refused(text: str, what: str) -> None:
    with pytest.raises(UsageError, match="bad term") as caught:
        Term.parse(text)
    assert what in str(caught.value)


def test_a_rule_reads_as_a_sentence() -> None:
    terms = [Term.parse(text) for text in ("batch_sizes=differ", "data.empty=no", "batch_dims>=1", "operator=GatherND", "opset!=11")]
    assert say(terms) == "GatherND and opset!=11 and batch_dims>=1 and batch sizes differ and data is not empty"
    assert say([]) == "every case"
