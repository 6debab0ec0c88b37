"""Writes Markdown that no text can break: escaped cells, code spans, tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from harness.render.text import visible

_SPECIAL = re.compile(r"([\\`*|~$]|(?<!\w)_|_(?!\w)|^[#+>-]|<(?=[A-Za-z/!?])|^\[|\[(?=\^)|\](?=[(\[]))")
"""What could be markup where it stands: a `<` before a letter, a bracket that could begin or end a link."""
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_MENTION = re.compile(r"(?<![\w])@(?=\w)")
_LINK = re.compile(r"(?i)\b(https?|ftp)://")
_URL = re.compile(r"https?://([A-Za-z0-9.-]+)(?:/[!#-;=?-\[\]-_a-{}~]*)?")
"""Printable ASCII without what could end a link in Markdown or HTML: space, `"`, `<`, `>`, backslash,
backtick and `|`."""
_WWW = re.compile(r"(?i)\b(www)\.")


def escape(text: str) -> str:
    """Make a text inert in a table cell and readable in the source: no markup, mention, link or formula; one
    line."""
    flat = " ".join(visible(text).split())
    flat = _ENTITY.sub("&amp;", _NUMBERED.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", flat)))
    return _MENTION.sub("&#64;", _LINK.sub(r"\1&#58;//", _WWW.sub(r"\1&#46;", flat)))


def code(text: str) -> str:
    """Write a text as a code span in a table cell; a backtick in it becomes an apostrophe, because it would
    end the span."""
    flat = " ".join(visible(text).split()).replace("`", "'").replace("|", r"\|")
    return f"`{flat or ' '}`"


def case_id(text: str) -> str:
    """Write a case id as code that may be broken after a term, so that no table grows with its length."""
    flat = " ".join(visible(text).split())
    return "<code>" + "<wbr>".join(map(_inert, re.findall(r"[^;:]*[;:]|[^;:]+", flat))) + "</code>"


def _inert(text: str) -> str:
    special = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    special = re.sub(
        r"([\\`*\[\]|~$_])",
        lambda found: f"&#{ord(found[1])};" if found[1] in "|\\" else "\\" + found[1],
        special,
    )
    return _MENTION.sub("&#64;", _LINK.sub(r"\1&#58;//", _WWW.sub(r"\1&#46;", special)))


def link(url: str) -> str:
    """Write a web address as a link that shows the host; any other text, which no expectation holds, stays text."""
    name = host(url)
    return f"[{name}](<{url}>)" if name else escape(url)


def host(url: str) -> str:
    """Return the host of a web address that can be made a link; empty for any other text."""
    found = _URL.fullmatch(url)
    return found[1] if found else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> Iterator[str]:
    """Yield the lines of a table; `right` numbers the columns of numbers."""
    numeric = set(right)
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join(' ---: ' if place in numeric else ' --- ' for place in range(len(heads)))}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""
