"""How many lines an operator costs: its spec, and its formula with what it alone adds to its family.

Blank lines, comments and docstrings do not count. A function that several operators of a module use counts
for each in equal parts; classes are families, and what other modules share is neither.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path

import harness.operators
from harness.specs.reading.load import LoadedSpec

_FOLDER = Path(harness.operators.__path__[0])
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_Function = ast.FunctionDef


def yaml_lines(spec: LoadedSpec) -> int:
    """Count the lines of a spec."""
    lines = (line.strip() for line in spec.path.read_text("utf-8").splitlines())
    return sum(1 for line in lines if line and not line.startswith("#"))


def python_lines(modules: Mapping[str, str]) -> dict[str, Fraction]:
    """Count the lines of each operator's definition and of the functions of its module that it uses; `modules`
    names the module of each operator."""
    found: dict[str, Fraction] = {}
    for module in sorted(set(modules.values())):
        text = (_FOLDER / f"{module}.py").read_text("utf-8")
        own = {name for name, of in modules.items() if of == module}
        found |= _of_module(ast.parse(text), _code_lines(text), own)
    return found


def _of_module(tree: ast.Module, code: set[int], operators: set[str]) -> dict[str, Fraction]:
    """Count for the operators of a module; those that no call names share the statement that makes them all."""
    functions = {each.name: each for each in tree.body if isinstance(each, _Function)}
    made = [each for each in tree.body if isinstance(each, ast.Assign)]
    calls = (node for each in made for node in ast.walk(each) if isinstance(node, ast.Call))
    definitions: dict[str, ast.expr] = {name: call for call in calls if (name := _named(call)) in operators}
    for name in operators - definitions.keys():
        definitions[name] = next(each.value for each in made if _names(each) & {"OPERATOR", "OPERATORS"})
    uses = {name: _reached(node, functions) for name, node in definitions.items()}
    return {
        name: Fraction(_size(node, code), sum(other is node for other in definitions.values()))
        + sum(
            Fraction(_size(functions[each], code), sum(each in other for other in uses.values()))
            for each in uses[name]
        )
        for name, node in definitions.items()
    }


def _named(call: ast.Call) -> str | None:
    """Return the text that a call begins with, such as the name of an Operator."""
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _reached(node: ast.AST, functions: Mapping[str, _Function]) -> set[str]:
    """Return the functions that a node uses, and those that these use."""
    found: set[str] = set()
    waiting: list[ast.AST] = [node]
    while waiting:
        for name in _names(waiting.pop()) - found:
            if name in functions:
                found.add(name)
                waiting.append(functions[name])
    return found


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _size(node: ast.expr | _Function, code: set[int]) -> int:
    """Count the lines of a node, without the docstring of a function."""
    skipped: Iterable[int] = ()
    if isinstance(node, _Function) and ast.get_docstring(node) is not None:
        skipped = range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    return len(code.intersection(range(node.lineno, (node.end_lineno or 0) + 1)).difference(skipped))


def _code_lines(text: str) -> set[int]:
    return {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
