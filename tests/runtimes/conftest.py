"""A cache of its own for the environments of these tests, with one release in it that most of them share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.components import CACHE_ENV
from harness.runtimes import environments, index, pythons

RELEASE = "1.20.1"
"""Has wheels for every Python that the harness runs in, and is from before sessions could tell where a node was placed."""


def forget() -> None:
    """Let nothing be remembered of another cache, index or set of Pythons."""
    for function in (environments._faults, index.published, index.configuration, pythons.pythons):
        function.cache_clear()


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache in which RELEASE is installed."""
    place = tmp_path_factory.mktemp("cache")
    before = os.environ.get(CACHE_ENV)
    os.environ[CACHE_ENV] = str(place)
    try:
        environments.prepare(RELEASE)
    finally:
        os.environ.pop(CACHE_ENV)
        if before is not None:
            os.environ[CACHE_ENV] = before
    return place


@pytest.fixture
def with_release(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use that cache; return the folder of RELEASE's environment."""
    monkeypatch.setenv(CACHE_ENV, str(shared_cache))
    return shared_cache / "runtimes" / f"onnxruntime-{RELEASE}"


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty cache; return the folder in which environments will be."""
    monkeypatch.setenv(CACHE_ENV, str(tmp_path / "cache"))
    return tmp_path / "cache" / "runtimes"


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the package index be one that does not answer, and uv have nothing in its own cache."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", *index._UV_INDEX):
        monkeypatch.delenv(name, raising=False)
