"""docs/specs.md begins with a table of every key that a spec can have."""

from __future__ import annotations

import re
from pathlib import Path

from harness.specs.reading.entry_schema import LiteralCase, Sweep, Use
from harness.specs.reading.schema import Spec

PAGE = (Path(__file__).resolve().parents[2] / "docs/specs.md").read_text(encoding="utf-8")


def test_the_table_has_every_key_and_says_whose_it_is() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \| ([^|]*) \|", PAGE.partition("```yaml")[0], re.M)
    told = {
        (key, of)
        for keys, owners in rows
        for key in re.findall(r"`(\w+)`", keys)
        for of in re.findall(r"\w+", owners)
    }
    owners = {"file": Spec, "case": LiteralCase, "sweep": Sweep, "use": Use}
    fields = {
        (field.alias or key, of) for of, model in owners.items() for key, field in model.model_fields.items()
    }
    about_levels = {("opsets", word) for word in ("below", "level")}
    assert told - about_levels == fields


def test_the_parts_that_it_names_are_there() -> None:
    headings = {
        re.sub(r"[^\w -]", "", head).lower().replace(" ", "-")
        for head in re.findall(r"^#+ (.*)$", PAGE, re.M)
    }
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= headings
