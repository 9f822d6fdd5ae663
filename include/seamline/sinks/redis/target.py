"""Keys of Redis or Valkey as a sink's target."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pyarrow as pa
import redis

from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.definition.sinks.redis_sink import RedisSink
from seamline.model.definition.windows import Cumulating
from seamline.model.errors import Fenced
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.model.protocol.sinks.steps import begin_way
from seamline.model.time.intervals import parse_duration
from seamline.runtime.failpoints import hit_failpoint
from seamline.sinks.lasts import with_last
from seamline.sinks.redis.clients import explained_redis, open_client, require_lasting_keys
from seamline.sinks.redis.reading import RedisReading, list_keys
from seamline.sinks.redis.row_texts import RowTexts
from seamline.sinks.redis.script_parts import ScriptParts
from seamline.sinks.redis.scripts import CLAIM, FENCED, FORGET, UNLINK, WRITE
from seamline.sinks.row_shape import RowShape
from seamline.sinks.server_connections import ServerConnection
from seamline.sinks.target import ChangeBatch
from seamline.sinks.target_errors import TargetUnavailable

SWEPT = 1_000
"""Keys that are deleted at a time: Lua passes no more than some thousands to a command."""


class RedisTarget:
    """The keys of one sink, for one version of its view; a flip is taken over by another target."""

    def __init__(self, sink: RedisSink, view: CompiledView, connection: ServerConnection) -> None:
        self._connection = connection
        self._called = f"sink {view.pipeline}.{sink.id}"
        self._place = f"{sink.prefix}{{{view.pipeline}.{sink.id}}}"
        ends = isinstance(view.window, Cumulating)
        self._texts = RowTexts(self._place, RowShape.of(view), ends)
        self._expire = parse_duration(sink.expire) if sink.expire else None
        self._parts = ScriptParts(self._texts, self._expire, sink.at_once)
        self._held: SinkPosition | None = None
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
        self._held = None if position is None else SinkPosition.from_json(position)
        return self._held

    def write(self, batches: Iterable[ChangeBatch], position: SinkPosition) -> None:
        """Write changes and the position in one script; more rows in several, of which the last has the position."""
        for given, last in with_last(self._parts.spell_scripts(batches)):
            now = position if last else begin_way(self._held, position)
            self._run(WRITE, now.to_json(), *given)
            hit_failpoint("sink_written" if last else "sink_rows")
        self._held = position

    def clear(self) -> None:
        """Forget the position, then delete all rows; a start without a position deletes what was left."""
        self._held = None
        self._run(FORGET)
        self._sweep()

    @contextmanager
    def open_reading(self) -> Iterator[RedisReading]:
        """Read the keys beside who writes them."""
        with (
            explained_redis(self._connection, self._called),
            closing(open_client(self._connection)) as client,
        ):
            yield RedisReading(client, self._connection, self._called, self._texts)

    def spell_places(self, rows: pa.Table) -> pa.Array:
        """Write the keys of rows."""
        return self._texts.spell_keys(rows)

    def spell_values(self, rows: pa.Table) -> pa.Array:
        """Write rows as JSON."""
        return self._texts.spell_values(rows)

    def delete_held(self, held: pa.Table, position: SinkPosition) -> None:
        """Delete keys."""
        for some in held.to_batches(SWEPT):
            self._run(UNLINK, *some["place"].to_pylist())

    def close(self) -> None:
        """Let go of the connection."""
        if self._client is not None:
            with suppress(redis.RedisError, OSError):
                self._client.close()
        self._client = None

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
        with explained_redis(self._connection, self._called):
            yield from list_keys(self._require_client(), self._place)

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
