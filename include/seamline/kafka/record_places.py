"""Where records are and when they were sent, read of Kafka without what they say.

A batch is decompressed piece by piece, and only where its header is silent: a megabyte may stand for gigabytes, and
who looks at a topic has no use for them. Of a value that is to be recognized a hash is enough.
"""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Iterator
from typing import Any

import kafka.codec as codecs
from kafka import KafkaConsumer
from kafka.errors import CorruptRecordError, UnsupportedCodecError
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch

from seamline.model.protocol.log_tail import hash_value_pieces

PIECE = 1 << 16
NAMES = {
    DefaultRecordBatch.CODEC_GZIP: "gzip",
    DefaultRecordBatch.CODEC_SNAPPY: "snappy",
    DefaultRecordBatch.CODEC_LZ4: "lz4",
    DefaultRecordBatch.CODEC_ZSTD: "zstd",
}
JAVAS = b"\x82SNAPPY\x00"
MOST = 1 << 26
"""Bytes of a batch that are read for the time of one of its records; behind them that of the first stands."""

NO_TIMESTAMP = -1
"""What Java's clients, and so Spark, return for the timestamp of a record that has none."""


def without_contents(consumer: KafkaConsumer, *, timed: bool, hashed: bool = False) -> None:
    """Make a consumer return only the place of each record, and its time where they are to be ``timed``.

    Keys and values are None; ``hashed`` values are the text of ``hash_record_value``. Batches of before Kafka 0.11 are
    read as they were.
    """
    fetcher = consumer._fetcher  # noqa: SLF001 - kafka-python 3.0.12 asks nobody else how a batch is read
    own = fetcher.PartitionRecords

    def opened(offset: int, place: object, records: Any, **more: Any) -> Any:
        return own(offset, place, Batches(records, timed, offset if hashed else None), **more)

    fetcher.PartitionRecords = opened


def read_timestamp(record: Any) -> int:
    """Return a timestamp in milliseconds as Java's clients do: format 0, of before Kafka 0.10, has none."""
    return NO_TIMESTAMP if record.timestamp is None else int(record.timestamp)


class Batches:
    """Batches as they were fetched, each of them ``Bare``."""

    def __init__(self, fetched: Any, timed: bool, hashed_from: int | None) -> None:
        self.fetched, self.timed, self.hashed_from = fetched, timed, hashed_from

    def next_batch(self) -> Any:
        """Return the next batch; None after the last."""
        batch = self.fetched.next_batch()
        if not isinstance(batch, DefaultRecordBatch):
            return batch
        return Bare(batch, self.timed, self.hashed_from)


class Bare:
    """A batch whose records have neither key, value nor headers; what else is asked of it is the batch's own.

    From the offset ``hashed_from`` on, where it is given, values are hashes.
    """

    def __init__(self, batch: Any, timed: bool, hashed_from: int | None = None) -> None:
        self.batch, self.timed, self.hashed_from = batch, timed, hashed_from

    def __getattr__(self, name: str) -> Any:
        return getattr(self.batch, name)

    def __next__(self) -> Any:
        """Read the one record of a marker of transactions."""
        return next(self.batch)

    def __iter__(self) -> Iterator[DefaultRecord]:
        batch = self.batch
        stamped = not self.timed or batch.timestamp_type == batch.LOG_APPEND_TIME
        if stamped and self.hashed_from is None and batch.records_count == batch.last_offset_delta + 1:
            # None is missing: the header says all.
            return (self.record(each, 0) for each in range(batch.records_count))
        return self.read()

    def read(self) -> Iterator[DefaultRecord]:
        """Read place and time of each record, and pass over the rest."""
        data = Pieces(decompress_batch(self.batch))
        for _ in range(self.batch.records_count):
            if self.timed and self.hashed_from is None and data.at > MOST:
                yield self.record(self.batch.last_offset_delta, 0)
                return
            length = data.varint()
            end = data.at + length
            data.skip(1)
            late, offset = data.varint(), data.varint()
            if self.hashed_from is None or self.batch.base_offset + offset < self.hashed_from:
                yield self.record(offset, late)
            else:
                data.skip(data.varint())
                size = data.varint()
                yield self.record(offset, late, hash_value_pieces(data.take(size) if size >= 0 else None))
            data.skip(end - data.at)

    def record(self, offset: int, late: int, value: str | None = None) -> DefaultRecord:
        """Make the record that is so far behind the first, in offsets and in milliseconds."""
        kind = self.batch.timestamp_type
        at = (
            self.batch.max_timestamp
            if kind == self.batch.LOG_APPEND_TIME
            else self.batch.first_timestamp + late
        )
        return DefaultRecord(0, self.batch.base_offset + offset, at, kind, None, value, [])


class Pieces:
    """Bytes that come in pieces and are read forwards, ``at`` of them so far; none is kept."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces = pieces
        self.piece, self.place, self.before = b"", 0, 0

    @property
    def at(self) -> int:
        """How many bytes were read."""
        return self.before + self.place

    def varint(self) -> int:
        """Read a whole number as Kafka's format has it: zigzag, seven bits in a byte, the lowest first."""
        found = shift = 0
        while True:
            self.fill()
            byte = self.piece[self.place]
            self.place += 1
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (found >> 1) ^ -(found & 1)
            shift += 7

    def skip(self, count: int) -> None:
        """Pass over some bytes."""
        for _ in self.take(count):
            pass

    def take(self, count: int) -> Iterator[memoryview]:
        """Yield the next so many bytes, in pieces; no bytes for a count below one."""
        while count > 0:
            self.fill()
            step = min(count, len(self.piece) - self.place)
            piece = memoryview(self.piece)[self.place : self.place + step]
            self.place += step
            count -= step
            yield piece

    def fill(self) -> None:
        """Go on to the next piece where this one is read; CorruptRecordError where there is none."""
        while self.place >= len(self.piece):
            self.before += len(self.piece)
            self.piece, self.place = next(self.pieces, b""), 0
            if not self.piece:
                raise CorruptRecordError("A batch ends in the middle of a record")


def decompress_batch(batch: Any) -> Iterator[bytes]:
    """Decompress what follows a batch's header; a block of snappy's is a piece, about 21 times as large at most."""
    data = memoryview(batch._buffer)[batch.HEADER_STRUCT.size :]  # noqa: SLF001 - its bytes have no other name
    codec = batch.compression_type
    if codec == batch.CODEC_NONE:
        return iter([bytes(data)])
    name = NAMES.get(codec, str(codec))
    if getattr(codecs, name, None) is None and codec != batch.CODEC_GZIP:
        raise UnsupportedCodecError(f"Libraries for {name} compression codec not found")
    if codec == batch.CODEC_SNAPPY:
        return map(codecs.snappy.decompress, split_snappy_blocks(data))
    packed = io.BytesIO(data)
    if codec == batch.CODEC_GZIP:
        plain: Any = gzip.GzipFile(fileobj=packed, mode="rb")
    elif codec == batch.CODEC_LZ4:
        plain = codecs.lz4.open(packed)
    else:
        plain = codecs.zstd.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    return iter(lambda: plain.read(PIECE), b"")


def split_snappy_blocks(data: memoryview) -> Iterator[bytes]:
    """Part what snappy has made: blocks behind a header, as Java's has them, or a single one."""
    if data[: len(JAVAS)] != JAVAS:
        yield bytes(data)
        return
    at = 16  # Two versions are between.
    while at < len(data):
        [size] = struct.unpack_from("!i", data, at)
        yield bytes(data[at + 4 : at + 4 + size])
        at += 4 + size
