"""What is read back of a sink in Redis where somebody has put something else into its keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from seamline.lake.read.sinks.row_comparison import open_comparison
from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.sinks.redis.reading import RedisReading
from seamline.sinks.redis.row_texts import RowTexts
from seamline.sinks.row_shape import RowShape
from seamline.sinks.server_connections import ServerConnection

HOUR = datetime(2026, 3, 1, 9, tzinfo=UTC)
KEYS = {
    b"{shop.x}:ada:2026-03-01T09:00:00Z": b'{"window_start": "2026-03-01T09:00:00Z"}',
    b"{shop.x}:2026-03-01T09:00:00Z:2026-03-01T10:00:00Z": b"garbage",
    b"{shop.x}:no": b"",
}


class Server:
    """A server that has some keys."""

    def scan_iter(self, **_: object) -> list[bytes]:
        """List them."""
        return [*KEYS]

    def mget(self, keys: Sequence[bytes]) -> list[bytes]:
        """Say what they hold."""
        return [KEYS[key] for key in keys]


@pytest.mark.parametrize(
    ("ends", "starts"),
    [(False, [HOUR, HOUR.replace(hour=10), None]), (True, [None, HOUR, None])],
)
def test_the_key_says_of_which_window_a_row_is(ends: bool, starts: list[datetime | None]) -> None:
    """A value that somebody has spoilt would be taken for one of any range, and deleted where it is served."""
    server: Any = Server()
    texts = RowTexts("{shop.x}", RowShape("", (), ()), ends)
    reading = RedisReading(server, ServerConnection("cache", "redis", "host"), "sink shop.x", texts)
    [rows] = reading.read_rows(StartRange())
    assert rows["start"].to_pylist() == starts
    later = StartRange(HOUR.replace(hour=11))
    with open_comparison(later) as comparison:
        comparison.add_held(rows)
        assert comparison.count()[0] == starts.count(None)
