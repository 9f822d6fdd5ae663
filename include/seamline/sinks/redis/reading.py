"""Keys of a sink in Redis or Valkey, read back with what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import pyarrow as pa
import redis

from seamline.lake.read.sinks.row_comparison import HELD
from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.json_values import read_starts
from seamline.sinks.redis.clients import explained_redis
from seamline.sinks.redis.row_texts import RowTexts
from seamline.sinks.server_connections import ServerConnection

AT_ONCE = 1_000
"""Keys that are looked up at a time."""
TIME = "[^:]*:[^:]*:[^:]*"
"""An instant in a key, in which no text has a colon."""
START = rf":(?P<start>{TIME})$", rf":(?P<start>{TIME}):{TIME}$"
"""Find the start of the window in a key, and in one that ends in the end of the window."""
GLOB = str.maketrans({each: f"\\{each}" for each in "*?[]\\^-"})


class RedisReading:
    """The keys of a sink, read by a client of their own."""

    def __init__(
        self, client: redis.Redis, connection: ServerConnection, called: str, texts: RowTexts
    ) -> None:
        self._client, self._connection, self._called, self._texts = client, connection, called, texts

    def find_position(self) -> SinkPosition | None:
        """Read the position."""
        with explained_redis(self._connection, self._called):
            found = self._client.hget(self._texts.head, "position")
        return None if found is None else SinkPosition.from_json(found)

    def read_rows(self, span: StartRange) -> Iterator[pa.Table]:
        """Read every key of the sink; the sink may change some meanwhile."""
        with explained_redis(self._connection, self._called):
            keys = list_keys(self._client, self._texts.head)
            while some := [*islice(keys, AT_ONCE)]:
                yield self.look_up(some)

    def read_row(self, row: pa.Table) -> pa.Table:
        """Read the key of one row."""
        with explained_redis(self._connection, self._called):
            return self.look_up([self._texts.spell_keys(row)[0].as_py().encode()])

    def look_up(self, keys: Sequence[bytes]) -> pa.Table:
        """Read what keys hold; nothing is a row that is no longer there."""
        found = self._client.mget(keys)
        values = [
            self.tell_other(key) if each is None else as_text(each)
            for key, each in zip(keys, found, strict=True)
        ]
        texts = pa.array(values, pa.string())
        places = pa.array([as_text(key) for key in keys], pa.string())
        # By the key, as the value may be anything that somebody has put there.
        starts = read_starts(places, START[self._texts.ends])
        return pa.table(
            [places, pa.array([""] * len(keys), pa.string()), starts, texts],
            schema=HELD,
        )

    def tell_other(self, key: bytes) -> str | None:
        """Return what stands for a key that holds no text; None if it is not there."""
        kind = as_text(self._client.type(key))
        return None if kind == "none" else f"({kind})"


def as_text(found: bytes | str) -> str:
    """Return what the server says as text, whatever it is."""
    return found if isinstance(found, str) else found.decode(errors="backslashreplace")


def list_keys(client: redis.Redis, head: str) -> Iterator[bytes]:
    """List the keys of a sink's rows."""
    yield from client.scan_iter(match=f"{head.translate(GLOB)}:*", count=10 * AT_ONCE)
