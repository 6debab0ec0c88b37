from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import caseid
from harness.model.errors import UsageError
from harness.model.query import Query, explain_no_match, parse_all

ID = "GatherElements@13:sweep=dtype_rank;data=float16[3,4];indices=int64[3,2];axis=1;values=negative"


@pytest.mark.parametrize(
    "text",
    [
        "GatherElements",
        "GatherElements@13",
        "GatherElements@13:",
        "GatherElements@13:sweep=dtype_rank",
        "GatherElements@13:sweep=dtype_rank;",
        ID,
        "data=float16",
        "data=float16[3,4]",
        "data=float16[3,*]",
        "*=float16",
        "GatherElements:*=float16[3,4]",
        "*=*[*,*]",
        "*=negative",
        "data=*[*,*]",
        "data=*[*,...]",
        "data=*[3,*,...]",
        "data=*[*,*,...]",
        "axis>=1",
        "axis<=1",
        "axis>=-4;axis<=7",
        "GatherElements:axis>=0;axis=1",
        "data=float16[?,4]",
        "data=float*",
        "data=*16",
        "indices=int64;data=float16",
        "GatherElements:values=negative;axis=1",
        "Gather*@1?:axis=?",
        "*@13",
        "*:axis=*",
        " axis=1 ",
    ],
)
def test_selects(text: str) -> None:
    assert Query.parse(text).matches(ID)


@pytest.mark.parametrize(
    "text",
    [
        "Gather",
        "GatherND",
        "Elements",
        "GatherElements@1",
        "GatherElements@11",
        "GatherElements@?",
        "GatherElements@13:sweep=dtype",
        "GatherElements@13:sweep=batch",
        "*=float",
        "*=bfloat16",
        "*=*[*,*,*]",
        "*=dtype",
        "data=float",
        "data=float16[3",
        "data=float16[3]",
        "data=float16[3,4,5]",
        "data=float16[*]",
        "data=float16[*,*,*]",
        "data=*[3*]",
        "ata=float16",
        "data=float1?[4,3]",
        "data=*[*,*,*,...]",
        "data=*[4,...]",
        "axis>=2",
        "axis<=0",
        "axis<=-1",
        "axis>=0;axis<=0",
        "data>=3",
        "values>=1",
        "axis=-1",
        "axis=1;data=int8",
        "GatherND:axis=1",
        "*ND:axis=1",
        "validity=valid",
        "data=[a-z]*",
    ],
)
def test_does_not_select(text: str) -> None:
    assert not Query.parse(text).matches(ID)


def test_a_value_is_not_found_inside_another_term() -> None:
    assert not Query.parse("axis=1").matches("X@1:batch_axis=1;axis=2")
    assert Query.parse("axis=2").matches("X@1:axis=22;other_axis=2;axis=2")
    assert Query.parse("a.b=1").matches("X@1:a.b=1")
    assert not Query.parse("a.b=1").matches("X@1:axb=1")


def test_a_glob_stays_within_its_term() -> None:
    assert not Query.parse("data=f*negative").matches(ID)
    assert not Query.parse("G*t@13").matches(ID)
    assert not Query.parse("data=f*;axis=1*e").matches(ID)
    assert repr(Query.parse("axis=1")) == "Query('axis=1')"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "*>=1",
            "*a=1",
            "axis>1",
            "axis>=x",
            "axis>=",
            "axis=>1",
            "axis>=1;axis>=2",
            "axis<=1.5",
            "opset!=3",
        ),
        *(
            "",
            "  ",
            "a b",
            "x=",
            "=x",
            "Gather@x",
            "axis=1;axis=2",
            ":",
            "@13",
            "G@13:a=b;;c=d",
            "Gather[A-Z]*",
            "a=b:c=d",
            ";",
            "G:a",
            "G\n",
        ),
    ],
)
def test_malformed_queries_are_usage_errors_with_an_example(text: str) -> None:
    if text == "G\n":
        assert Query.parse(text).operator == "G"
        return
    with pytest.raises(UsageError, match="write for example 'GatherElements@13:data=float16;axis=-1'"):
        Query.parse(text)


def test_rank_0_has_no_dimension() -> None:
    scalar = "Round@22:case=a;X=float32[]"
    assert Query.parse("X=*[]").matches(scalar)
    assert not Query.parse("X=*[*]").matches(scalar)
    assert not Query.parse("X=*[*,...]").matches(scalar)
    assert Query.parse("X=*[...]").matches(scalar)


def test_any_shape_is_no_list_of_elements() -> None:
    query = Query.parse("input=*[...]")
    assert query.matches("ConstantOfShape@9:case=a;input=int64[2];shapes=static")
    assert not query.matches("ConstantOfShape@9:case=a;input=int64{2,0};shapes=static")


@given(st.integers(-(2**63), 2**63), st.integers(-(2**63), 2**63))
def test_integers_compare_as_integers(value: int, bound: int) -> None:
    case = f"G@1:axis={value};values=x"
    assert Query.parse(f"axis>={bound}").matches(case) == (value >= bound)
    assert Query.parse(f"axis<={bound}").matches(case) == (value <= bound)
    assert not Query.parse(f"axis>={bound}").matches(f"G@1:other_axis={value}")


def test_parse_all() -> None:
    assert [query.text for query in parse_all(["axis=1", "Round"])] == ["axis=1", "Round"]


def test_explain_no_match() -> None:
    operators = ["GatherND", "Round"]
    ids = ["GatherND@12:sweep=a;data=float32[2];axis=1", "Round@11:sweep=b;data=float16[2]"]

    def hint(query: str) -> str:
        return explain_no_match(parse_all([query]), operators, ids)

    assert hint("GaterND:axes=1") == "no operator 'GaterND'; did you mean 'GatherND'?; known: GatherND, Round"
    assert hint("Gather*:axes=1") == (
        "no case has the key 'axes'; did you mean 'axis'?; known: axis, data, sweep"
    )
    assert "ids do not hold it" in hint("validity=invalid")
    assert "all of these terms together" in hint("Round:axis=1")
    assert "all of these terms together" in hint("Round:data=float16[3]")
    assert "all of these terms together" in hint("data=float32[2];sweep=b")
    assert hint("Round:data=flot16[2]") == "no case has data=flot16; did you mean 'float16'?; known: float16"
    assert hint("Round:sweep=a") == "no case has sweep=a; known: b"
    assert hint("sweep=a;axis=7") == "no case has axis=7; known: 1"
    assert "all of these terms together" in hint("Round:data=floa*;sweep=b;axis>=1")
    assert hint("Round@23") == "opsets of Round: 11"
    assert hint("Round:data=fp16[2]") == "no element type 'fp16'; did you mean 'float16'?"


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
VALUES = st.from_regex(r"-?[a-z0-9_.]{1,8}", fullmatch=True)
SHAPES = st.lists(st.integers(0, 99), max_size=4).map(tuple)


@st.composite
def case_ids(draw: st.DrawFn) -> str:
    operator = draw(st.from_regex(r"[A-Z][A-Za-z0-9]{0,8}", fullmatch=True))
    keys = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    tensor = draw(st.sampled_from(keys))
    terms = [
        caseid.tensor_term(key, draw(st.sampled_from(["float16", "int8"])), draw(SHAPES))
        if key == tensor
        else f"{key}={draw(VALUES)}"
        for key in keys
    ]
    return f"{operator}@{draw(st.integers(1, 30))}:{';'.join(terms)}"


@given(case_ids(), st.randoms(use_true_random=False))
def test_every_prefix_and_every_order_of_terms_selects_the_case(case_id: str, random: object) -> None:
    head, _, tail = case_id.partition(":")
    terms = tail.split(";")
    assert Query.parse(head).matches(case_id)
    for count in range(1, len(terms) + 1):
        assert Query.parse(f"{head}:{';'.join(terms[:count])}").matches(case_id)
    random.shuffle(terms)  # type: ignore[attr-defined]
    assert Query.parse(";".join(terms)).matches(case_id)
    assert Query.parse(f"{head.split('@')[0]}:{';'.join(terms)}").matches(case_id)


@given(case_ids(), st.data(), st.sampled_from(["order", "more", "fewer", "value", "operator", "opset"]))
def test_a_whole_id_selects_the_ids_that_say_the_same_and_no_other(
    one: str, data: st.DataObject, change: str
) -> None:
    head, _, tail = one.partition(":")
    terms = data.draw(st.permutations(tail.split(";")))
    changed = {
        "more": (head, [*terms, "one_key_more=1"]),
        "fewer": (head, [*terms[1:], "one_key_more=1"]),
        "value": (head, [f"{terms[0].partition('=')[0]}=another_value", *terms[1:]]),
        "operator": (f"{head[0]}{head}", terms),
        "opset": (f"{head}0", terms),
    }
    head, terms = changed.get(change, (head, terms))
    assert Query.parse(one).matches(f"{head}:{';'.join(terms)}") is (change in ("order", "more"))


@given(st.text("aG*?@:;=[]1 é\n", max_size=12))
def test_any_text_is_a_query_or_a_usage_error(text: str) -> None:
    try:
        query = Query.parse(text)
    except UsageError:
        return
    assert query.matches(ID) in (True, False)


def test_a_shape_is_a_tensors_and_no_list_of_an_attribute() -> None:
    query = Query.parse("axes=*[*]")
    assert query.matches("ReduceSum@13:case=a;data=float32[2,3];axes=int64[1]")
    assert not query.matches("ReduceSum@11:case=a;data=float32[2,3];axes=[2]")


def test_an_id_may_hold_an_empty_text_and_a_bare_term_may_not() -> None:
    id = "StringSplit@20:sweep=delimiters;X=string[3];delimiter="
    assert Query.parse(id).matches(id)
    assert not Query.parse("StringSplit:delimiter=").matches(id + "-")
    for text in ("delimiter=", "Round:axis>=", "Round:=1"):
        with pytest.raises(UsageError):
            Query.parse(text)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("Gather", "Gather"),
        ("Gather@13:axis=1", "Gather"),
        ("Gather*", None),
        ("axis=1", None),
        ("*@13", None),
    ],
)
def test_the_one_operator_that_a_query_speaks_of(text: str, literal: str | None) -> None:
    query = Query.parse(text)
    assert query.literal == literal
    assert [name for name in ("Gather", "GatherND", "Abs") if query.speaks_of(name)][:2] == (
        ["Gather"] if literal else ["Gather", "GatherND"]
    )
