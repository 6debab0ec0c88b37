"""One process that forks workers for all tests of a process: a test that starts a worker then waits for no imports."""

from __future__ import annotations

import os
from collections.abc import Mapping

from harness.targets.fake_script import SCRIPT
from harness.targets.starting import ForkedWorker, ForkServer


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


_AT_FIRST = _environment()
_servers: dict[object, ForkServer] = {}


class SharedForkServer(ForkServer):
    """A `ForkServer` whose process stays for the next one of the same program, unless a test has changed the environment."""

    def fork(self, environment: Mapping[str, str]) -> ForkedWorker:
        if _environment() != _AT_FIRST:
            return super().fork(environment)
        own = {key: value for key, value in self._environment.items() if key == SCRIPT}
        shared = {key: value for key, value in self._environment.items() if key != SCRIPT}
        key = (os.getpid(), *self._argv, *sorted(shared.items()))
        server = _servers.setdefault(key, ForkServer(self._argv, shared))
        return server.fork({**own, **environment})
