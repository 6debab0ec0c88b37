"""The command line: see the package's description."""

from __future__ import annotations

import argparse
import itertools
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tools.refresh_directml import documents, kernel_table, provider, structures
from tools.refresh_directml.checkout import Checkout
from tools.refresh_directml.documents import Facts
from tools.refresh_directml.package import kernels_file, operators_file

DATA = Path(__file__).parents[2] / "harness" / "model" / "data"
_PAGE = re.compile(r"ns-directml-dml_([a-z0-9_]+?)(_operator)?_desc\.md$")
_API = "docs/directml/api/"
LICENCE = "pages CC BY 4.0, DirectMLSchema.h MIT; only facts are taken"
_CHECKOUTS = {
    "sdk-api": "MicrosoftDocs/sdk-api, or a repository with its rendered pages",
    "windows-ai-docs": "MicrosoftDocs/windows-ai-docs",
    "directml": "microsoft/DirectML",
    "onnxruntime": "microsoft/onnxruntime",
}


def extract_operators(sdk: Checkout, ai: Checkout, directml: Checkout) -> tuple[Facts, dict[str, list[str]]]:
    """Return the facts of every operator that has a page, and by operator what was not understood."""
    folder = next(
        folder for folder in ("sdk-api-src/content/directml/", "sdk-api/directml/") if sdk.names(folder)
    )
    schema = structures.schema_members(directml.text(structures.SCHEMA))
    numbers = structures.enumeration(sdk.text(_enumeration(sdk, folder, "ne-directml-dml_operator_type")))
    operators: Facts = {}
    remarks: dict[str, list[str]] = {}
    pages = [("sdk-api", sdk, name) for name in sdk.names(folder)] + [
        ("windows-ai-docs", ai, name) for name in ai.names(_API)
    ]
    for source, checkout, name in pages:
        page = _PAGE.search(name)
        if page is None or not (page[2] or "subsequences" in name) or name.endswith("dml_operator_desc.md"):
            continue
        operator = f"DML_OPERATOR_{page[1].upper()}"
        odd: list[str] = []
        operators[operator] = _facts(operator, checkout.text(name), schema, numbers, odd) | {
            "document": f"{source}:{name}"
        }
        if odd:
            remarks[operator] = odd
    sources = {
        "sdk-api": sdk.source(),
        "windows-ai-docs": ai.source(),
        "structures": directml.source(structures.SCHEMA),
    }
    _compare_history(
        operators, documents.history(ai.text("docs/directml/dml-feature-level-history.md")), remarks
    )
    return {"meta": {"sources": sources, "licence": LICENCE}, "operators": operators}, remarks


def _enumeration(checkout: Checkout, folder: str, stem: str) -> str:
    """Return the path of a page that prints an enumeration: rendered pages keep the code in a file of its
    own."""
    names = set(checkout.names(folder))
    return next(name for name in (f"{folder}{stem}.c", f"{folder}{stem}.md") if name in names)


def _facts(operator: str, text: str, schema: Facts, numbers: dict[str, int], odd: list[str]) -> Facts:
    level = documents.introduced(text, odd)
    tables, functions = documents.tensor_support(text, level, odd)
    members = schema.get(operator.replace("DML_OPERATOR_", "DML_")) or structures.printed_members(text)
    if not members:
        odd.append("no structure")
    entry: Facts = {"number": numbers[operator], "introduced": level, "members": members}
    if (alias := documents.aliasing(text)) is not None:
        entry["in_place"] = alias
    if equal := documents.constraints(text, odd):
        entry["constraints"] = equal
    return entry | ({"levels": tables} if tables else {}) | ({"functions": functions} if functions else {})


def _compare_history(operators: Facts, history: Facts, remarks: dict[str, list[str]]) -> None:
    for level, event in history.items():
        for operator in event["added"]:
            if operator not in operators:
                remarks.setdefault(operator, []).append(f"added in {level} and has no page")
            elif (printed := operators[operator]["introduced"]) != level:
                remarks.setdefault(operator, []).append(f"page {printed}, history {level}")


def extract_kernels(checkout: Checkout) -> tuple[Facts, Facts, dict[str, list[Facts]]]:
    """Return what was read where, the table of kernels, and the DirectML provider's registrations by
    operator."""
    source = {
        "onnxruntime": checkout.text("VERSION_NUMBER").strip(),
        "sources": [checkout.source(kernel_table.PATH), checkout.source(provider.REGISTRATION)],
    }
    registered: dict[str, list[Facts]] = {}
    for row in provider.registrations(checkout):
        name = f"{row['domain']}:{row['operator']}" if row["domain"] else row["operator"]
        registered.setdefault(name, []).append(row)
    return source, kernel_table.kernels(checkout.text(kernel_table.PATH)), registered


def read_facts(folder: Path) -> tuple[Facts, tuple[Facts, Facts, dict[str, list[Facts]]]]:
    """Read the YAML files of an earlier extraction."""
    kernels, registry = (
        folder / "onnxruntime_operator_kernels.yaml",
        folder / "directml_provider_registry.yaml",
    )
    found = re.search(r"ONNX Runtime ([\d.]+), commit (\w+) ([\d-]+)", _comment(kernels))
    assert found is not None, f"{kernels} does not name its commit at its head"
    paths = (kernel_table.PATH, provider.REGISTRATION)
    name = (
        "a public fork of microsoft/onnxruntime"
        if "fork" in _comment(kernels) + _comment(registry)
        else "microsoft/onnxruntime"
    )
    source = {
        "onnxruntime": found[1],
        "sources": [f"{name}:{path}@{found[2]} ({found[3]})" for path in paths],
    }
    return _yaml(folder / "directml_operators.yaml"), (
        source,
        _yaml(kernels)["providers"],
        _yaml(registry)["operators"],
    )


def _comment(path: Path) -> str:
    """Return the comment at the head of a file."""
    return "".join(
        itertools.takewhile(
            lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines(keepends=True)
        )
    )


def _yaml(path: Path) -> Any:
    with path.open(encoding="utf-8") as file:
        return yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write both files; 2 where a source is missing."""
    parser = argparse.ArgumentParser(prog="python -m tools.refresh_directml")
    parser.add_argument(
        "--facts", type=Path, help="folder with the YAML files of an earlier extraction, instead of checkouts"
    )
    parser.add_argument("--output", type=Path, default=DATA, help="folder to write to (default: %(default)s)")
    for name, what in _CHECKOUTS.items():
        parser.add_argument(f"--{name}", type=Path, help=f"checkout of {what}")
        parser.add_argument(f"--{name}-revision", default="HEAD")
    given = vars(parser.parse_args(arguments))
    if given["facts"] is None and (
        missing := [name for name in _CHECKOUTS if given[name.replace("-", "_")] is None]
    ):
        parser.error(
            f"missing: {', '.join('--' + name for name in missing)}; nothing is downloaded here. Clone them, or give --facts"
        )
    remarks: dict[str, list[str]] = {}
    try:
        if given["facts"] is not None:
            operators, kernels = read_facts(given["facts"])
        else:
            opened = [_opened(name, given) for name in _CHECKOUTS]
            operators, remarks = extract_operators(*opened[:3])
            kernels = extract_kernels(opened[3])
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    for name, text in (
        ("directml_operators.json", operators_file(operators)),
        ("onnxruntime_kernels.json", kernels_file(*kernels)),
    ):
        (given["output"] / name).write_text(text, encoding="utf-8", newline="\n")
    print(f"{len(operators['operators'])} DirectML operators")
    for operator, odd in remarks.items():
        print(f"  {operator}: {'; '.join(odd)}")
    return 0


def _opened(name: str, given: dict[str, Any]) -> Checkout:
    key = name.replace("-", "_")
    return Checkout(given[key], _CHECKOUTS[name].partition(",")[0], given[f"{key}_revision"])


if __name__ == "__main__":
    sys.exit(main())
