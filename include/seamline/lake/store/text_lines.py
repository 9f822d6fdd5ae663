"""Files of text on this machine: their lines as bytes, compressed or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

BLOCK = 8 << 20
"""Bytes of text that are in memory at once; a line that is longer needs more."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


def read_text_lines(path: str, *, blank: bool = False) -> Iterator[pa.Array]:
    """Read lines as bytes without their ends, some at a time; those that are ``blank`` only if they are asked for."""
    kind = COMPRESSIONS.get(Path(path).suffix)
    with pa.OSFile(path) as raw, pa.CompressedInputStream(raw, kind) if kind else raw as text:
        rest, first = b"", True
        while block := text.read(BLOCK):
            # What some editors put before UTF-8 is no part of the first line.
            block, first = block.removeprefix(BYTE_ORDER_MARK) if first else block, False
            *lines, rest = (rest + block).split(b"\n")
            yield keep_lines(lines, blank=blank)
        yield keep_lines([rest], blank=blank)


def keep_lines(lines: Sequence[bytes], *, blank: bool) -> pa.Array:
    """Return lines without their ends."""
    ended = (each.rstrip(b"\r") for each in lines)
    return pa.array([line for line in ended if blank or line.strip()], pa.binary())
