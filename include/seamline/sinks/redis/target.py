"""Keys of Redis or Valkey as a sink's target."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import redis

from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.definition.sinks.redis_sink import RedisSink
from seamline.model.definition.windows import Cumulating
from seamline.model.errors import Fenced
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.model.time.intervals import parse_duration
from seamline.model.time.zone_clock import MICROSECOND
from seamline.sinks.redis.clients import explained_redis, open_client, require_lasting_keys
from seamline.sinks.redis.row_texts import RowTexts, combine
from seamline.sinks.redis.scripts import CLAIM, FENCED, FORGET, UNLINK, WRITE
from seamline.sinks.row_shape import RowShape
from seamline.sinks.server_connections import ServerConnection
from seamline.sinks.target import ChangeBatch
from seamline.sinks.target_errors import TargetUnavailable

SWEPT = 1_000
"""Keys that are deleted at a time: Lua passes no more than some thousands to a command."""
GLOB = str.maketrans({each: f"\\{each}" for each in "*?[]\\^-"})


class RedisTarget:
    """The keys of one sink, for one version of its view; a flip is taken over by another target."""

    def __init__(self, sink: RedisSink, view: CompiledView, connection: ServerConnection) -> None:
        self._connection = connection
        self._called = f"sink {view.pipeline}.{sink.id}"
        self._place = f"{sink.prefix}{{{view.pipeline}.{sink.id}}}"
        ends = isinstance(view.window, Cumulating)
        self._texts = RowTexts(self._place, RowShape.of(view), ends)
        self._expire = parse_duration(sink.expire) if sink.expire else None
        self._client: redis.Redis | None = None
        self._token = ""

    def take_over(self) -> SinkPosition | None:
        """Fence earlier writers, and return the position; where there is none, delete what rows there are."""
        self.close()
        try:
            with explained_redis(self._connection, self._called):
                self._client = open_client(self._connection)
                require_lasting_keys(self._client, self._connection, expiring=self._expire is not None)
                # At random: a number that counts would come twice where a replica takes over that lacks the last one.
                self._token = secrets.token_hex(8)
                position = self._client.register_script(CLAIM)([self._place], [self._texts.form, self._token])
            if position is None:
                self._sweep()
        except BaseException:
            self.close()
            raise
        # One that cannot be read leaves the connection open: what is there may be cleared.
        return None if position is None else SinkPosition.from_json(position)

    def write(self, batches: Iterable[ChangeBatch], position: SinkPosition) -> None:
        """Write changes and the position in one script."""
        given: list[Any] = [each for batch in batches for each in self._spell_batch(batch)]
        self._run(WRITE, position.to_json(), *given)

    def clear(self) -> None:
        """Forget the position, then delete all rows; a start without a position deletes what was left."""
        self._run(FORGET)
        self._sweep()

    def close(self) -> None:
        """Let go of the connection."""
        if self._client is not None:
            with suppress(redis.RedisError, OSError):
                self._client.close()
        self._client = None

    def _spell_batch(self, batch: ChangeBatch) -> Iterator[Any]:
        """Spell the arguments of a batch, nine of them."""
        yield from spell_texts(self._texts.spell_keys(batch.upserts))
        yield from spell_texts(self._texts.spell_values(batch.upserts))
        yield b"" if self._expire is None else spell_expiries(batch.upserts["window_end"], self._expire)
        gone = self._texts.shape.name_identity(batch.deletions)
        yield from spell_texts(self._texts.spell_keys(gone))
        yield from spell_texts(self._texts.spell_bounds(gone))

    def _sweep(self) -> None:
        """Delete every row of the sink."""
        keys: list[bytes] = []
        for key in self._list_keys():
            keys.append(key)
            if len(keys) == SWEPT:
                self._run(UNLINK, *keys)
                keys = []
        if keys:
            self._run(UNLINK, *keys)

    def _list_keys(self) -> Iterator[bytes]:
        pattern = f"{self._place.translate(GLOB)}:*"
        with explained_redis(self._connection, self._called):
            yield from self._require_client().scan_iter(match=pattern, count=10 * SWEPT)

    def _run(self, script: str, *given: Any) -> None:
        """Run a script by which this writer changes something; Fenced."""
        with explained_redis(self._connection, self._called), self._fenced():
            self._require_client().register_script(script)([self._place], [self._token, *given])

    @contextmanager
    def _fenced(self) -> Iterator[None]:
        try:
            yield
        except redis.ResponseError as error:
            if not str(error).startswith(FENCED):
                raise
            raise Fenced(
                f"Another process writes {self._called}: its token is {str(error).split()[-1]}, "
                f"this one's {self._token}.",
                hint="this one ends; nothing is to be done.",
            ) from None

    def _require_client(self) -> redis.Redis:
        if self._client is None:
            raise TargetUnavailable(
                f"The connection to Redis at {self._connection.called} was lost.",
                hint="the sink takes over again by itself.",
            )
        return self._client


def spell_texts(texts: pa.Array) -> tuple[Any, Any]:
    """Return texts as two arguments of a script: all in one, and where each ends."""
    _, ends, data = texts.buffers()
    kept = memoryview(ends)[texts.offset * 4 : (texts.offset + len(texts) + 1) * 4] if ends else b"\0\0\0\0"
    return memoryview(data) if data else b"", kept


def spell_expiries(ends: pa.ChunkedArray, expire: timedelta) -> memoryview:
    """Return when rows expire as an argument of a script, in milliseconds since 1970; no server takes one before."""
    micros = pc.add(combine(ends).cast(pa.int64()), expire // MICROSECOND)
    return memoryview(pc.max_element_wise(pc.divide(micros, 1000), 1).to_numpy()).cast("B")
