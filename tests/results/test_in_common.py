"""What failures have in common, in the reports that every run ends with."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from harness.commands.report import rendering
from harness.render.html import render_html
from harness.render.terminal import render_terminal
from harness.results.counted import read_tables
from harness.results.explain import in_common as module
from harness.results.explain.in_common import InCommon, in_common, rules
from harness.results.report import Report
from harness.results.runfile import RunReader
from tests.results.test_explain import a_result, cases, write
from tests.running import SPECS, harness, script_of
from tests.synthetic import CPU, write_results

_RULE = "data=float16 and values=mixed: 16 of 16 fail; elsewhere 0 of 86"


def _plant(case: str) -> str | None:
    return "rejected:Fail" if "data=float16" in case and "mixed" in case else None


def _found(path: Path) -> InCommon:
    return in_common(path, read_tables(RunReader(path)))


def test_every_report_says_the_rule(tmp_path: Path) -> None:
    path = write(tmp_path, _plant)
    (group,) = _found(path).groups
    assert group.number == 16
    (rule,) = rules(group)
    assert rule == _RULE
    markdown = "".join(rendering(path, "markdown"))
    assert (
        markdown.index("## Not as expected")
        < markdown.index("## What they have in common")
        < markdown.index(rule)
    )
    assert markdown.index(rule) < markdown.index("## Operators")
    page = render_html(path)
    assert page.index('id="unexpected"') < page.index(rule) < page.index('id="where"')
    tables, out = read_tables(RunReader(path)), io.StringIO()
    render_terminal(Report(tables, in_common(path, tables)), Console(file=out, width=80))
    assert f"    {rule}" in out.getvalue()
    assert page == render_html(path)
    assert markdown == "".join(rendering(path, "markdown"))


def test_a_run_ends_with_the_rule_in_its_reports(tmp_path: Path) -> None:
    script = script_of(tmp_path, [("Round@22:X=float16", "reject")])
    ended = harness(
        "run", SPECS / "Round.yaml", "-t", f"fake,script={script}", "-k", "sweep=rank", "-o", tmp_path / "run"
    )
    assert ended.code == 1
    rule = "opset=22 and X=float16: "
    assert rule in ended.out
    for name in ("report.md", "report.html"):
        assert rule in (tmp_path / "run" / name).read_text(encoding="utf-8")


def test_what_is_as_expected_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, lambda case: "known:Fail" if "X=float16" in case else None)
    tables = read_tables(RunReader(path))
    path.unlink()
    assert in_common(path, tables) == InCommon()
    assert not in_common(path, tables)


def test_what_is_not_explained_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUPS", 1)
    path = write(
        tmp_path,
        lambda case: (
            "rejected:Fail" if "X=float16" in case else "rejected:Other" if "data=int64" in case else None
        ),
    )
    found = _found(path)
    assert [group.number for group in found.groups] == [32]
    assert found.remark == "1 smaller group not explained here: harness explain RUN tells them all."
    assert "1 smaller group not explained here: harness explain RUN" in "".join(rendering(path, "markdown"))


def test_a_run_of_too_many_results_says_how_to_explain_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RESULTS", 101)
    found = _found(write(tmp_path, _plant))
    assert found.groups == ()
    assert found.remark.startswith("Too many results to explain in a report: harness explain RUN")


def test_a_run_that_cannot_be_explained_still_has_its_reports(tmp_path: Path) -> None:
    twice = [a_result(case, _plant(case)) for case in (*cases(), cases()[0])]
    path = write_results(tmp_path / "run.jsonl", twice, {"cpu": CPU})
    assert "Not explained: " in "".join(rendering(path, "markdown"))
    assert "is in it twice" in render_html(path)


def test_several_rules_and_none_are_said(tmp_path: Path) -> None:
    def plant(case: str) -> str | None:
        return "rejected:Fail" if "data=float16" in case or "X=float32" in case else None

    (group,) = _found(write(tmp_path, plant)).groups
    said = list(rules(group))
    assert said[0] == "no single rule; one of 2 holds"
    assert said[-1] == "elsewhere 0 of 67"
    (alone,) = _found(write(tmp_path, lambda _: "rejected:Fail", "all")).groups
    assert list(rules(alone)) == ["no case of this kind passes: there is nothing to tell it from"]
