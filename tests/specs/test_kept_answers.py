"""Answers that are kept: said again where nothing has changed, and never instead of another."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.commands.cli import cli
from harness.model.cache_folder import CACHE_ENV
from harness.operators import VARIABLE
from harness.specs.cache import digests, kept_answers
from harness.specs.cache.kept_answers import answer, keep
from harness.specs.expectations import expectations, target_expectations
from harness.specs.reading import load
from harness.specs.sweeps import family_sweeps


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two of the harness's own specs as if they were all, and a cache of their own."""
    folder = tmp_path / "specs"
    (folder / "expectations").mkdir(parents=True)
    for name in ("Identity.yaml", "Neg.yaml"):
        shutil.copy(load.default_folder() / name, folder)
    shutil.copytree(load.default_folder() / "families", folder / "families")
    for place in (load, kept_answers, expectations, family_sweeps, target_expectations):
        monkeypatch.setattr(place, "default_folder", lambda: folder)
    monkeypatch.setenv(CACHE_ENV, str(tmp_path / "cache"))
    return folder


def asked(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    return result.exit_code, result.stdout  # progress, which takes as long as it takes, is on stderr


@pytest.fixture
def unasked(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let finding an answer fail, so that only a kept one can be said."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("it was looked for again")

    monkeypatch.setattr("harness.api.load", fail)
    monkeypatch.setattr("harness.specs.reading.load.load_each", fail)
    return monkeypatch


@pytest.mark.parametrize("command", [("list", "--count"), ("check",)])
def test_an_answer_is_said_again(
    specs: Path, command: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    first = asked(*command)
    assert first[0] == 0, first[1]
    assert first[1]
    request.getfixturevalue("unasked")
    assert asked(*command) == first
    (specs / "Neg.yaml").write_text((specs / "Neg.yaml").read_text() + "# another comment\n")
    with pytest.raises(AssertionError, match="looked for again"):
        asked(*command)


@pytest.mark.usefixtures("specs")
def test_what_is_wrong_is_said_each_time(specs: Path) -> None:
    with (specs / "Neg.yaml").open("a") as file:
        file.write("unknown: 1\n")
    found = CliRunner().invoke(cli, ["check"])
    assert found.exception is not None
    assert answer(f"check {date.today()}") is None


def test_a_question_is_answered_of_all_specs_alone(specs: Path, unasked: pytest.MonkeyPatch) -> None:
    keep("list --count", "all")
    assert asked("list", "--count") == (0, "all\n")
    for more in (["-k", "Neg"], ["--thorough"], [str(specs)]):
        with pytest.raises(AssertionError, match="looked for again"):
            asked("list", "--count", *more)
    unasked.setenv(VARIABLE, str(specs))
    with pytest.raises(AssertionError, match="looked for again"):
        asked("list", "--count")


@pytest.mark.usefixtures("specs")
def test_another_day_and_other_code_are_other_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    keep("check 2026-01-01", "ok")
    assert answer("check 2026-01-01") == "ok"
    assert answer("check 2026-01-02") is None
    monkeypatch.setattr(digests, "code", lambda *_: b"another")
    assert answer("check 2026-01-01") is None


@pytest.mark.usefixtures("specs")
def test_a_damaged_answer_is_none(tmp_path: Path) -> None:
    keep("check", "ok")
    (path,) = (tmp_path / "cache" / "answers").iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    assert answer("check") is None


@pytest.mark.usefixtures("specs")
def test_only_the_newest_answer_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        monkeypatch.setattr(digests, "code", lambda *_, number=number: bytes([number]))
        keep("check", str(number))
        assert answer("check") == str(number)
    assert len(list((tmp_path / "cache" / "answers").iterdir())) == 1
