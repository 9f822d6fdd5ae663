"""Files of text on this machine: their lines as bytes, compressed or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

BLOCK = 8 << 20
"""Bytes of text that are in memory at once; a line that is longer needs more."""
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


def read_text_lines(path: str) -> Iterator[pa.Array]:
    """Read lines as bytes without their ends, those that are blank left out, some at a time."""
    kind = COMPRESSIONS.get(Path(path).suffix)
    with pa.OSFile(path) as raw, pa.CompressedInputStream(raw, kind) if kind else raw as text:
        rest = b""
        while block := text.read(BLOCK):
            *lines, rest = (rest + block).split(b"\n")
            yield keep_lines(lines)
        yield keep_lines([rest])


def keep_lines(lines: Sequence[bytes]) -> pa.Array:
    """Return lines that are not blank."""
    return pa.array([line for each in lines if (line := each.rstrip(b"\r")).strip()], pa.binary())
