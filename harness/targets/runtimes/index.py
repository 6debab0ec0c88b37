"""The package index as this machine configures it: its releases, and where uv fetches them from.

pip knows its configuration files and variables, uv does not read them: pip's settings are passed to uv. If
the environment configures uv (UV_DEFAULT_INDEX and the like), that decides for both. This module contains no
address.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from packaging.version import Version

from harness.model.errors import TargetUnavailable
from harness.targets.programs import captured, last_line
from harness.targets.runtimes.pythons import INSTALL

_UV_INDEX = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
_SECTIONS = ("global", "install", ":env:")
"""The sections of pip's configuration that count for an installation; a later one overrides an earlier
one."""


class Published(NamedTuple):
    """The versions of a project with a wheel for one Python on this machine, oldest first; `complete` unless an index
    failed to answer."""

    versions: tuple[Version, ...]
    complete: bool


class Configuration(NamedTuple):
    """Where packages come from: options for `uv pip install`, options for pip, and variables for both."""

    uv: tuple[str, ...]
    pip: tuple[str, ...]
    environment: dict[str, str]


@cache
def published(project: str, python: str) -> Published:
    """Ask pip which versions of a project have a wheel that a Python such as `3.11` can use here."""
    found = configuration()
    options = ["--python-version", python, "--only-binary", ":all:", "--pre", "--retries", "1", *found.pip]
    done = _pip(["index", "versions", "--json", *options, project], found.environment)
    complete = "Retrying (" not in done.stderr
    if done.returncode:
        return Published((), complete)
    return Published(tuple(sorted(map(Version, json.loads(done.stdout)["versions"]))), complete)


def ask_ahead(project: str, minors: Sequence[str]) -> None:
    """Ask for several Pythons at once; `published` then answers without waiting."""
    from concurrent.futures import ThreadPoolExecutor

    configuration()
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(lambda minor: published(project, minor), minors))


@cache
def configuration() -> Configuration:
    """Read uv's configuration from the environment, or pip's if there is none."""
    if any(name in os.environ for name in _UV_INDEX):
        return _of_uv()
    settings = _pip_settings()
    listed = {key: settings.get(key, "").split() for key in ("extra-index-url", "find-links", "trusted-host")}
    options: list[str] = []
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        options.append("--no-index")
    if "index-url" in settings:
        options += ["--default-index", settings["index-url"]]
    for key, option in (
        ("extra-index-url", "--index"),
        ("find-links", "--find-links"),
        ("trusted-host", "--allow-insecure-host"),
    ):
        options += [part for value in listed[key] for part in (option, value)]
    if listed["extra-index-url"]:
        options += ["--index-strategy", "unsafe-best-match"]  # as pip does: the best version of all indexes
    variables = {}
    if "cert" in settings:
        variables["SSL_CERT_FILE"] = settings["cert"]
    if "proxy" in settings:
        variables |= {"HTTP_PROXY": settings["proxy"], "HTTPS_PROXY": settings["proxy"]}
    return Configuration(
        tuple(options), (), {name: value for name, value in variables.items() if name not in os.environ}
    )


def _of_uv() -> Configuration:
    """Return for pip what the environment says to uv, which reads it by itself; an index may be written
    `name=address`."""
    options: list[str] = []
    default = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL")
    if default:
        options += ["--index-url", _address(default)]
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL"):
        options += [
            part
            for text in os.environ.get(name, "").split()
            for part in ("--extra-index-url", _address(text))
        ]
    options += [
        part
        for text in os.environ.get("UV_FIND_LINKS", "").split(",")
        if text
        for part in ("--find-links", text)
    ]
    return Configuration((), tuple(options), {})


def _address(index: str) -> str:
    name, equals, address = index.partition("=")
    return address if equals and name.isidentifier() else index


def _pip_settings() -> dict[str, str]:
    """Return pip's settings by their long names, the sections that count for an installation merged."""
    done = _pip(["config", "list"], {})
    if done.returncode:
        raise TargetUnavailable(f"pip cannot read its configuration: {last_line(done)}")
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section in found:
            found[section][key] = str(ast.literal_eval(value))
    return {key: value for section in _SECTIONS for key, value in found[section].items()}


def _pip(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    done = captured(command, env={**os.environ, **environment})
    if "No module named pip" in done.stderr:
        raise TargetUnavailable(f"pip, which asks the package index, is missing: {INSTALL}")
    return done
