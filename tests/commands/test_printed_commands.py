"""Every command that the harness prints is one that it accepts, on the run that it was printed for.

A situation is made with the fake target; what the run, its reports and the commands after it print is searched for
commands, and each of them is carried out where a reader would type it.
"""

from __future__ import annotations

import html
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from tests.running import Ended, harness, raising

pytestmark = pytest.mark.usefixtures("in_folder")
QUERY = "Round@22:sweep=sizes;X=float16"
REFUSED = (2, 5)
"""Exit codes of a command line that is not accepted, and of a fault."""
_AT_WORK = frozenset({"setup", "windows"})
"""Commands that fetch and install: of these it is asked alone whether they are there."""
_PRINTED = re.compile(r"^ *(harness [a-z].*)$|`(harness [a-z][^`]*)`|continue with: (harness [a-z].*)$", re.M)
SPEC = """\
operator: Round
opsets: [22]
cases:
  - name: mine
    inputs: {X: {dtype: float32, values: [0.5, 1.5]}}
    output: [%s, 2]
"""
ENTRY = "- match: '%s'\n  expect: mismatch\n  masked: any output will do\n  reason: %s\n  link: https://example.org/\n"


class Printed(NamedTuple):
    """A command, and the folder where it is typed."""

    command: str
    folder: Path


def commands(text: str) -> list[str]:
    """Return the commands in a text."""
    return [next(filter(None, found)) for found in _PRINTED.findall(text)]


def printed(ended: Ended, run: Path) -> set[Printed]:
    """Return what a command and the reports of a run print; those in report.md and report.html are typed beside
    them."""
    here = Path.cwd()
    found = {Printed(each, here) for text in (ended.out, ended.err) for each in commands(text)}
    for name, section in (
        ("report.md", r"(?s)\*\*What to do next\*\*\n\n.*?\n\n"),
        ("report.html", r">What to do next<.*?</div>"),
    ):
        if (run / name).exists():
            (text,) = re.findall(section, (run / name).read_text(encoding="utf-8"))
            shown = re.findall(r"`(harness [^`]*)`|<code>(harness [^<]*)</code>", text)
            found |= {Printed(html.unescape(a or b), here / run) for a, b in shown}
    junit = harness("report", run, "--format", "junit")
    bodies: dict[str, list[str]] = {}
    for element in ElementTree.fromstring(junit.out).iter() if junit.code == 0 else ():
        bodies.setdefault(element.get("type", ""), []).append(element.text or "")
    for texts in bodies.values():  # of many results of one type the first and the last
        found |= {Printed(each, here) for text in (texts[0], texts[-1]) for each in commands(text)}
    return found


def carried_out(found: set[Printed], monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Carry the commands out, each on the files as they were, and return their exit codes."""
    here, codes = Path.cwd(), {}
    for command, folder in sorted(found):
        words = shlex.split(command)[1:]
        if words[0] in _AT_WORK:
            words = [words[0], "--help"]
        if words[:2] == ["expect", "update"] and len(words) == 3:
            words.append("--check")  # it would write to the harness's own entries
        kept = here.with_name(f"{here.name}-kept")
        shutil.copytree(here, kept, symlinks=True)
        monkeypatch.chdir(folder)
        ended = harness(*words)
        monkeypatch.chdir(here)
        shutil.rmtree(here)
        shutil.copytree(kept, here, symlinks=True)
        shutil.rmtree(kept)
        monkeypatch.chdir(here)
        assert ended.code not in REFUSED, (command, ended.err)
        codes[command] = ended.code
    return codes


def script(rules: str) -> str:
    Path("script.yaml").write_text(f"rules: [{rules}]\n", encoding="utf-8")
    return "fake,script=script.yaml"


def ran(*arguments: str | Path) -> Ended:
    return harness("run", *arguments, "-o", "run")


def green() -> Ended:
    return ran("-t", "fake", "-k", QUERY, "-k", "Round@11:case=*", "--seed", "3")


def green_of_an_own_spec() -> Ended:
    Path("mine.yaml").write_text(SPEC % "0", encoding="utf-8")
    return ran("mine.yaml", "-t", "fake")


def red() -> Ended:
    return ran("-t", script("{match: 'Round:X=float16[5]', do: ulp}"), "-k", QUERY)


def red_on_a_real_target() -> Ended:
    Path("none.yaml").write_text("[]\n", encoding="utf-8")
    return ran("-t", "cpu", "-k", "Round@22:sweep=values;X=bfloat16", "--expectations", "none.yaml")


def red_of_a_shard_with_entries_in_a_folder() -> Ended:
    Path("entries").mkdir()
    Path("entries/fake.yaml").write_text(ENTRY % ("Round@11", "none"), encoding="utf-8")
    options = ("-k", "Round@22:sweep=rank", "--shard", "1/2", "--expectations", "entries")
    return ran("-t", script("{match: Round, do: fail}"), *options)


def red_by_improvements() -> Ended:
    Path("entries.yaml").write_text(ENTRY % ("Round:X=float16", "none"), encoding="utf-8")
    return ran("-t", "fake", "-k", QUERY, "--expectations", "entries.yaml")


def red_against_a_baseline() -> Ended:
    harness("run", "-t", "fake", "-k", QUERY, "-o", "base")
    return ran("-t", script("{match: 'Round:X=float16[5]', do: ulp}"), "-k", QUERY, "--baseline", "base")


def not_reviewed() -> Ended:
    Path("mine.yaml").write_text(SPEC % "0", encoding="utf-8")
    Path("entries.yaml").write_text(ENTRY % ("Round:X=float32[2]", "TODO"), encoding="utf-8")
    return ran("mine.yaml", "-t", script("{match: Round, do: ulp}"), "--expectations", "entries.yaml")


def a_spec_that_contradicts_the_formula() -> Ended:
    Path("mine.yaml").write_text(SPEC % "1", encoding="utf-8")
    return ran("mine.yaml", "-t", "fake")


def cut_off() -> Ended:
    red()
    path = Path("run/run.jsonl")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:9]))
    harness("report", "run", "--format", "markdown", "-o", "run/report.md")
    harness("report", "run", "--format", "html", "-o", "run/report.html")
    return ran("-t", "fake", "-k", QUERY)  # refused: the folder holds an unfinished run


def interrupted() -> Ended:
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr("harness.run.job.judge", raising(KeyboardInterrupt))
        return ran("-t", script("{match: Round, do: ulp}"), "-k", QUERY)


def nothing_ran() -> Ended:
    Path("script.yaml").write_text("startup: exit\n", encoding="utf-8")
    return ran("-t", "fake,script=script.yaml", "-k", "Round@22:case=*")


def a_query_that_matches_nothing() -> Ended:
    return harness(
        "run", "-t", "fake", "-k", "Round@22:sweep=sizes;X=float16[5];values=specials", "-o", "none"
    )


def a_target_that_is_missing() -> Ended:
    return harness("run", "-t", "nothing", "-k", QUERY, "-o", "none")


def entries_proposed() -> Ended:
    red()
    return harness("expect", "update", "run", "new.yaml")


def a_repro() -> Ended:
    (step,) = (each for each in commands(red_on_a_real_target().out) if "repro" in each)
    ended = harness(*shlex.split(step)[1:])
    shutil.rmtree("run")  # whoever reads the issue does not have it
    return ended._replace(out=Path("bug/issue.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("situation", "code", "wanted"),
    [
        (green, 0, {"run"}),
        pytest.param(green_of_an_own_spec, 0, set(), marks=pytest.mark.slow),
        pytest.param(red, 1, {"explain", "expect", "run"}, marks=pytest.mark.slow),
        (red_on_a_real_target, 1, {"explain", "expect", "repro", "run"}),
        pytest.param(
            red_of_a_shard_with_entries_in_a_folder, 1, {"explain", "expect", "run"}, marks=pytest.mark.slow
        ),
        pytest.param(red_by_improvements, 1, {"expect", "run"}, marks=pytest.mark.slow),
        pytest.param(red_against_a_baseline, 1, {"explain", "run"}, marks=pytest.mark.slow),
        pytest.param(not_reviewed, 1, {"expect"}, marks=pytest.mark.slow),
        pytest.param(a_spec_that_contradicts_the_formula, 1, {"check", "run"}, marks=pytest.mark.slow),
        (cut_off, 2, {"run", "explain"}),
        pytest.param(interrupted, 130, {"run"}, marks=pytest.mark.slow),
        pytest.param(nothing_ran, 3, {"targets"}, marks=pytest.mark.slow),
        pytest.param(a_query_that_matches_nothing, 4, {"list"}, marks=pytest.mark.slow),
        (a_target_that_is_missing, 2, set()),
        pytest.param(entries_proposed, 0, {"expect"}, marks=pytest.mark.slow),
        (a_repro, 0, {"run"}),
    ],
    ids=lambda given: given.__name__ if callable(given) else "",
)
def test_what_is_printed_is_accepted(
    situation: Callable[[], Ended], code: int, wanted: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = situation()
    assert ended.code == code, ended.err
    found = printed(ended, Path("run"))
    assert {shlex.split(each.command)[1] for each in found} >= wanted
    carried_out(found, monkeypatch)


def test_an_update_after_a_part_that_is_red_by_improvements_makes_it_green() -> None:
    (step,) = (each for each in commands(red_by_improvements().out) if " update " in each)
    assert harness(*shlex.split(step)[1:]).code == 0
    assert (
        harness("run", "-t", "fake", "-k", QUERY, "--expectations", "entries.yaml", "-o", "green").code == 0
    )


def test_no_repro_is_proposed_of_a_target_that_nobody_else_has() -> None:
    assert "harness repro" not in red().out
    assert "harness repro" not in harness("report", "run", "--format", "junit").out


def test_a_command_that_a_report_cannot_show_whole_is_left_out(tmp_path: Path) -> None:
    """It has a path of this machine."""
    (tmp_path / "far").mkdir()
    Path("far/script.yaml").write_text("rules: [{match: Round, do: ulp}]\n", encoding="utf-8")
    ran("-t", f"fake,script={tmp_path}/far/script.yaml", "-k", QUERY)
    path = Path("run/run.jsonl")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:9]))
    text = harness("report", "run", "--format", "markdown").out
    assert re.search(r"- Continue the run\n- \*\*Find what", text)
