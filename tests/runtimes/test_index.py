"""How pip is configured reaches uv, and how the environment configures uv reaches pip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.targets.runtimes import index


@pytest.fixture
def pip_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    path = tmp_path / "pip.conf"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(path))
    return path


def _options(*names: str) -> list[str]:
    """Return the options of some names with their values; the machine's own configuration may add others."""
    given = index.configuration().uv
    return [part for at, part in enumerate(given) if part in names or (at and given[at - 1] in names)]


def test_uv_gets_what_pip_is_configured_with(pip_conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    pip_conf.write_text(
        "[global]\nindex-url = https://one.invalid/simple\nextra-index-url =\n    https://two.invalid/simple\n    file:///three\n"
        "trusted-host = one.invalid\ncert = /some/ca.pem\n[install]\nfind-links = /wheels\n"
    )
    monkeypatch.setenv("PIP_INDEX_URL", "https://four.invalid/simple")
    found = index.configuration()
    assert _options("--default-index") == ["--default-index", "https://four.invalid/simple"]
    assert _options("--index") == ["--index", "https://two.invalid/simple", "--index", "file:///three"]
    assert _options("--find-links") == ["--find-links", "/wheels"]
    assert _options("--allow-insecure-host") == ["--allow-insecure-host", "one.invalid"]
    assert _options("--index-strategy") == ["--index-strategy", "unsafe-best-match"]
    assert found.environment == {"SSL_CERT_FILE": "/some/ca.pem"}
    assert found.pip == ()


def test_pip_gets_what_the_environment_says_to_uv(pip_conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "main=https://one.invalid/simple")
    monkeypatch.setenv("UV_INDEX", "https://two.invalid/simple?a=b other=https://three.invalid/simple")
    monkeypatch.setenv("UV_FIND_LINKS", "/wheels,/more")
    found = index.configuration()
    assert found.uv == ()
    assert found.pip == (
        *("--index-url", "https://one.invalid/simple", "--extra-index-url", "https://two.invalid/simple?a=b"),
        *(
            "--extra-index-url",
            "https://three.invalid/simple",
            "--find-links",
            "/wheels",
            "--find-links",
            "/more",
        ),
    )


@pytest.mark.releases
def test_the_real_index_tells_releases_by_python() -> None:
    for_3_11, for_3_12 = (
        set(map(str, index.published("onnxruntime", python).versions)) for python in ("3.11", "3.12")
    )
    assert {"1.15.0", "1.15.1", "1.24.4"} <= for_3_11
    assert "1.24.4" in for_3_12
    assert "1.15.1" not in for_3_12
