from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import SpecError
from harness.specs.reading.source import MAX_BYTES, MAX_VALUES, Source, parse, read, show_path, suggestion


def parsed(text: str | bytes) -> Source:
    return parse(text.encode() if isinstance(text, str) else text, path=Path("x.yaml"), label="x.yaml")


def refused(text: str | bytes) -> tuple[str, ...]:
    with pytest.raises(SpecError) as raised:
        parsed(text)
    return raised.value.problems


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("12", 12),
        ("+12", 12),
        ("-9223372036854775808", -(2**63)),
        ("0", 0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("0x7fc00001", "0x7fc00001"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2024-01-31", "2024-01-31"),
        ("=", "="),
        ("'12'", "12"),
        ('"true"', "true"),
        ('"\\u00e9"', "é"),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    tree = parsed(f"- {text}\n").tree
    assert tree == (value,)
    assert type(tree[0]) is type(value)


def test_nan_and_negative_zero() -> None:
    nan, zero = parsed("[.nan, -0.0]").tree
    assert math.isnan(nan)
    assert math.copysign(1, zero) == -1


def test_sequences_are_tuples_and_a_mark_at_the_start_is_skipped() -> None:
    assert parsed(b"\xef\xbb\xbfa: [1, [2]]\nb: {c: }\n").tree == {"a": (1, (2,)), "b": {"c": None}}


def test_lines() -> None:
    source = parsed("a: 1\nb:\n  - c: 1\n    d:\n      [1,\n       2]\n  - e\n")
    assert source.where() == "x.yaml:1"
    assert source.where("a") == "x.yaml:1"
    assert source.where("b", 0, "d") == "x.yaml:4"
    assert source.where("b", 0, "d", 1) == "x.yaml:6"
    assert source.where("b", 1) == "x.yaml:7"
    assert source.where("b", 1, "unknown", 3) == "x.yaml:7"


def test_problem_line() -> None:
    source = parsed("cases:\n  - attributes: {axes: 1}\n")
    line = source.problem(
        ("cases", 0, "attributes", "axes"), "no such attribute", given="axes", allowed=["axis", "batch_dims"]
    )
    assert (
        line
        == "x.yaml:2: cases[0].attributes.axes: no such attribute; did you mean 'axis'?; allowed: axis, batch_dims"
    )
    assert source.problem((), "empty") == "x.yaml:1: empty"


def test_problems_come_in_the_order_of_lines_and_once() -> None:
    source = parsed("a: 1\n" + "\n" * 20 + "b: 2\n")
    first, second = source.problem(("b",), "late"), source.problem(("a",), "early")
    assert source.by_line([first, second, first]) == [second, first]


def test_thousands_of_problems_are_not_shown() -> None:
    problems = refused("a: 1\n" * 1000)
    assert len(problems) == 101
    assert problems[-1] == "x.yaml:1: 899 more problems in this file"


def test_show_path_quotes_what_is_no_word() -> None:
    assert show_path(("cases", 2, "inputs", "a b", 0)) == "cases[2].inputs.'a b'[0]"


def test_suggestion() -> None:
    assert suggestion("STATIC", ["static"]) == "; did you mean 'static'?; allowed: static"
    assert suggestion("zzz", ["static"]) == "; allowed: static"
    assert suggestion("name12", [f"name{i}" for i in range(100)]) == "; did you mean 'name12'?"
    assert suggestion(None, []) == ""


def test_two_problems_of_reading_come_together() -> None:
    assert refused("a: 01\nb: -0\nb: 2\n") == (
        "x.yaml:1: '01' is octal to some readers and decimal to others; write a decimal number without leading zeros",
        "x.yaml:2: '-0' is the integer 0; write -0.0 for the negative zero of a float",
        "x.yaml:3: b: the key is used twice; first on line 2",
    )


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.yaml: cannot read: "):
        read(tmp_path / "none.yaml")


def test_folder_instead_of_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot read"):
        read(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "Round.yaml")
    with pytest.raises(
        SpecError, match=r"Round\.yaml: is no regular file: save it as one, because it is read more than once"
    ):
        read(tmp_path / "Round.yaml")


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a right there")
def test_links_that_lead_nowhere_are_named_as_they_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop.yaml").symlink_to("loop.yaml")
    Path("dangling.yaml").symlink_to("gone.yaml")
    for name, why in (
        ("loop.yaml", "Too many levels of symbolic links"),
        ("dangling.yaml", "No such file or directory"),
    ):
        with pytest.raises(SpecError) as caught:
            read(Path(name))
        assert caught.value.problems == (f"{name}: cannot read: {why}",)


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() == 0, reason="needs file permissions that hold for the user"
)
def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: 1")
    path.chmod(0)
    with pytest.raises(SpecError, match="cannot read"):
        read(path)


def test_nul_in_a_path() -> None:
    with pytest.raises(SpecError, match="cannot read"):
        read(Path("a\0b.yaml"))


def test_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(SpecError, match="larger than 1,048,576 bytes"):
        read(path)


@pytest.mark.parametrize("tail", ["]", ""])
def test_many_values_are_not_waited_for(tail: str) -> None:
    """A value too many ends the reading on its line, whether the file is whole or cut off far behind it."""
    rows = f"{'1, ' * (MAX_VALUES // 3 - 1)}1,\n"
    data = ("[" + rows * 10 + tail).encode()
    assert len(data) < MAX_BYTES
    with pytest.raises(SpecError) as caught:
        parse(data, path=Path("many.yaml"), label="many.yaml")
    assert caught.value.problems == (
        "many.yaml:4: more than 100,000 keys and values in one file; split it, or use `fill` for large tensors",
    )


@pytest.mark.parametrize("text", ["0.0", "-0.0", "0e5", "0.000", "5e-324", "-.0"])
def test_zero_and_the_smallest_number_are_read(text: str) -> None:
    assert parse(f"a: {text}".encode(), path=Path("x"), label="x").tree == {"a": float(text)}


@pytest.mark.parametrize("text", ["1e-400", "-1e-400", ".1e-9999", "2e-324", f"0.{'0' * 390}1"])
def test_a_number_that_would_become_zero_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match=r"is too small for float64; write 0\.0 if you mean zero"):
        parse(f"a: {text}".encode(), path=Path("x"), label="x")


PIECES = [
    *"ab01:-?[]{},&*!|>'\"%@`#~ \t\n\\.<=",
    "...",
    "---",
    "%YAML 1.2",
    "\r",
    "é",
    "\u2028",
    "\ud7ff",
    "\\x",
    "? ",
    ": ",
    "- ",
]
YAML_TEXT = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
ANY_TEXT = st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.binary(max_size=80), YAML_TEXT.map(str.encode), ANY_TEXT))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    problems: tuple[str, ...] = ()
    try:
        parsed(data)
    except SpecError as error:
        problems = error.problems or ("none told",)
    assert all(problem.startswith("x.yaml:") for problem in problems)


def frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(frozen, value))
    return {key: frozen(v) for key, v in value.items()} if isinstance(value, dict) else value


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.text("abc é\n", max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=4)
    ),
    max_leaves=15,
)


@settings(deadline=None)
@given(PLAIN.filter(lambda value: value is not None))
def test_json_is_read_as_it_is(value: Any) -> None:
    assert parsed(json.dumps(value)).tree == frozen(value)


@pytest.mark.parametrize("separator", ["\x85", "\u2028", "\u2029"])
def test_a_line_end_that_not_every_reader_knows_is_refused_and_can_be_escaped(separator: str) -> None:
    assert refused(f"a: 1\nb: 'x{separator}y'") == (
        f"x.yaml:2: not text: the control character U+{ord(separator):04X}; in a string write it as an escape",
    )
    assert parsed(f'a: "x\\u{ord(separator):04x}y"').tree == {"a": f"x{separator}y"}


def test_a_list_without_an_end_names_its_beginning() -> None:
    assert refused("a: 1\nb: [1,\n  2,\nc: 3\nd: [") == (
        "x.yaml:5: not YAML: did not find expected ',' or ']' while parsing a flow sequence that begins on line 2",
    )
