"""Caches of their own for the environments of these tests: with a real release, and with a stand-in for it
from an index in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model.cache_folder import CACHE_ENV
from harness.targets.runtimes import environments, index, pythons
from tests.standin import write_index

RELEASE = "1.20.1"
"""Has wheels for every Python that the harness runs in, and is from before sessions could tell where a node
was placed."""
OTHER = "1.21.1"
"""A release that no test leaves installed."""
_OTHER_INDEXES = ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", *index._UV_INDEX)


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
    """Return a cache in which the real RELEASE is installed."""
    return _installed(tmp_path_factory.mktemp("cache"), {})


@pytest.fixture
def with_release(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use that cache; return the folder of RELEASE's environment."""
    monkeypatch.setenv(CACHE_ENV, str(shared_cache))
    return shared_cache / "runtimes" / f"onnxruntime-{RELEASE}"


@pytest.fixture(scope="session")
def _standin_index(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the variables that name an index of stand-ins: releases for every Python, and 1.2.0 for Python
    3.8 alone."""
    releases = {version: ["py3"] for version in (RELEASE, OTHER, "1.22.0", "1.22.1", "1.23.0", "1.23.1")} | {
        "1.2.0": ["cp38"]
    }
    address = write_index(tmp_path_factory.mktemp("index"), releases)
    return {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": address,
        "UV_CACHE_DIR": str(tmp_path_factory.mktemp("uv")),
    }


@pytest.fixture
def standins(_standin_index: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the package index be one of stand-ins."""
    for name in _OTHER_INDEXES:
        monkeypatch.delenv(name, raising=False)
    for name, value in _standin_index.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def _standin_cache(tmp_path_factory: pytest.TempPathFactory, _standin_index: dict[str, str]) -> Path:
    return _installed(tmp_path_factory.mktemp("cache"), _standin_index)


@pytest.fixture
def with_standin(_standin_cache: Path, standins: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a cache with a stand-in for RELEASE; return the folder of its environment."""
    monkeypatch.setenv(CACHE_ENV, str(_standin_cache))
    return _standin_cache / "runtimes" / f"onnxruntime-{RELEASE}"


def _installed(place: Path, variables: dict[str, str]) -> Path:
    """Install RELEASE in a cache, with some variables set and other indexes than theirs not."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _OTHER_INDEXES if variables else ():
            patch.delenv(name, raising=False)
        for name, value in {**variables, CACHE_ENV: str(place)}.items():
            patch.setenv(name, value)
        forget()
        environments.prepare(RELEASE)
        forget()
    return place


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
    for name in _OTHER_INDEXES:
        monkeypatch.delenv(name, raising=False)
