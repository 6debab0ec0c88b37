"""What passed once is not held against the oracle again; all else is, and what is kept changes no result."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from harness.run import judge, kept_judgements
from harness.targets.execution import Prepared
from tests.running import ROUND, Ended, harness, lines_of

QUERY = "Round@22:sweep=sizes;X=float32"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept_judgements, "cache_folder", lambda kind: tmp_path / "cache" / kind)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache" / "judgements"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the cases that the oracle is asked about."""
    found: list[str] = []
    real = judge.oracle

    def oracle(prepared: Prepared, provider: str) -> Any:
        found.append(prepared.case.id)
        return real(prepared, provider)

    monkeypatch.setattr(judge, "oracle", oracle)
    return found


def again_at(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rows be judged anew whose key begins with a byte; with none, none."""
    monkeypatch.setattr(kept_judgements.random, "randrange", lambda _: first)


def run(folder: str, *arguments: str | Path) -> Ended:
    return harness("run", "-t", "cpu", "-k", QUERY, "-o", folder, *arguments)


def results(folder: str) -> list[dict[str, Any]]:
    return [{**line, "seconds": 0} for line in lines_of(Path(folder)) if "case" in line]


def rows(cache: Path) -> list[tuple[bytes, bytes]]:
    (path,) = cache.glob("passes-*.sqlite")
    database = sqlite3.connect(path)
    found = database.execute("SELECT key, row FROM passes").fetchall()
    database.close()
    return found


def change(cache: Path, statement: str) -> None:
    (path,) = cache.glob("passes-*.sqlite")
    database = sqlite3.connect(path)
    with database:
        database.execute(statement)
    database.close()


def test_a_second_run_asks_no_oracle_and_says_the_same(
    asked: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again_at(-1, monkeypatch)
    assert run("first").code == 0
    first, passed = asked.copy(), len(rows(cache))
    assert 10 < passed == len(set(first))
    asked.clear()
    assert run("second").code == 0
    assert (asked, results("second")) == ([], results("first"))


def test_another_seed_or_spec_or_release_of_the_code_asks_again(
    asked: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    again_at(-1, monkeypatch)
    run("first")
    every = sorted(asked)
    asked.clear()
    run("seed", "--seed", "1")
    assert sorted(asked) == every
    asked.clear()
    (tmp_path / "Round.yaml").write_bytes(ROUND.read_bytes())
    run("own", tmp_path / "Round.yaml")
    assert sorted(asked) == every
    asked.clear()
    real = kept_judgements.digests.code
    monkeypatch.setattr(
        kept_judgements.digests, "code", lambda *rooms: real(*rooms) + (b"x" if "run" in rooms else b"")
    )
    run("code")
    assert sorted(asked) == every


def test_other_outputs_are_judged(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An element that differs by one unit in the last place."""
    again_at(-1, monkeypatch)
    run("first")
    asked.clear()
    real = kept_judgements._KeptJudgements.compared

    def compared(self: Any, prepared: Prepared, outputs: Any, provider: str) -> judge.Judgement:
        if "float32[9]" in prepared.case.id:
            (output,) = outputs
            array = output.array.copy()
            array.view("uint32")[-1] ^= 1
            outputs = (output._replace(array=array),)
        return real(self, prepared, outputs, provider)

    monkeypatch.setattr(kept_judgements._KeptJudgements, "compared", compared)
    assert run("second").code == 1
    assert asked
    assert {each["case"] for each in results("second") if each["outcome"] == "mismatch"} == set(asked)


def test_a_part_is_judged_anew_and_a_wrong_row_found(
    asked: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("first")
    asked.clear()
    first = rows(cache)[0][0][0]
    again_at(first, monkeypatch)
    assert run("second").code == 0
    assert 0 < len(asked) == sum(key[0] == first for key, _ in rows(cache))
    change(cache, "UPDATE passes SET row = x'94c0c3c0c0'")
    ended = run("third")
    assert ended.code == 5
    assert "outputs that passed before do not pass as they did: delete" in ended.err


@pytest.mark.parametrize("how", ["cut", "a folder", "no rows"])
def test_a_damaged_file_costs_the_oracle_and_nothing_else(
    how: str, asked: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again_at(-1, monkeypatch)
    run("first")
    asked.clear()
    (path,) = cache.glob("passes-*.sqlite")
    if how == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    elif how == "a folder":
        for each in cache.iterdir():
            each.unlink()
        path.mkdir()
    else:
        change(cache, "UPDATE passes SET row = x'00'")
    assert run("second").code == 0
    assert asked
    assert results("second") == results("first")
    run("third")
    asked.clear()
    run("fourth")
    assert (asked == []) is (how != "a folder"), "what is damaged is made anew"


def test_without_sqlite_the_oracle_is_asked(
    asked: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_judgements, "sqlite3", None)
    assert run("first").code == run("second").code == 0
    assert len(asked) == 2 * len(set(asked))
    assert not cache.exists()


def test_of_other_code_few_files_stay(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(5):
        run("run", "--seed", str(seed), "--force")
    assert len(list(cache.glob("passes-*.sqlite"))) == 3
