"""Runs that a URL names: answers are those of the same files in a folder, and SQL reaches nothing beside them."""

from __future__ import annotations

import contextlib
import functools
import http.server
import io
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from harness.model.errors import UsageError
from harness.results import columns
from harness.results.columns import Stored
from tests.histories import CASE, write_days
from tests.needs import need
from tests.results.test_columns import columns_of
from tests.running import complaint, harness, raising

ASKED = "SELECT run, target, outcome FROM results ORDER BY ALL"

need(
    "store",
    None if find_spec("fsspec") else "python -m pip install 'onnxruntime-conformance-harness[objects]'",
)


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """Return a folder with two days of columns, of which the names of folders look like patterns."""
    folder = write_days(tmp_path / "local", CASE, "pm")
    for day in sorted(folder.iterdir()):
        columns_of(day / "run.jsonl")
        (day / "run.jsonl").unlink()
        (day / "report.html").write_text("no run")
        day.rename(day.with_name(f"{day.name} [1]*%41"))
    return folder


@pytest.fixture
def memory(days: Path) -> Iterator[str]:
    """Yield the URL of the same files in memory, beside a file that is not named."""
    import fsspec

    store = fsspec.filesystem("memory")
    store.put(f"{days}/", "/bucket/runs/", recursive=True)
    store.pipe("/bucket/secret/run.parquet", next(days.rglob("*.parquet")).read_bytes())
    yield "memory://bucket/runs"
    store.rm("/bucket", recursive=True)


class _Ranges(http.server.SimpleHTTPRequestHandler):
    """Serves parts of files, as stores do."""

    protocol_version = "HTTP/1.1"

    def send_head(self) -> Any:
        asked = self.headers.get("Range")
        if asked is None:
            return super().send_head()
        first, last = map(int, asked.removeprefix("bytes=").split("-"))
        data = Path(self.translate_path(self.path)).read_bytes()
        part = data[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
        self.end_headers()
        return io.BytesIO(part)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def _serving(folder: Path, handler: type[_Ranges]) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=str(folder))
    ) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


@pytest.fixture
def served(days: Path) -> Iterator[str]:
    """Yield the URL of the same files on a web server."""
    need("store", None if find_spec("aiohttp") else "python -m pip install aiohttp")

    with _serving(days, _Ranges) as url:
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("place", ["memory", "served", "file"])
def test_answers_are_those_of_a_folder(
    days: Path, tmp_path: Path, place: str, request: pytest.FixtureRequest
) -> None:
    url = f"file://{days}" if place == "file" else request.getfixturevalue(place)
    for asked in (
        ("query", ASKED, "--format", "csv"),
        ("history", "--flips"),
        ("history", "--format", "json"),
    ):
        local, stored = harness(*asked, days), harness(*asked, url)
        assert stored == local
        assert local.code == 0
    pages = {}
    for where in (days, url):
        out = tmp_path / "site" / str(len(pages))
        assert harness("site", where, "-o", out).code == 0
        pages[where] = {path.relative_to(out): path.read_bytes() for path in out.rglob("*.*")}
    assert pages[days] == pages[url]
    assert len(pages[url]) > 5


def test_one_file_beside_a_folder(days: Path, memory: str) -> None:
    """A URL of a file is asked alone, and together with paths; a run that is in both is one too many."""
    first, second = sorted(days.iterdir())
    one = f"{memory}/{first.name}/run.parquet"
    assert harness("query", ASKED, one, "--format", "csv").out.count("\n") == 2
    assert harness("query", ASKED, one, second, "--format", "csv").out.count("\n") == 3
    twice = harness("query", ASKED, memory, first)
    assert (twice.code, twice.out) == (2, "")
    assert f"is also memory:///bucket/runs/{first.name}/run.parquet: move one of them away" in complaint(
        twice
    )


def test_trends_of_a_report(days: Path, memory: str, tmp_path: Path) -> None:
    run = next(days.rglob("*.parquet"))
    pages = []
    for where in (days, memory):
        out = tmp_path / f"{len(pages)}.html"
        assert harness("report", run, "--history", where, "-o", out).code == 0
        pages.append(out.read_bytes())
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    "sql",
    [
        "FROM 'memory://bucket/secret/run.parquet'",
        "FROM read_parquet('memory://bucket/runs/*/run.parquet')",
        "FROM read_parquet('run://2')",
        "FROM read_parquet('run://0/../../secret/run.parquet')",
        "FROM read_parquet('run://*')",
        "FROM glob('run://*')",
        "FROM read_text('file:///etc/hostname')",
        "FROM read_text('/etc/hostname')",
    ],
)
def test_sql_reaches_nothing_beside(memory: str, sql: str) -> None:
    ended = harness("query", sql, memory)
    assert (ended.code, ended.out) == (2, "")
    assert complaint(ended).startswith("query: ")
    assert "Permission Error: Cannot access " in complaint(ended) or "does not exist" in complaint(ended)


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("memory://bucket/none", 4, "memory://bucket/none: no *.parquet in it"),
        ("memory://bucket/no/run.parquet", 2, "memory://bucket/no/run.parquet: does not exist"),
        ("nope://x", 2, "nope://x: cannot be read: Protocol not known: nope"),
        ("http://127.0.0.1:9/run.parquet", 2, "http://127.0.0.1:9/run.parquet: cannot be read: Cannot connect to host 127.0.0.1:9 "),
    ],
)  # fmt: skip
def test_what_cannot_be_found(memory: str, url: str, code: int, said: str) -> None:
    for command in (("query", ASKED), ("history",)):
        ended = harness(*command, url)
        assert (ended.code, ended.out) == (code, "")
        assert complaint(ended).startswith(said)


@pytest.mark.parametrize(
    ("answers", "said"),
    [(0, "cannot be read: gone"), (1, "(cannot be read|damaged columns): ConnectionResetError: gone")],
)
def test_what_ends_while_it_is_read(
    memory: str, monkeypatch: pytest.MonkeyPatch, answers: int, said: str
) -> None:
    """A store that no longer answers, before or after the end of a file was read, is one line, and no damage; a history shows
    the other run."""
    from fsspec.implementations.memory import MemoryFileSystem

    opened = MemoryFileSystem.open

    def failing(self: Any, path: str, *rest: Any, **more: Any) -> Any:
        nonlocal left
        left -= "day01" in path
        if "day01" in path and left < 0:
            raise ConnectionResetError("gone\nfor ever")
        return opened(self, path, *rest, **more)

    monkeypatch.setattr(MemoryFileSystem, "open", failing)
    left = answers
    asked = harness("query", ASKED, memory)
    assert (asked.code, asked.out) == (2, "")
    assert re.search(rf"/run\.parquet: {said}$", complaint(asked))
    left = answers
    shown = harness("history", memory)
    assert shown.code == 2
    assert complaint(shown).startswith("left out: memory:///bucket/runs/day01")
    assert "1 run of 1 target" in shown.out


def test_a_server_that_lacks_a_file(served: str) -> None:
    url = f"{served}none/run.parquet"
    assert complaint(harness("query", ASKED, f"{url}?token=SECRET")) == f"{url}: does not exist"


@pytest.mark.parametrize("found", [False, True])
def test_messages_hold_no_secrets(
    memory: str, days: Path, monkeypatch: pytest.MonkeyPatch, found: bool
) -> None:
    """User, password and query of a URL are in no message: neither in its own words nor in those of the store."""
    from fsspec.implementations.memory import MemoryFileSystem

    url = "http://user:hunter2@host/a b/run.parquet?X-Amz-Signature=SECRET&more"

    def failing(*_: Any, **__: Any) -> Any:
        raise PermissionError(f"403, url='{url}'")

    with monkeypatch.context() as patched:
        patched.setattr(MemoryFileSystem, "open" if found else "info", failing)
        asked = harness("query", ASKED, f"{memory}/{min(days.iterdir()).name}/run.parquet")
    assert complaint(asked).endswith("/run.parquet: cannot be read: 403, url='http://host/a b/run.parquet")
    assert str(Stored(url, "run://0", 1, None)) == "http://host/a b/run.parquet"
    for said, code in (
        ("memory://user:hunter2@bucket/none?SECRET", 4),
        ("nope://user:hunter2@host/x?SECRET", 2),
    ):
        ended = harness("query", ASKED, said)
        assert ended.code == code
        assert complaint(ended).startswith(said.replace("user:hunter2@", "").replace("?SECRET", ": "))


def test_what_duckdb_says_holds_no_secrets(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFile

    from harness.results.store import Store

    monkeypatch.setattr(
        MemoryFile,
        "read",
        raising(PermissionError("403 of http://user:hunter2@host/run.parquet?X-Amz-Signature=SECRET")),
    )
    monkeypatch.setattr(Store, "end", lambda *_: b"")
    said = complaint(harness("query", ASKED, memory))
    assert said.endswith("403 of http://host/run.parquet")


def test_an_empty_folder_beside_a_run(memory: str, days: Path, tmp_path: Path) -> None:
    """Is one beside a run, as an empty folder that a path names."""
    (tmp_path / "empty").mkdir()
    for empty in ("memory://bucket/none", tmp_path / "empty"):
        for where in (days, memory):
            assert harness("query", ASKED, where, empty) == harness("query", ASKED, days)


def test_a_server_without_ranges(days: Path) -> None:
    """It sends the whole file, which is refused before it is read."""
    from harness.results.store import Store

    need("store", None if find_spec("aiohttp") else "python -m pip install aiohttp")

    class Whole(_Ranges):
        def send_head(self) -> Any:
            del self.headers["Range"]
            return super().send_head()

    with _serving(days, Whole) as url:
        (found,) = Store().below(f"{url}{quote(min(days.iterdir()).name)}/run.parquet")
        with pytest.raises(UsageError, match=r"cannot be read: .*(range requests|Cannot seek)"):
            found.filesystem.end(found.name)
        ended = harness("query", ASKED, found.url)
    assert ended.code == 2
    assert complaint(ended).startswith(f"{found.url}: cannot be read: ")


def test_an_end_with_more_than_was_asked_for(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.results.store import Store

    monkeypatch.setattr(
        Store, "end", lambda *_: bytes(100) + (33 << 20).to_bytes(4, "little") + columns.MAGIC
    )
    assert "damaged columns: a footer of 34," in complaint(harness("query", ASKED, memory))


def test_what_is_no_run(memory: str) -> None:
    import fsspec

    fsspec.filesystem("memory").pipe("/bucket/runs/other/x.parquet", b"PAR1 and no more")
    ended = harness("query", ASKED, memory)
    assert (ended.code, ended.out) == (2, "")
    assert complaint(ended).startswith("memory:///bucket/runs/other/x.parquet: damaged columns: ")


@pytest.mark.slow
def test_without_fsspec(days: Path) -> None:
    """Paths do without it; a URL names the extra."""
    code = "import sys; sys.modules['fsspec'] = None; from harness.__main__ import main; main()"
    for asked, ended_with in ((str(days), 0), (f"file://{days}", 2)):
        ended = subprocess.run(
            [sys.executable, "-c", code, "query", ASKED, asked],
            capture_output=True,
            text=True,
            env=os.environ,
        )
        assert ended.returncode == ended_with, ended.stderr
        if ended_with:
            assert ended.stderr == (
                "harness: a URL of runs needs fsspec: python -m pip install 'onnxruntime-conformance-harness[objects]'\n"
            )
