"""Confluent's wire format: 0, the number of the writer's schema in four bytes, and for protobuf the message's place."""

from __future__ import annotations

HEADER = 5
"""Bytes before what the writer wrote."""
LARGEST_ID = 2**31 - 1
"""No registry has a higher number: those are of records that were not written through one."""
DEEPEST = 32
"""Messages within messages; protobuf's compilers allow no more."""


def read_schema_id(value: bytes) -> int | None:
    """Return the number of a value's schema; None where the value does not begin with one."""
    return int.from_bytes(value[1:HEADER]) if len(value) >= HEADER and value[0] == 0 else None


def read_message_path(value: bytes) -> tuple[tuple[int, ...], int]:
    """Return which message of its file a value of protobuf is, and where it begins; ValueError if it does not say.

    The path has the place of the outermost message first. The first message of a file is the most common one, and is
    written as a single 0.
    """
    count, at = read_zigzag(value, HEADER)
    if count == 0:
        return (0,), at
    if not 0 < count <= DEEPEST:
        raise ValueError(f"names a message by {count} places")
    path = []
    for _ in range(count):
        place, at = read_zigzag(value, at)
        if place < 0:
            raise ValueError(f"names a message by the place {place}")
        path.append(place)
    return tuple(path), at


def read_zigzag(value: bytes, at: int) -> tuple[int, int]:
    """Return the number that is written at a place as protobuf's sint32, and where it ends; ValueError."""
    found = 0
    for shift in range(0, 35, 7):
        if at >= len(value):
            break
        byte, at = value[at], at + 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
    raise ValueError("does not say which message it is")
