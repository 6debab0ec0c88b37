"""Deflate (RFC 1951) with Huffman codes and runs of one byte, so that the same data gives the same bytes
whatever zlib a platform has.

zlib, zlib-ng and their releases choose different matches, and a report has to be the same bytes everywhere.
The data are columns of small numbers, in which targets that do alike give long runs, and dictionaries without
repeats: that is most of what there is to get. Any inflater reads the result.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

_LONGEST = 15
_LONGEST_LENGTH_CODE = 7
_END_OF_BLOCK = 256
_ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)
_CHUNK = 1 << 18
_SYMBOLS = 286
_LONGEST_MATCH = 258
_RUN = re.compile(rb"(.)\1{7,}", re.DOTALL)
"""Runs that are written as matches: shorter ones are as cheap as literals where one byte is frequent."""


def deflate(parts: Sequence[bytes]) -> bytes:
    """Compress the parts as one stream, with codes of its own for each of them."""
    chunks = [part[start : start + _CHUNK] for part in parts for start in range(0, len(part), _CHUNK)] or [
        b""
    ]
    out = bytearray()
    waiting = ""
    for number, chunk in enumerate(chunks):
        bits = waiting + _block(chunk, last=number == len(chunks) - 1)
        whole = len(bits) & ~7
        out += _pack(bits[:whole])
        waiting = bits[whole:]
    return bytes(out + _pack(waiting + "0" * (-len(waiting) % 8)))


def _pack(bits: str) -> bytes:
    """Fill bytes from their lowest bit, as deflate does."""
    return int(bits[::-1], 2).to_bytes(len(bits) // 8, "little") if bits else b""


def _block(data: bytes, *, last: bool) -> str:
    pieces = list(_pieces(data))
    counts: Counter[int] = Counter()
    for literals, matches in pieces:
        counts.update(literals)
        for match in matches:
            counts[_LENGTHS[match][0]] += 1
    lengths = code_lengths(dict(sorted({**counts, _END_OF_BLOCK: 1}.items())), _LONGEST)
    written = [lengths.get(symbol, 0) for symbol in range(_SYMBOLS)] + [1]  # and the one distance code: 1
    of_lengths = code_lengths(dict(sorted(Counter(written).items())), _LONGEST_LENGTH_CODE)
    used = max(max(place for place, symbol in enumerate(_ORDER) if symbol in of_lengths) + 1, 4)
    head = ["1" if last else "0", "01", _number(_SYMBOLS - 257, 5), _number(0, 5), _number(used - 4, 4)]
    head += [_number(of_lengths.get(symbol, 0), 3) for symbol in _ORDER[:used]]
    length_words = _words(of_lengths)
    head += [length_words[length] for length in written]
    words = _words(lengths)
    body = head
    for literals, matches in pieces:
        body += map(words.__getitem__, literals)
        body += (f"{words[symbol]}{extra}0" for symbol, extra in map(_LENGTHS.__getitem__, matches))
    return "".join(body) + words[_END_OF_BLOCK]


def _pieces(data: bytes) -> Iterator[tuple[bytes, list[int]]]:
    """Split data into literals and the lengths of the matches at distance 1 that follow them."""
    start = 0
    for run in _RUN.finditer(data):
        whole, rest = divmod(run.end() - run.start() - 1, _LONGEST_MATCH)
        matches = [_LONGEST_MATCH] * whole + [rest] * (rest > 2)
        yield data[start : run.start() + 1], matches
        start = run.end() - (0 if rest > 2 else rest)
    yield data[start:], []


def _length_codes() -> dict[int, tuple[int, str]]:
    """Return the symbol and the extra bits of each length of a match (RFC 1951, 3.2.5)."""
    codes = {}
    length = 3
    for symbol in range(257, _SYMBOLS - 1):
        bits = max(0, (symbol - 261) // 4)
        for extra in range(1 << bits):
            codes[length + extra] = (symbol, _number(extra, bits) if bits else "")
        length += 1 << bits
    return {**codes, _LONGEST_MATCH: (_SYMBOLS - 1, "")}


def _number(value: int, width: int) -> str:
    """Write a number from its lowest bit; codes alone go from their highest."""
    return f"{value:0{width}b}"[::-1]


def code_lengths(counts: Mapping[int, int], longest: int) -> dict[int, int]:
    """Return the length of each symbol's code, at most `longest`, by Huffman's method on counts flattened
    until they fit."""
    weights = dict(counts)
    if len(weights) == 1:
        return dict.fromkeys(weights, 1)
    while True:
        lengths = _huffman(weights)
        if max(lengths.values()) <= longest:
            return lengths
        weights = {symbol: weight // 2 + 1 for symbol, weight in weights.items()}


def _huffman(weights: Mapping[int, int]) -> dict[int, int]:
    depths = dict.fromkeys(weights, 0)
    heap: list[tuple[int, int, tuple[int, ...]]] = [
        (weight, symbol, (symbol,)) for symbol, weight in weights.items()
    ]
    heapq.heapify(heap)
    while len(heap) > 1:
        first_weight, first, first_symbols = heapq.heappop(heap)
        second_weight, second, second_symbols = heapq.heappop(heap)
        joined = first_symbols + second_symbols
        for symbol in joined:
            depths[symbol] += 1
        heapq.heappush(heap, (first_weight + second_weight, min(first, second), joined))
    return depths


def _words(lengths: Mapping[int, int]) -> dict[int, str]:
    """Give each symbol its canonical code (RFC 1951, 3.2.2)."""
    words: dict[int, str] = {}
    code = before = 0
    for length, symbol in sorted((length, symbol) for symbol, length in lengths.items()):
        code <<= length - before
        words[symbol] = f"{code:0{length}b}"
        code += 1
        before = length
    return words


_LENGTHS = _length_codes()
