"""Releases and levels: the table is whole, a version or level finds its release, the lock pins what each
needs."""

from __future__ import annotations

import pytest

from harness.model.errors import HarnessFault, UsageError
from harness.targets.windows import lock
from harness.targets.windows.releases import (
    default_release,
    release,
    release_for_level,
    releases,
    usable_levels,
)


def test_newest_release_is_the_default() -> None:
    assert default_release().onnxruntime == "1.24.4"
    assert release() == default_release()


@pytest.mark.parametrize(
    ("asked", "found"),
    [("1.12.1", "1.12.1"), ("1.22", "1.22.0"), ("1.10.0", "1.10.0"), ("1.10", "1.10.0"), ("1.24", "1.24.4")],
)
def test_a_version_or_its_beginning_finds_a_release(asked: str, found: str) -> None:
    assert release(asked).onnxruntime == found


@pytest.mark.parametrize("asked", ["1", "1.9.0", "1.2", "newest", "", "1.24.9", "1.1"])
def test_an_unknown_release_is_a_usage_error_that_lists_the_known(asked: str) -> None:
    with pytest.raises(
        UsageError, match=r"is not a release that runs here; those that do: 1\.10\.0, .*1\.24\.4$"
    ):
        release(asked)


def test_levels_are_sorted_and_lead_to_the_newest_release() -> None:
    assert usable_levels() == ("5_0", "5_1", "5_2", "6_1", "6_2", "6_3", "6_4")
    assert [release_for_level(level).onnxruntime for level in usable_levels()] == [
        *("1.11.1", "1.13.1", "1.14.1", "1.16.3", "1.17.1", "1.18.1", "1.24.4"),
    ]


@pytest.mark.parametrize("level", ["6_0", "4_1", "7_0", "6.0"])
def test_a_level_without_release_is_documented_not_run(level: str) -> None:
    with pytest.raises(UsageError, match="documented, not run"):
        release_for_level(level)


def test_a_level_with_a_dot_is_answered_with_what_was_meant() -> None:
    with pytest.raises(UsageError, match=r"no level '5\.0'; did you mean 'level-5_0'\?"):
        release_for_level("5.0")


def test_the_lock_pins_everything_that_a_release_needs() -> None:
    pinned = lock.load()
    for row in releases():
        python = pinned.python(row.python)
        assert f"python{row.python.replace('.', '')}.dll" in python.signed
        assert pinned.wheel("numpy", row.numpy, row.python).filename.endswith("win_amd64.whl")
        assert pinned.wheel("onnxruntime-directml", row.onnxruntime, row.python).size > 5_000_000
    names = [package.name for package in pinned.debian.packages]
    assert len(names) == len(set(names))
    assert {"wine64", "libwine", "mesa-vulkan-drivers", "libvulkan1", "dash", "coreutils"} <= set(names)


def test_the_lock_names_no_host() -> None:
    assert b"://" not in lock.dump(lock.load())


def test_the_lock_survives_encoding() -> None:
    assert lock.parse(lock.dump(lock.load())) == lock.load()


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"{}", "missing required field `debian`"), (b"{", "truncated"), (b'{"debian": 1}', "debian")],
)
def test_a_broken_lock_is_a_fault_that_says_where(data: bytes, message: str) -> None:
    with pytest.raises(HarnessFault, match=message):
        lock.parse(data)


def test_what_the_lock_lacks_is_named() -> None:
    with pytest.raises(HarnessFault, match=r"pins no numpy 9\.9 for Python 3\.12"):
        lock.load().wheel("numpy", "9.9", "3.12")
    with pytest.raises(HarnessFault, match=r"pins no Windows Python 2\.7"):
        lock.load().python("2.7")
