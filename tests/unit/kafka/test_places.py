"""Where records are and when they were sent, read of batches without what they say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from seamline.kafka.record_places import Bare, Pieces
from seamline.model.protocol.log_tail import hash_record_value

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BODY = st.none() | st.binary(max_size=300)
RECORDS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 10_000), BODY, BODY), min_size=1, max_size=30)


def made(records: list[tuple[int, int, bytes | None, bytes | None]], codec: int) -> DefaultRecordBatch:
    """Make a batch of records, each with its step to the next offset, time, key and value."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 30)
    at = 0
    for step, moment, key, value in records:
        assert builder.append(at, 1_700_000_000_000 + moment, key, value, [("h", b"x")])
        at += step
    return DefaultRecordBatch(bytes(builder.build()))


@given(RECORDS, st.sampled_from(sorted(CODECS.values())))
def test_places_and_times_are_those_of_the_records(
    records: list[tuple[int, int, bytes | None, bytes | None]], codec: int
) -> None:
    """Compaction leaves some out; the client's own reading is the oracle."""
    known = [(each.offset, each.timestamp) for each in made(records, codec)]
    assert [(each.offset, each.timestamp) for each in Bare(made(records, codec), True)] == known
    assert [each.offset for each in Bare(made(records, codec), False)] == [offset for offset, _ in known]


@given(RECORDS, st.sampled_from(sorted(CODECS.values())), st.integers(0, 60))
def test_values_are_hashed_from_an_offset_on(
    records: list[tuple[int, int, bytes | None, bytes | None]], codec: int, start: int
) -> None:
    """With keys of any length before them, and none at all."""
    known = [
        (each.offset, each.timestamp, hash_record_value(each.value) if each.offset >= start else None)
        for each in made(records, codec)
    ]
    told = [(each.offset, each.timestamp, each.value) for each in Bare(made(records, codec), True, start)]
    assert told == known


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(1, 4))
def test_numbers_may_lie_across_pieces(number: int, size: int) -> None:
    """Wherever a codec happens to stop."""
    left, data = (number << 1) ^ (number >> 63), b""
    while left >= 0x80:
        data, left = data + bytes([left & 0x7F | 0x80]), left >> 7
    data += bytes([left]) + b"rest"
    pieces = Pieces(data[at : at + size] for at in range(0, len(data), size))
    assert pieces.varint() == number
    assert pieces.at == len(data) - 4


def test_a_batch_that_is_cut_off_is_corrupt() -> None:
    """And not one with fewer records."""

    def cut() -> Iterator[bytes]:
        yield b"\x80"

    with pytest.raises(CorruptRecordError):
        Pieces(cut()).varint()


BOMB = """
import resource, sys
from tests.unit.kafka.test_places import bomb
from seamline.kafka.record_places import Bare
batch = bomb(int(sys.argv[1]))
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (used + (1 << 26), used + (1 << 26)))
print([each.offset for each in Bare(batch, False)], [each.offset for each in Bare(batch, True)])
print([each.value for each in Bare(batch, True, 2)])
"""


def bomb(codec: int) -> DefaultRecordBatch:
    """Make a batch of 300 MB of which compaction has left two records."""
    return made([(2, 0, None, b"0" * 150_000_000), (1, 0, None, b"0" * 150_000_000)], codec)


@pytest.mark.parametrize("codec", [name for name in CODECS if name != "none"])
def test_a_batch_is_never_in_memory_as_a_whole(codec: str) -> None:
    """300 MB, of which a compacted topic's header does not say where they are, in 64."""
    done = subprocess.run(
        [sys.executable, "-c", BOMB, str(CODECS[codec])], capture_output=True, text=True, check=False
    )
    last = hash_record_value(b"0" * 150_000_000)
    assert done.stdout == f"[0, 2] [0, 2]\n{[None, last]}\n", (done.returncode, done.stderr[-2000:])
