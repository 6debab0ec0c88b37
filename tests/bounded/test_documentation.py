"""`docs/comparing.md` says what `data/arithmetics.yaml` declares."""

from __future__ import annotations

import math
from pathlib import Path

from harness.operators.bounded import NAMES, arithmetic, sources
from harness.operators.bounded.arithmetic import Claim

_PAGE = Path(__file__).parent.parent.parent / "docs" / "comparing.md"


def term(factor: float, unit: str) -> str:
    """Write `3 ULP`, `2^-21 rel`; nothing for 0."""
    if not factor:
        return ""
    power = math.log2(factor)
    number = f"2^{int(power)}" if power == int(power) and power < -2 else f"{factor:g}"
    return f"{number} {unit}".strip()


def written(claim: Claim) -> str:
    terms = (
        term(claim.ulp, ""),
        term(claim.ulp_per_argument, "\\|x\\|"),
        term(claim.relative, "rel"),
        term(claim.relative_per_argument, "\\|x\\| rel"),
        term(claim.absolute, "abs"),
    )
    limits = (
        "" if (claim.low, claim.high) == (-math.inf, math.inf) else f" in [{claim.low:.4g}, {claim.high:.4g}]"
    )
    return " + ".join(filter(None, terms)) + limits


def table() -> str:
    """Return the table of functions in float32, and of float16 in parentheses where it has its own."""
    names = dict.fromkeys(name for each in NAMES for name in arithmetic(each, "float32").functions.table)
    lines = [f"| function | {' | '.join(NAMES)} |", f"|---|{'---|' * len(NAMES)}"]
    for name in names:
        cells = []
        for each in NAMES:
            single, half = arithmetic(each, "float32").functions, arithmetic(each, "float16").functions
            text = "<br>".join(map(written, single.table.get(name, ())))
            own = (
                "<br>".join(map(written, half.table.get(name, ()))) if half.form.dtype == "float16" else text
            )
            cells.append((text if own == text else f"{text} ({own})") or "–")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_page_has_the_table() -> None:
    text = _PAGE.read_text(encoding="utf-8")
    assert table() in text, f"docs/comparing.md needs this table:\n{table()}"


def test_the_page_has_the_sources() -> None:
    text = " ".join(_PAGE.read_text(encoding="utf-8").split())
    for name, (title, said) in sources().items():
        assert f"**`{name}`**: {title}" in text
        for source in said.values():
            assert " ".join(source.split()) in text, f"{name}: {source}"
