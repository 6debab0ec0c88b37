"""Operators from folders named in HARNESS_OPERATORS: a formula and a spec are enough to run them; a formula
that fails costs its case, a module that fails ends the command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model.errors import UsageError
from harness.operators import VARIABLE, _own_modules
from tests.running import HARNESS, lines_of, results_of

FORMULAS = """\
import numpy as np

from harness.operators.base import Family, Operator
from harness.operators.formulas import decided


def absolute(X):
    if X.shape == (3,):
        raise SystemExit("not of three") if X.dtype == np.int32 else ValueError("not of three")
    return X.astype(np.float64) if X.shape == (4,) else np.abs(X)[:1] if X.shape == (5,) else np.abs(X)


REPLACES = {"Abs"}
OPERATORS = (Operator("Abs", Family(), decided(absolute)), Operator("NobodyElses", Family(), decided(np.negative)))
"""
SPEC = """\
operator: Abs
opsets: [13]
sweeps:
  - {name: sizes, X: {dtype: [float32, int32], shape: [[2], [3], [4], [5], [6]]}}
"""


def test_a_folder_of_operators_is_loaded_and_what_fails_costs_its_case(tmp_path: Path) -> None:
    (tmp_path / "operators").mkdir()
    (tmp_path / "operators" / "signs.py").write_text(FORMULAS, encoding="utf-8")
    (tmp_path / "Abs.yaml").write_text(SPEC, encoding="utf-8")
    environment = {**os.environ, "HARNESS_OPERATORS": str(tmp_path / "operators")}
    command = [*HARNESS, "run", "Abs.yaml", "-t", "cpu", "-o", "run"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    found = {case.partition("X=")[2]: result for case, result in results_of(tmp_path / "run").items()}
    assert {name: result["outcome"] for name, result in found.items()} == {
        **{f"{dtype}[{size}]": "pass" for dtype in ("float32", "int32") for size in (2, 6)},
        **{f"{dtype}[{size}]": "oracle_error" for dtype in ("float32", "int32") for size in (3, 4, 5)},
    }
    error = found["float32[3]"]["error"]
    assert (error["class"], error["message"]) == ("OracleError", "Abs: ValueError: not of three")
    assert found["int32[3]"]["error"]["message"] == "Abs: SystemExit: not of three"
    assert (
        found["int32[4]"]["error"]["message"]
        == "Abs: FormulaError: the formula gives float64 where the output is int32"
    )
    assert (
        found["int32[5]"]["error"]["message"] == "Abs: output 0 of the formula has shape [1], inferred is [5]"
    )
    assert {result["operator"] for result in found.values()} == {"Abs"}


def test_without_the_variable_they_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "signs.py").write_text(FORMULAS, encoding="utf-8")
    command = [
        sys.executable,
        "-c",
        "from harness.operators import OPERATORS; print('NobodyElses' in OPERATORS, len(OPERATORS))",
    ]
    found = []
    for folders in ("", str(tmp_path)):
        done = subprocess.run(
            command,
            env={**os.environ, "HARNESS_OPERATORS": folders},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(done.stdout.split())
    assert [there for there, _ in found] == ["False", "True"]
    assert int(found[1][1]) > int(found[0][1])


def command(folder: Path, operators: Path | str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HARNESS_OPERATORS": str(operators)}
    line = [*HARNESS, *arguments]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_its_modules_are_part_of_the_oracle_s_hash(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "Abs.yaml").write_text(SPEC, encoding="utf-8")
    hashes = []
    for name, text in (("none", None), ("one", FORMULAS), ("other", FORMULAS.replace("(3,)", "(6,)"))):
        if text is not None:
            (tmp_path / "own" / "signs.py").write_text(text, encoding="utf-8")
        command(tmp_path, tmp_path / "own", "run", "Abs.yaml", "-t", "fake", "-o", name)
        hashes.append(lines_of(tmp_path / name)[0]["hashes"])
    assert len({each["oracle"] for each in hashes}) == 3
    assert len({each["specs"] for each in hashes}) == 1
    ended = command(tmp_path, "", "run", "Abs.yaml", "-t", "fake", "--resume", "-o", "other")
    assert ended.returncode == 2
    assert "the hash of the oracle changed since" in ended.stderr


@pytest.mark.slow
def test_a_node_of_a_cluster_with_other_modules_is_another_one(tmp_path: Path) -> None:
    script = "from harness.run.cluster.identity import identity; print(identity().code)"
    found = []
    for name, text in (("none", None), ("one", FORMULAS), ("other", FORMULAS.replace("(3,)", "(6,)"))):
        (tmp_path / name).mkdir()
        if text is not None:
            (tmp_path / name / "signs.py").write_text(text, encoding="utf-8")
        environment = {**os.environ, "HARNESS_OPERATORS": str(tmp_path / name)}
        found.append(subprocess.check_output([sys.executable, "-c", script], env=environment))
    assert len(set(found)) == 3


IMPORTS = FORMULAS.partition("def ")[0]
UNNAMED = FORMULAS.replace('REPLACES = {"Abs"}', "")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (UNNAMED, 'own.py: Abs is an operator of the harness already; to replace it, write REPLACES = {"Abs"}'),
        (FORMULAS.replace("def absolute(X):", "def absolute(X)"), "own.py:7: SyntaxError: expected ':' (own.py, line 7)"),
        (f"{IMPORTS}\n\n{'x' * 3} = 1 / 0\n", "own.py:9: ZeroDivisionError: division by zero"),
        ("\nimport no_such_module\n", "own.py:2: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f():\n    raise SystemExit(0)\n\n\nf()\n", "own.py:2: SystemExit: 0"),
        ('raise ValueError("one\\ntwo")\n', "own.py:1: ValueError: one two"),
        ("OPERATORS = (abs,)\n", "own.py:1: TypeError: expected an Operator, not <built-in function abs>"),
        (f'{IMPORTS}OPERATOR = Operator("my.A", Family(), decided(np.abs), signature={{"inputs": 3}})',
         "own.py:1: ValueError: signature of my.A: Expected `array`, got `int` - at `$.inputs`"),
        (f'{IMPORTS}OPERATOR = Operator("my.A", Family(), decided(np.abs), signature={{"inputs": ["X: T"], "outputs": []}})',
         "own.py:1: ValueError: signature of my.A: X has the type 'T', which is neither an element type nor a key of `types`"),
        (f'{IMPORTS}OPERATOR = Operator(5, Family(), decided(np.abs))',
         "own.py:1: TypeError: Operator 5: name should be a str, not 5"),
        (f'{IMPORTS}OPERATOR = Operator("my.A", None, decided(np.abs))',
         "own.py:1: TypeError: Operator 'my.A': family should be a Family, not None"),
        ("OPERATOR = abs\n", "own.py:1: TypeError: expected an Operator, not <built-in function abs>"),
    ],
    ids=["replaces", "syntax", "exception", "import", "exit", "two lines", "no operators",
         "signature", "type", "name", "family", "no operator"],
)  # fmt: skip
def test_what_is_wrong_with_a_module_is_its_author_s(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    done = command(tmp_path, tmp_path, "list", "-k", "Round:case=*", "--count")
    assert (done.returncode, done.stderr) == (2, f"harness: {tmp_path}/{complaint}\n")


@pytest.mark.slow
def test_the_documented_operator(tmp_path: Path) -> None:
    page = Path("docs/specs.md").read_text(encoding="utf-8").partition("## An operator of your own")[2]
    for language, name in (("python", "own.py"), ("yaml", "Abs.yaml")):
        text = page.partition(f"```{language}\n")[2].partition("```")[0]
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = command(tmp_path, tmp_path, "run", "Abs.yaml", "-t", "fake", "-o", "run")
    assert done.returncode == 0, done.stderr
    assert len(results_of(tmp_path / "run")) > 100
    own = tmp_path / "own.py"
    own.write_text(
        own.read_text()
        .replace('Abs", ELEMENTWISE', 'Abs", Family()')
        .replace("import Operator", "import Family, Operator")
    )
    done = command(tmp_path, tmp_path, "check", "Abs.yaml")
    why = "X of Abs takes no `values:`; its family defines no kinds of values; remove the key"
    assert (done.returncode, done.stderr) == (2, f"harness: Abs.yaml:4: sweeps[0].X.values: {why}\n")


def test_two_modules_with_one_operator_are_refused(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(FORMULAS, encoding="utf-8")
    done = command(tmp_path, tmp_path, "list", "--count")
    said = f"harness: {tmp_path}/second.py: Abs is an operator of {tmp_path}/first.py already\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    done = command(tmp_path, os.pathsep.join([str(tmp_path), "absent"]), "list", "--count")
    said = "harness: HARNESS_OPERATORS: absent: there is no such folder\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_a_folder_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Path.glob passes over it, so that a command knew no operator of the folder and said nothing."""

    def denied(self: Path) -> Iterator[Path]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(Path, "iterdir", denied)
    with pytest.raises(UsageError, match=f"HARNESS_OPERATORS: {tmp_path}: cannot be read: Permission denied"):
        _own_modules()


SCALED = """\
from harness.operators.base import Operator
from harness.operators.elementwise.elementwise_family import ELEMENTWISE
from harness.operators.formulas import bounded

SIGNATURE = {
    "inputs": ["X: T"], "outputs": ["Y: T"], "types": {"T": ["float32"]}, "attributes": {"factor": ["FLOAT", 1.0]}
}
OPERATOR = Operator("own.operators.Scaled", ELEMENTWISE, bounded(lambda x, factor: x * factor), signature=SIGNATURE)
"""
SCALED_SPEC = """\
operator: Scaled
domain: own.operators
opsets: [1]
sweeps:
  - {name: factors, X: {shape: [[2, 3], [17]], values: [ordinary, specials]}, attributes: {factor: [null, 0.1, -2]}}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.slow
def test_a_library_of_custom_operators_is_loaded_into_every_session(tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "custom_operators" / "library.c"
    library = tmp_path / "libscaled.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    (tmp_path / "operators").mkdir()
    (tmp_path / "operators" / "scaled.py").write_text(SCALED, encoding="utf-8")
    (tmp_path / "Scaled.yaml").write_text(SCALED_SPEC, encoding="utf-8")
    environment = {**os.environ, "HARNESS_OPERATORS": str(tmp_path / "operators")}
    outcomes = {}
    for target in (f"cpu,library={library}", "cpu", f"cpu,library={source}"):
        command = [*HARNESS, "run", "Scaled.yaml", "-t", target, "-o", "run", "--force"]
        subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
        results = results_of(tmp_path / "run")
        assert len(results) == 12
        outcomes[target] = {result["outcome"] for result in results.values()}
    assert list(outcomes.values()) == [{"pass"}, {"rejected"}, {"unavailable"}]
