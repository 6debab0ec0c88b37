"""Writes `docs/families.md`: what an author of specs can write of each family, from the code and the specs.

Run `python -m tools.families > docs/families.md` after a family, a kind of values or a word changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from harness.operators import bounded
from harness.operators.base import RANDOM
from harness.render.markup import table
from harness.specs.description import OperatorDescription, describe
from harness.specs.reading.entry_schema import Sweep
from harness.specs.reading.load import load_specs
from harness.specs.sweeps.family_sweeps import families, family_sweeps

_NAMED = 4


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    specs = {spec.model.operator: spec for spec in load_specs(()) if spec.graph is None}
    users: dict[str, list[str]] = defaultdict(list)
    for name, spec in specs.items():
        for entry in spec.model.sweeps:
            if not isinstance(entry, Sweep):
                users[entry.use].append(name)
    yield "# Families, kinds of values, words of shapes\n"
    yield (
        "Made by `python -m tools.families` from the code. `harness describe OPERATOR` prints the same of one operator, with its "
        "inputs, attributes and sweeps. How a spec is written: [specs](specs.md).\n"
    )
    yield "## Sweeps of families\n"
    yield "`use: NAME` in a spec includes these sweeps.\n"
    yield from table(
        ("family", "sweeps", "used by"),
        (
            (f"`{name}`", ", ".join(f"`{each.name}`" for each in family_sweeps(name)), _some(users[name]))
            for name in families()
        ),
    )
    kinds: dict[tuple[str, str], tuple[str, list[str]]] = {}
    words: dict[tuple[str, str], tuple[tuple[str, ...], list[str]]] = {}
    for name, spec in specs.items():
        found = describe(spec)
        _add_kinds(found, kinds)
        for row in found.words:
            known = words.setdefault((found.family, f"{row.input}: {row.key}".rstrip(": ")), (row.words, []))
            known[1].append(name)
    yield "\n## Kinds of values\n"
    yield (
        "Elements are of the first operator that is named. A kind that breaks a rule makes invalid cases. `random` is any bits, all "
        "that an input without kinds takes.\n"
    )
    yield from table(
        ("kind", "breaks", "for example", "inputs of"),
        (
            (f"`{kind}`", breaks or "–", elements.replace("|", "\\|"), _some(of))
            for (kind, breaks), (elements, of) in sorted(kinds.items())
        ),
    )
    yield "\n## Words of shapes\n"
    yield "What `shape:` of an input may say; a name with a second word is a key, and its words stand under it.\n"
    yield from table(
        ("family", "input", "words", "operators"),
        (
            (family, f"`{place}`", ", ".join(f"`{word}`" for word in each), _some(of))
            for (family, place), (each, of) in sorted(words.items())
        ),
    )
    yield "\n## Functions with a bound\n"
    yield "Formulas call these of `harness.operators.bounded`, or NumPy's own; both propagate the bound ([bounds](bounds.md)).\n"
    yield ", ".join(f"`{name}`" for name in bounded.__all__ if name.islower())


def _add_kinds(found: OperatorDescription, kinds: dict[tuple[str, str], tuple[str, list[str]]]) -> None:
    for row in found.kinds:
        if row.elements and row.kind != RANDOM.name:
            known = kinds.setdefault((row.kind, row.breaks), (row.elements, []))
            if found.schema.name not in known[1]:
                known[1].append(found.schema.name)


def _some(names: list[str]) -> str:
    """Name the first operators, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "") or "–"


def main() -> None:
    """Print the page."""
    print("\n".join(page()).rstrip())


if __name__ == "__main__":
    main()
