from __future__ import annotations

import pytest

from harness.render.text import gist, line, message, node_name, ranks, visible, without_paths


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("nul\x00 bell\x07 esc\x1b[31m", "nul\\x00 bell\\x07 esc\\x1b[31m"),
        ("zero\u200bwidth \U000e0041", "zero\\u200bwidth \\U000e0041"),
        ("caf\u00e9 \u65e5\u672c", "caf\u00e9 \u65e5\u672c"),
        ("\ud800", "\\ud800"),
    ],
)
def test_nothing_hides_or_reorders_text(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at /home/someone/build/gather_nd.cc:45 x", "at …/gather_nd.cc:45 x"),
        ("Load model from /tmp/a1/b.onnx failed", "Load model from …/b.onnx failed"),
        (r"C:\Users\someone\models\a.onnx", "…/a.onnx"),
        ("file:///srv/data/run.jsonl", "…/run.jsonl"),
        ("'/usr/lib/python3/site-packages/x.py'", "'…/x.py'"),
        ("508 / 512 and a/b and 1/2", "508 / 512 and a/b and 1/2"),
        ("see https://example.org/a/b", "see https://example.org/a/b"),
        (
            "Name:'/layer.0/MatMul' Status Message: /src/a/b.cc",
            "Name:'/layer.0/MatMul' Status Message: …/b.cc",
        ),
        ("Node (/layer.0/MatMul) Op (MatMul)", "Node (/layer.0/MatMul) Op (MatMul)"),
        ("for Cos(7) node with name '/layer.0/Cos'", "for Cos(7) node with name '/layer.0/Cos'"),
        (f"node {node_name('/layer.0/MatMul')}", "node \xa0/layer.0/MatMul"),
    ],
)
def test_paths_of_a_machine_do_not_reach_a_report(text: str, shown: str) -> None:
    assert without_paths(text) == shown


def test_a_megabyte_is_cut_and_said() -> None:
    shown = message("y" * 1_000_000, 50)
    assert shown == "y" * 50 + "… [1,000,000 characters in the run file]"
    assert line("a\n  b\tc", 50) == "a b c"


def test_the_gist_of_a_message() -> None:
    stage = "Non-zero status code returned while running GatherND node. Name:'tested' Status Message: "
    assert gist(f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : {stage}bad index") == "bad index"
    assert gist("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : no kernel") == "no kernel"
    assert gist("another message") == "another message"
    assert gist("x" * 300) == "x" * 240 + "…"


def test_ranks_fold() -> None:
    assert ranks([3, 1, 2, 8, 5, 6]) == "1–3, 5–6, 8"
    assert ranks([]) == ""
