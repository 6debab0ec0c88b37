from __future__ import annotations

import random
import zlib

import pytest

from harness.render.deflate import code_lengths, deflate


def inflate(data: bytes) -> bytes:
    stream = zlib.decompressobj(-15)
    out = stream.decompress(data) + stream.flush()
    assert stream.eof
    assert not stream.unused_data
    return out


RANDOM = random.Random(5)


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b""],
        [b"a"],
        [b"\x00" * 1000],
        [bytes(range(256)) * 3],
        [b"abc", b"", b"\xff" * 70, RANDOM.randbytes(5000)],
        [b"x" * (1 << 18) + b"y" * 3],
        [
            b"".join(RANDOM.choice(b"ab").to_bytes(1, "little") * run for run in range(600))
        ],  # every length of a run, and of its rest
        [b"a" * 8, b"a" * 259, b"a" * 260, b"a" * 261, b"a" * 517, b"\n" * 262],
        [b"".join(bytes([n]) * (1 << n) for n in range(20))],  # counts that ask for codes longer than 15 bits
    ],
)
def test_any_inflater_reads_it(parts: list[bytes]) -> None:
    assert inflate(deflate(parts)) == b"".join(parts)


def test_lengths_stay_within_the_limit_and_form_a_prefix_code() -> None:
    fibonacci = [1, 1]
    while len(fibonacci) < 40:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    lengths = code_lengths(dict(enumerate(fibonacci)), 15)
    assert max(lengths.values()) <= 15
    assert sum(2.0**-length for length in lengths.values()) <= 1


def test_it_compresses_columns() -> None:
    column = bytes(RANDOM.choice(b"\x00\x00\x00\x00\x00\x00\x01") for _ in range(80_000))
    assert len(deflate([column])) < len(column) / 6
    assert len(deflate([b"\x01" * 1_000_000])) < 1_500  # a run costs next to nothing
