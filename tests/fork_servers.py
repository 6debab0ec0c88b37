"""One process that forks workers for all tests of a process: a test that starts a worker then waits for no imports."""

from __future__ import annotations

import os
from collections.abc import Mapping

from harness.targets.fake_script import SCRIPT
from harness.targets.starting import ForkedWorker, ForkServer

_AT_FIRST = dict(os.environ)
_OF_PYTEST = "PYTEST_CURRENT_TEST"
_servers: dict[object, ForkServer] = {}


class SharedForkServer(ForkServer):
    """A `ForkServer` whose process stays for the next one of the same program, unless a test has changed the environment."""

    def fork(self, environment: Mapping[str, str]) -> ForkedWorker:
        changed = (_AT_FIRST.items() ^ os.environ.items()) - {
            (_OF_PYTEST, each.get(_OF_PYTEST, "")) for each in (_AT_FIRST, os.environ)
        }
        if changed:
            return super().fork(environment)
        own = {key: value for key, value in self._environment.items() if key == SCRIPT}
        shared = {key: value for key, value in self._environment.items() if key != SCRIPT}
        key = (os.getpid(), *self._argv, *sorted(shared.items()))
        server = _servers.setdefault(key, ForkServer(self._argv, shared))
        return server.fork({**own, **environment})
