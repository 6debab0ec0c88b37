"""The pytest plugin: one item per case and target. Defines options and ini keys; imports their implementation
only when conformance is requested.

    pytest --harness --harness-target dml --harness-query Round        the harness's own specs
    pytest --harness specs/ -k float16                                 spec files, or folders of them
    pytest                                                             with the ini key `harness_specs = tests/conformance`

Documentation: docs/pytest.md.
"""

from __future__ import annotations

import pytest

_ACTIVE = "harness-conformance"
_OPTIONS = ("targets", "queries", "expectations", "timeout", "jobs")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what the command line calls -t, -k and so on; no plugin of others begins its options with
    `--harness`."""
    group = parser.getgroup("harness", "ONNX Runtime conformance")
    add = group.addoption
    add(
        "--harness",
        action="store_true",
        help="Collect conformance cases from the specs among the arguments, else from the harness's own.",
    )
    for name, of, metavar, text in (
        ("target", "targets", "TARGET", "As `harness run -t`."),
        ("query", "queries", "QUERY", "As `harness run -k`."),
        ("specs", "specs", "PATH", "Collect these specs too."),
        ("expectations", "expectations", "PATH", "Known deviations."),
    ):
        add(
            f"--harness-{name}", dest=f"harness_{of}", action="append", default=[], metavar=metavar, help=text
        )
    add(
        "--harness-timeout",
        dest="harness_timeout",
        type=float,
        metavar="S",
        help="Time limit of a case in seconds (default: 30).",
    )
    add(
        "--harness-jobs",
        dest="harness_jobs",
        type=int,
        metavar="N",
        help="Worker processes per target (default: one per processor).",
    )
    parser.addini(
        "harness_specs",
        "Spec files, or folders of them, that are collected beside the tests.",
        type="paths",
        default=[],
    )
    parser.addini(
        "harness_targets",
        "Targets where no --harness-target is given (default: cpu).",
        type="linelist",
        default=[],
    )
    parser.addini(
        "harness_expectations", "Known deviations (default: the harness's own).", type="paths", default=[]
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Take part in this run if it asks for conformance."""
    if config.getoption("harness") or config.getoption("harness_specs") or config.getini("harness_specs"):
        from harness.commands.pytest_plugin.conformance import Conformance

        config.pluginmanager.register(Conformance.of(config), _ACTIVE)
        return
    for option in _OPTIONS:
        if config.getoption(f"harness_{option}"):
            raise pytest.UsageError(
                "an option --harness-… is given, but no specs: add --harness or --harness-specs PATH"
            )
