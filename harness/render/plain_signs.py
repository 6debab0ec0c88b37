"""Writes signs in ASCII where a stream's encoding lacks them: a code page of Windows, the C locale."""

from __future__ import annotations

import codecs
import io
import sys

_NAME = "harness.plain_signs"
_SIGNS = {
    "✓": "OK",
    "✗": "[x]",
    "⊘": "0",
    "∞": "inf",
    "–": "-",
    "\u2212": "-",
    "→": "->",
    "←": "<-",
    "×": "*",
    "·": "-",
    "≠": "!=",
    "≤": "<=",
    "≥": ">=",
    "±": "+-",
    "…": "...",
    "\u2019": "'",
    "━": "-",
    "╸": "-",
    "╺": "-",
}


def install() -> None:
    """Make standard output and standard error replace characters that they cannot encode by ASCII."""
    codecs.register_error(_NAME, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_NAME)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    written = "".join(
        _SIGNS.get(sign, sign.encode("ascii", "backslashreplace").decode("ascii")) for sign in text
    )
    return written, error.end
