"""Mirrors come from the machine's own configuration; downloads resume and are believed only by their hash."""

from __future__ import annotations

import hashlib
import http.server
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model.errors import HarnessFault, TargetUnavailable, UsageError
from harness.targets.windows import fetch
from harness.targets.windows.fetch import MIRROR_ENV, Mirrors, fetch_packages, find_mirrors
from harness.targets.windows.lock import DebianPackage
from harness.targets.windows.refresh import parse_print_uris
from harness.targets.windows.wheels import pip_download

CONTENT = bytes(range(256)) * 40


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT, also in ranges, and under some paths nothing, half of it or other bytes."""

    asked: list[tuple[str, str | None]] = []  # noqa: RUF012

    def do_GET(self) -> None:
        range_ = self.headers.get("Range")
        self.asked.append((self.path, range_))
        if "gone" in self.path:
            self.send_error(404)
            return
        start = int(range_.removeprefix("bytes=").rstrip("-")) if range_ else 0
        self.send_response(206 if range_ else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        sent = CONTENT[: len(CONTENT) // 2] if "cut" in self.path else CONTENT
        self.wfile.write((sent[::-1] if "altered" in self.path else sent)[start:])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror() -> Iterator[Mirrors]:
    Handler.asked.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    base = f"http://127.0.0.1:{server.server_port}/debian"
    yield Mirrors(base, base + "-security")
    server.shutdown()
    server.server_close()
    thread.join()


def package(name: str = "a", archive: str = "main", content: bytes = CONTENT) -> DebianPackage:
    return DebianPackage(
        name,
        "1:2+b1",
        archive,
        f"pool/{name}_1%3a2+b1.deb",
        len(content),
        hashlib.sha256(content).hexdigest(),
    )


@pytest.fixture(params=["apt", "python"])
def downloader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    if request.param == "python":
        monkeypatch.setattr(fetch, "APT_HELPER", str(tmp_path / "no-helper"))
    elif not Path(fetch.APT_HELPER).exists():
        pytest.skip("this machine has no apt")
    return str(request.param)


def test_packages_come_from_their_archive_and_are_kept(
    downloader: str, mirror: Mirrors, tmp_path: Path
) -> None:
    wanted = [package("a"), package("b", "security")]
    paths = fetch_packages(wanted, mirror, tmp_path / "d", lambda _: None)
    assert [paths[name].read_bytes() for name in ("a", "b")] == [CONTENT, CONTENT]
    assert sorted(path.split("/")[1] for path, _ in Handler.asked) == ["debian", "debian-security"]
    Handler.asked.clear()
    fetch_packages(wanted, mirror, tmp_path / "d", lambda _: None)
    assert Handler.asked == []


def test_a_half_download_is_continued(
    mirror: Mirrors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "APT_HELPER", str(tmp_path / "no-helper"))
    wanted = package()
    (tmp_path / f"a-{wanted.sha256[:12]}.deb.part").write_bytes(CONTENT[:1000])
    assert fetch_packages([wanted], mirror, tmp_path, lambda _: None)["a"].read_bytes() == CONTENT
    assert [range_ for _, range_ in Handler.asked] == ["bytes=1000-"]


@pytest.mark.parametrize(
    "wrong",
    [package("gone"), package("changed", content=CONTENT[::-1]), package("altered"), package("cut")],
    ids=lambda wrong: wrong.name,
)
def test_what_is_not_as_it_was_pinned_is_one_line(
    downloader: str, wrong: DebianPackage, mirror: Mirrors, tmp_path: Path
) -> None:
    with pytest.raises(TargetUnavailable, match="could not download") as caught:
        fetch_packages([wrong], mirror, tmp_path, lambda _: None)
    assert "\n" not in str(caught.value)
    assert "check the network" in str(caught.value)
    assert not list(tmp_path.glob("*.deb"))


def test_no_network_is_one_line(downloader: str, tmp_path: Path) -> None:
    with pytest.raises(TargetUnavailable, match="check the network"):
        fetch_packages(
            [package()], Mirrors("http://127.0.0.1:9/d", "http://127.0.0.1:9/s"), tmp_path, lambda _: None
        )


DEB822 = """\
Types: deb deb-src
# a comment
URIs: scheme://mirror.test/debian/
Suites: bookworm bookworm-updates
Components: main

Types: deb
Enabled: no
URIs: scheme://disabled.test/debian
Suites: bookworm-security

Types: deb
URIs: scheme://mirror.test/debian-security
Suites: bookworm-security
Components: main
"""
ONE_LINE = """\
# deb scheme://old.test/debian bookworm main
deb-src scheme://source.test/debian bookworm main
deb [arch=amd64 signed-by=/x.gpg] scheme://other.test/tools stable-thing main
deb [arch=amd64] scheme://lines.test/debian bookworm main contrib
deb scheme://lines.test/security bookworm/updates main
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.sources", DEB822, ("scheme://mirror.test/debian", "scheme://mirror.test/debian-security")),
        ("a.list", ONE_LINE, ("scheme://lines.test/debian", "scheme://lines.test/security")),
        (
            "a.list",
            "deb scheme://only.test/debian trixie main\n",
            ("scheme://only.test/debian", "scheme://only.test/debian-security"),
        ),
    ],
)
def test_mirrors_are_read_from_apt(
    name: str, text: str, expected: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(MIRROR_ENV, raising=False)
    (tmp_path / name).write_text(text)
    assert find_mirrors(sources=[str(tmp_path)]) == expected


def test_a_list_of_mirrors_gives_its_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MIRROR_ENV, raising=False)
    (tmp_path / "mirrors").write_text("scheme://one.test/debian/\nscheme://two.test/debian\n")
    (tmp_path / "a.list").write_text(f"deb mirror+file:{tmp_path}/mirrors sid main\n")
    assert find_mirrors(sources=[str(tmp_path / "a.list")]).main == "scheme://one.test/debian"


def test_an_option_goes_before_the_environment_and_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR_ENV, "http://env.test/debian")
    assert find_mirrors(sources=[]).main == "http://env.test/debian"
    assert find_mirrors("http://option.test/debian/", sources=[]) == (
        "http://option.test/debian",
        "http://option.test/debian-security",
    )


def test_without_a_mirror_the_error_says_how_to_name_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(MIRROR_ENV, raising=False)
    (tmp_path / "a.list").write_text("deb scheme://archive.test/ubuntu noble main\n")
    with pytest.raises(TargetUnavailable, match=f"give one with --mirror or {MIRROR_ENV}"):
        find_mirrors(sources=[str(tmp_path)])
    with pytest.raises(UsageError, match="is not the address of a Debian mirror"):
        find_mirrors("mirror.test", sources=[])


def test_what_apt_would_download_becomes_pins() -> None:
    mirrors = Mirrors("scheme://m/debian", "scheme://m/debian-security")
    listing = f"'scheme://m/debian-security/pool/w/w_1%2b2_amd64.deb' w_1%3a1+2_amd64.deb 12 SHA256:{'a' * 64}\nReading\n"
    assert parse_print_uris(listing, mirrors) == [
        DebianPackage("w", "1:1+2", "security", "pool/w/w_1+2_amd64.deb", 12, "a" * 64)
    ]
    with pytest.raises(HarnessFault, match="no packages"):
        parse_print_uris("", mirrors)
    with pytest.raises(HarnessFault, match=r"unknown mirror: w_1_amd64\.deb"):
        parse_print_uris(f"'scheme://x/w.deb' w_1_amd64.deb 12 SHA256:{'a' * 64}\n", mirrors)


def test_constraints_for_the_packages_of_this_python_do_not_reach_the_windows_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where `PIP_CONSTRAINT` holds CI to the releases of a lock."""
    name = "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(tmp_path / name, "w") as wheel:
        wheel.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        wheel.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("thing-1.0.dist-info/RECORD", "")
    (tmp_path / "constraints.txt").write_text("thing==2.0\n", encoding="utf-8")
    for variable, value in (
        ("NO_INDEX", "1"),
        ("FIND_LINKS", tmp_path),
        ("CONSTRAINT", tmp_path / "constraints.txt"),
    ):
        monkeypatch.setenv(f"PIP_{variable}", str(value))
    assert [path.name for path in pip_download(["thing==1.0"], tmp_path / "own")] == [name]
