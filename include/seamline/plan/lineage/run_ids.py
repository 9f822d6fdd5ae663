"""Ids of runs: of one that is known by a moment and a text the same wherever it is made, as Airflow's provider does."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from uuid import UUID

NODE_BITS, VERSION, VARIANT = 76, 0x7, 0x2


def make_run_id(moment: datetime, about: str) -> UUID:
    """Make a UUID of version 7 (RFC 9562) of a moment, with bits of a hash where others are random.

    The official client's ``generate_static_uuid`` returns the same, so that runs that Airflow's OpenLineage provider
    tells of have the ids by which ours name them.
    """
    utc = moment.astimezone(UTC)
    digest = hashlib.sha1(f"{utc.isoformat()}{about}".encode(), usedforsecurity=False).digest()
    node = int.from_bytes(digest) >> (len(digest) * 8 - NODE_BITS)
    high = (int(utc.timestamp() * 1000) & (1 << 48) - 1) << 80
    low = node & ~(0x3 << 62) | VARIANT << 62
    return UUID(int=high | VERSION << NODE_BITS | low)
