"""Damage to Parquet files that knows their format: any value of the footer, the offsets and sizes that it states, pages, and
an end at each kind of place.

The footer is Thrift's compact protocol (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md),
of which a Parquet file uses structures, lists, booleans, integers and texts.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.campaign.mutations import damaged

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, TEXT, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
_INTEGERS = (I16, I32, I64)
_ENDS = 8
"""Bytes after the footer: its length and the mark."""
SCHEMA, ROWS, GROUPS, METADATA = 2, 3, 4, 5
"""Fields of the footer (`FileMetaData` of parquet.thrift)."""


class Value(NamedTuple):
    """A value with its type; `held` is a dict of fields by number, a list of values, an integer, or bytes."""

    type: int
    held: Any


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        found = shift = 0
        while True:
            byte = self.byte()
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found

    def signed(self) -> int:
        found = self.number()
        return found >> 1 ^ -(found & 1)

    def value(self, type: int) -> Value:
        match type:
            case 1 | 2:
                return Value(type, None)
            case 3:
                return Value(type, self.byte())
            case 4 | 5 | 6:
                return Value(type, self.signed())
            case 7 | 8:
                length = 8 if type == DOUBLE else self.number()
                self.at += length
                return Value(type, self.data[self.at - length : self.at])
            case 9:
                head = self.byte()
                size = head >> 4 if head >> 4 < 15 else self.number()
                inner = head & 15
                return Value(
                    type,
                    [Value(self.byte(), None) if inner < BYTE else self.value(inner) for _ in range(size)],
                )
            case 12:
                fields: dict[int, Value] = {}
                number = 0
                while head := self.byte():
                    number = number + (head >> 4) if head >> 4 else self.signed()
                    fields[number] = self.value(head & 15)
                return Value(type, fields)
        raise ValueError(type)


def _number(found: int) -> bytes:
    made = bytearray()
    while found > 127:
        made.append(found & 127 | 128)
        found >>= 7
    return bytes([*made, found])


def _signed(found: int) -> bytes:
    return _number((found << 1 ^ found >> 63) & (1 << 64) - 1)


def compact(value: Value) -> bytes:
    """Write a value."""
    match value.type:
        case 1 | 2:
            return b""
        case 3:
            return bytes([value.held])
        case 4 | 5 | 6:
            return _signed(value.held)
        case 7:
            return bytes(value.held)
        case 8:
            return _number(len(value.held)) + bytes(value.held)
        case 9:
            inner = value.held[0].type if value.held else STRUCT
            items = (bytes([each.type]) if each.type < BYTE else compact(each) for each in value.held)
            return bytes([0xF0 | inner]) + _number(len(value.held)) + b"".join(items)
    made = bytearray()
    before = 0
    for number, field in sorted(value.held.items()):
        near = 0 < number - before < 16
        made += bytes([number - before << 4 | field.type]) if near else bytes([field.type]) + _signed(number)
        made += compact(field)
        before = number
    return bytes([*made, 0])


def value_at(data: bytes, at: int) -> tuple[Value, int]:
    """Return the structure that lies somewhere, such as the head of a page, and its length."""
    reader = _Reader(data[at : at + 4096])
    return reader.value(STRUCT), reader.at


def written(value: Value, length: int) -> bytes:
    """Write a structure in so many bytes: fields that no reader knows fill it up."""
    made = compact(value)
    if len(made) > length:
        raise ValueError(f"{len(made)} bytes, not {length}")
    return made[:-1] + bytes([0x11]) * (length - len(made)) + made[-1:]


def footer(data: bytes) -> Value:
    """Return what the footer of a whole file holds."""
    length = int.from_bytes(data[-_ENDS:-4], "little")
    return _Reader(data[-_ENDS - length : -_ENDS]).value(STRUCT)


def with_footer(data: bytes, value: Value) -> bytes:
    """Return a file with another footer."""
    length = int.from_bytes(data[-_ENDS:-4], "little")
    made = compact(value)
    return data[: -_ENDS - length] + made + len(made).to_bytes(4, "little") + data[-4:]


def _places(value: Value) -> Iterator[tuple[Any, Any, Value]]:
    held = value.held
    for key, each in held.items() if value.type == STRUCT else enumerate(held) if value.type == LIST else ():
        yield held, key, each
        yield from _places(each)


_NUMBERS = (0, 1, -1, 2, 7, 127, 2**16, 2**31 - 1, -(2**31), 2**32, 2**40, 2**63 - 1, -(2**63))
_TEXTS = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"case",
    b"operator",
    b"x" * 70_000,
    b"null",
    b"{",
    b"\x1b[31m",
    b"<script>",
)


def refooted(data: bytes, rng: random.Random) -> bytes:
    """Exchange, drop or repeat some values of the footer."""
    whole = footer(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        holder, key, value = rng.choice(list(_places(whole)))
        others = [each for _, _, each in _places(whole) if each.type == value.type]
        match rng.randrange(4):
            case 0 if isinstance(holder, dict) or len(holder) > 1:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder[key:key] = [value] * rng.choice((1, 3, 1000))
            case 2:
                holder[key] = copy.deepcopy(rng.choice(others))
            case _ if value.type in _INTEGERS:
                holder[key] = Value(value.type, rng.choice((*_NUMBERS, value.held + 1, value.held - 1)))
            case _ if value.type == TEXT:
                holder[key] = Value(value.type, rng.choice(_TEXTS))
            case _:
                holder[key] = copy.deepcopy(rng.choice(others))
    return with_footer(data, whole)


def cut(data: bytes, rng: random.Random) -> bytes:
    """End a file in the mark, in a page, between column and footer, in the footer, in its length, or in the last mark; half of
    the time with the end of a whole file behind it."""
    begins = len(data) - _ENDS - int.from_bytes(data[-_ENDS:-4], "little")
    first, last = rng.choice(
        (
            (0, 4),
            (4, begins),
            (begins, begins + 1),
            (begins, len(data) - _ENDS),
            (len(data) - _ENDS, len(data)),
        )
    )
    return data[: rng.randrange(first, last)] + (data[-_ENDS:] if rng.random() < 0.5 else b"")


def paged(data: bytes, rng: random.Random) -> bytes:
    """Damage pages, and leave the footer where it is."""
    begins = len(data) - _ENDS - int.from_bytes(data[-_ENDS:-4], "little")
    pages = damaged(data[:begins], rng)
    return pages[:begins].ljust(begins, b"\0") + data[begins:]


MUTATIONS = (refooted, refooted, paged, paged, cut)
