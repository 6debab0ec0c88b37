"""Which tests share something and therefore run one after the other, in one process of pytest-xdist; all
others run anywhere.

pytest-xdist's own groups (`--dist loadgroup`) rest on an attribute that pytest 9.2 no longer reads, and then
group nothing.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    "tests/windows/": "the Windows runtime",
    "tests/browser/": "the browser",
    "tests/runtimes/": "the network",
    "tests/commands/test_bisect_command.py": "the network",
    "tests/specs/test_evidence.py": "the network",
    "tests/targets/test_remote.py": "the ssh server",
    "tests/cluster/": "the cluster",
    "tests/operators/test_onnx_cases.py": "the cases of ONNX",
    "tests/triage/test_importing.py::TestOnnx": "the cases of ONNX",
    "tests/operators/test_regions.py::test_roi_align_is_that_of_onnx": "the cases of ONNX",
    "tests/operators/test_recurrent.py": "the cases of recurrent operators",
    "tests/operators/test_wrong_resampling.py": "the cases of Resize",
    "tests/results/test_features.py::test_the_table_says": "the plan of one operator of each family",
    "tests/results/test_query_features.py": "the plan of one operator of each family",
    "tests/specs/test_selection.py::test_ids_are_unique": "the plan of one operator of each family",
    "tests/specs/test_api.py::test_no_case": "the plan of one operator of each family",
    "tests/specs/test_api_cases.py": "the plan of one operator of each family",
    "tests/directml/test_lowering.py": "the plan of one operator of each family",
    "tests/compile/test_graphs.py": "the plan of one operator of each family",
}
"""What the tests whose ids begin so share: what one process alone may have, or what takes it long to make.
The groups are large, so they are begun first."""
SYSTEM = {"the browser", "the network", "the ssh server", "the cluster"}
"""Whose tests need what no Python package brings, as those of the Windows runtime do: the default run leaves them out."""


def group_of(test: str) -> str:
    """Return the group of a test, which is its own where it shares nothing."""
    return next((group for path, group in GROUPS.items() if test.startswith(path)), test)


class Groups(LoadScopeScheduling):
    """Gives a process the next group when it has nearly finished the one before."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
