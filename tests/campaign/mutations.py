"""Damage to files: bytes anywhere, words and numbers of a text, values of JSON lines."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

_WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*|-?[0-9]+(?:\.[0-9]+)?|[\[\]{}:,\"'|>&*!#-]")
_ODD: tuple[bytes, ...] = (
    *(
        b"",
        b"0",
        b"-1",
        b"1",
        b"9223372036854775807",
        b"9223372036854775808",
        b"-9223372036854775809",
        b"4294967296",
        b"1" * 500,
    ),
    *(
        b"1e999",
        b"-0.0",
        b".nan",
        b"NaN",
        b"Infinity",
        b"null",
        b"true",
        b"all",
        b"[]",
        b"{}",
        b"[[]]",
        b"\0",
        b"\xff",
        b"\xed\xa0\x80",
    ),
    *(
        b'"',
        b"'",
        b"\n",
        b"\r",
        b"\t",
        b"[" * 3000,
        b"{a: " * 300,
        b"\xe2\x80\xae",
        b"\xef\xbb\xbf",
        b"!!python/name:os",
        b"&a",
        b"*a",
    ),
    *(
        b"../../etc/passwd",
        b"<script>",
        b"%s%n",
        b"\\ud800",
        b"x" * 70_000,
        b"0x7f",
        b"-",
        b"?",
        b"|",
        b">",
        b"...",
        b"---",
    ),
)
_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**31,
        2**63,
        2**64,
        -(2**63) - 1,
        1e308,
        -0.0,
        "",
        "\0",
        "x" * 10_000,
        [],
        {},
        [[]],
        [None],
        {"": 0},
    ),
    *(
        "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
        "\u202e",
        "\n",
        "Round@22:",
        "a@b:c=d[",
        "../x",
        "pass",
        "cpu",
    ),
)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Damage some bytes: single ones most of the time, now and then whole stretches, or the end."""
    content = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        if not content:
            break
        at = rng.randrange(len(content))
        length = rng.choice((1, 2, 4, 16, 256, 4096))
        match rng.randrange(7):
            case 0:
                content[at] ^= 1 << rng.randrange(8)
            case 1:
                content[at] = rng.randrange(256)
            case 2:
                del content[at : at + length]
            case 3:
                content[at:at] = content[rng.randrange(len(content)) :][:length]
            case 4:
                content[at : at + length] = rng.randbytes(min(length, 64))
            case 5:
                content[at : at + 4] = rng.choice(
                    (bytes(4), b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f")
                )
            case _:
                other = rng.randrange(len(content))
                content[at : at + length] = content[other : other + length]
    if rng.random() < 0.1:
        del content[rng.randrange(len(content) + 1) :]
    return bytes(content)


def reworded(data: bytes, rng: random.Random) -> bytes:
    """Exchange some words and numbers of a text for others of it, or for odd ones."""
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        found = list(_WORD.finditer(data))
        if not found:
            return data
        here, there = rng.choice(found), rng.choice(found)
        new = rng.choice(_ODD) if rng.random() < 0.5 else there[0]
        data = data[: here.start()] + new + data[here.end() :]
    return data


def relined(data: bytes, rng: random.Random) -> bytes:
    """Repeat, drop or exchange lines."""
    lines = data.splitlines(keepends=True)
    for _ in range(rng.choice((1, 1, 2, 5))):
        if lines:
            at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
            match rng.randrange(3):
                case 0:
                    lines.insert(at, lines[other])
                case 1:
                    del lines[at]
                case _:
                    lines[at], lines[other] = lines[other], lines[at]
    return b"".join(lines)


def revalued(data: bytes, rng: random.Random) -> bytes:
    """Exchange values of some JSON lines for odd ones, or for others of the same line."""
    lines = data.splitlines(keepends=True)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = 0 if rng.random() < 0.3 else rng.randrange(len(lines))
        try:
            tree = json.loads(lines[at])
        except ValueError:
            continue
        places = list(_places(tree))
        if places:
            holder, key = rng.choice(places)
            other, its = rng.choice(places)
            match rng.randrange(4):
                case 0 if isinstance(holder, dict):
                    del holder[key]
                case 1:
                    holder[key] = other[its]
                case _:
                    holder[key] = rng.choice(_VALUES)
        try:
            lines[at] = json.dumps(tree, check_circular=True).encode() + b"\n"
        except (ValueError, RecursionError):
            continue
    return b"".join(lines)


def _places(tree: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    for key, value in (
        tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    ):
        found.append((tree, key))
        found += _places(value)
    return found


Mutation = Callable[[bytes, random.Random], bytes]
TEXT: tuple[Mutation, ...] = (damaged, reworded, reworded, relined)
LINES: tuple[Mutation, ...] = (damaged, reworded, relined, revalued, revalued, revalued)
BYTES: tuple[Mutation, ...] = (damaged,)
