"""Deflate (RFC 1951) with Huffman codes alone, so that the same data gives the same bytes whatever zlib a platform has.

zlib, zlib-ng and their releases choose different matches, and a report has to be the same bytes everywhere. The data are columns of small
numbers and dictionaries without repeats, of which the entropy code gets most of what there is to get. Any inflater reads the result.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence

_LONGEST = 15
_LONGEST_LENGTH_CODE = 7
_END_OF_BLOCK = 256
_ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)
_CHUNK = 1 << 18


def deflate(parts: Sequence[bytes]) -> bytes:
    """Compress the parts as one stream, with codes of its own for each of them."""
    chunks = [part[start : start + _CHUNK] for part in parts for start in range(0, len(part), _CHUNK)] or [b""]
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
    counts: dict[int, int] = dict(sorted(Counter(data).items()))
    counts[_END_OF_BLOCK] = 1
    lengths = code_lengths(counts, _LONGEST)
    written = [lengths.get(symbol, 0) for symbol in range(_END_OF_BLOCK + 1)] + [0]  # and one unused distance code
    length_counts = dict(sorted(Counter(written).items()))
    if len(length_counts) == 1:
        length_counts[0 if 0 not in length_counts else 1] = 1
    of_lengths = code_lengths(length_counts, _LONGEST_LENGTH_CODE)
    used = max(place for place, symbol in enumerate(_ORDER) if symbol in of_lengths) + 1
    used = max(used, 4)
    head = ["1" if last else "0", "01", _number(0, 5), _number(0, 5), _number(used - 4, 4)]
    head += [_number(of_lengths.get(symbol, 0), 3) for symbol in _ORDER[:used]]
    length_words = _words(of_lengths)
    head += [length_words[length] for length in written]
    words = _words(lengths)
    return "".join(head) + "".join(map(words.__getitem__, data)) + words[_END_OF_BLOCK]


def _number(value: int, width: int) -> str:
    """Write a number from its lowest bit; codes alone go from their highest."""
    return f"{value:0{width}b}"[::-1]


def code_lengths(counts: Mapping[int, int], longest: int) -> dict[int, int]:
    """Return the length of each symbol's code, at most `longest`, by Huffman's method on counts flattened until they fit."""
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
    heap: list[tuple[int, int, tuple[int, ...]]] = [(weight, symbol, (symbol,)) for symbol, weight in weights.items()]
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
