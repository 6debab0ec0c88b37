"""What a test needs and a machine lacks: it skips with the remedy, fails where it is required, and the end of
the run tells it once."""

from __future__ import annotations

import pytest

from tests import needs


@pytest.fixture(autouse=True)
def _nothing_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(needs.REQUIRE_ENV, raising=False)


def test_what_is_there_is_not_skipped() -> None:
    needs.need("ssh", None)


def test_what_lacks_is_skipped_with_its_remedy() -> None:
    with pytest.raises(pytest.skip.Exception, match=r"^needs ssh: sshd is missing: install openssh-server$"):
        needs.need("ssh", "sshd is missing: install openssh-server")


@pytest.mark.parametrize("value", ["ssh", "browser ssh", "ssh,browser", "all"])
def test_what_is_required_and_lacks_fails(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(needs.REQUIRE_ENV, value)
    with pytest.raises(pytest.fail.Exception, match=r"^HARNESS_REQUIRE requires ssh: sshd is missing$"):
        needs.need("ssh", "sshd is missing")


def test_what_another_name_requires_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(needs.REQUIRE_ENV, "browser")
    with pytest.raises(pytest.skip.Exception):
        needs.need("ssh", "sshd is missing")


def test_an_unknown_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(needs.REQUIRE_ENV, "browser shh")
    with pytest.raises(pytest.UsageError, match=r"^HARNESS_REQUIRE names shh; there are all, browser, "):
        needs.required()


def test_the_end_of_the_run_tells_each_reason_once_with_its_count() -> None:
    reasons = [
        "needs ssh: install it",
        "needs ssh: install it",
        "Windows has none",
        "needs a pipe",
        "needs browser: get it",
    ]
    assert needs.summary(f"Skipped: {reason}" for reason in reasons) == [
        "1 tests of the report's page in a browser did not run: get it",
        "2 tests over ssh did not run: install it",
    ]
