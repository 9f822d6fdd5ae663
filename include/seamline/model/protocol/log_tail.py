"""The newest records of lanes, in the log and in Kafka: a broker may have lost what was read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seamline.model.protocol.offsets import Lane


@dataclass(frozen=True)
class Tail:
    """A record by which it is recognized."""

    offset: int
    """Its offset."""
    at: int
    """Its Kafka timestamp, in milliseconds since 1970."""
    value: str = ""
    """The hash of its value; empty where none was made."""


def hash_record_value(value: bytes | None) -> str:
    """Hash a record's value; what is no value has a hash too."""
    return hash_value_pieces(None if value is None else [value])


def hash_value_pieces(pieces: Iterable[bytes | memoryview] | None) -> str:
    """Hash a value that comes in pieces, as ``hash_record_value`` does the whole."""
    found = hashlib.sha256(b"-" if pieces is None else b"+")
    for piece in pieces or ():
        found.update(piece)
    return found.hexdigest()


def list_new_leaders(before: Mapping[int, int], now: Mapping[int, int]) -> list[int]:
    """List the partitions of which another leader has been elected, by the epochs of their leaders."""
    return [part for part, epoch in sorted(now.items()) if epoch > before.get(part, epoch)]


def list_replaced_lanes(kept: Mapping[Lane, Tail], given: Mapping[Lane, Tail]) -> list[Lane]:
    """List the lanes in which Kafka returns another record at an offset than was read there.

    Kafka may return a later one: compaction, retention and aborted transactions leave offsets without a record.
    """
    return [
        lane
        for lane, old in sorted(kept.items())
        if (new := given.get(lane)) and new.offset == old.offset and is_different_record(old, new)
    ]


def is_different_record(one: Tail, other: Tail) -> bool:
    """Return whether two records of one offset are not the same."""
    return one.at != other.at or bool(one.value and other.value and one.value != other.value)
