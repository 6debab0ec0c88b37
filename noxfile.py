"""What contributors run: `nox -l` lists it. Each session uses the environment that is active, so that nothing is installed twice."""

from __future__ import annotations

from pathlib import Path

import nox

nox.options.sessions = ["check"]
nox.options.default_venv_backend = "none"


@nox.session
def check(session: nox.Session) -> None:
    """Lint, layout, types, imports, and the tests that take seconds: under a minute."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports")
    session.run(
        "python",
        "-m",
        "pytest",
        "-q",
        "tests/operators/test_elementwise.py",
        "tests/worker/test_placement.py",
        "tests/model/test_diff.py",
    )


@nox.session
def test(session: nox.Session) -> None:
    """The tests, or those named after `--`."""
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation site into `build/site/`."""
    session.run("python", "-m", "mkdocs", "build", "-d", "build/site", *session.posargs)


@nox.session
def bless(session: nox.Session) -> None:
    """Renew what is generated: golden files, schemas, the manifest of graphs, the table of operators."""
    session.run("python", "-m", "pytest", "-q", "tests/render", *session.posargs, env={"UPDATE_GOLDEN": "1"})
    session.run("harness", "compile")
    for module, page in (
        ("tools.operators", "operators.md"),
        ("harness.specs.expectations.expectations", "expectations.schema.json"),
        ("harness.specs.reading.schema", "spec.schema.json"),
        ("harness.specs.graphs.schema", "graph.schema.json"),
        ("harness.model.run_schema", "run.schema.json"),
    ):
        text = session.run("python", "-m", module, silent=True)
        Path("docs", page).write_text(str(text), encoding="utf-8")
