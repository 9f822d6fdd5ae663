"""Keys of Valkey as a target, on a real server: what they hold is what the view showed at the position."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.e2e.sinks.served_rows import ServedRows, make_view
from tests.services.addresses import Valkey
from valkey import Valkey as Client

from seamline import Cumulating, RedisSink, Session
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.errors import Fenced, SetupError
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.serve.query import format_scalar
from seamline.sinks.redis import target as redis_target
from seamline.sinks.redis.target import RedisTarget
from seamline.sinks.server_connections import ServerConnection
from seamline.sinks.target import ChangeBatch
from seamline.sinks.target_errors import TargetUnavailable

SINK = RedisSink("by_till", prefix="live:")
PLACE = "live:{shop.by_till_redis}"


def connect(valkey: Valkey) -> ServerConnection:
    """Return the connection of a sink to a test's database."""
    return ServerConnection(
        "cache", "redis", valkey.host, valkey.port, password=valkey.password, schema=str(valkey.database)
    )


@pytest.fixture
def held(valkey: Valkey) -> Iterator[Client]:
    """A stranger's client, who reads what is there."""
    with Client.from_url(valkey.url, decode_responses=True) as client:
        yield client


def make_target(valkey: Valkey, view: CompiledView, sink: RedisSink = SINK) -> RedisTarget:
    """Make a target of a view's."""
    return RedisTarget(sink, view, connect(valkey))


def read_rows(held: Client) -> dict[str, str]:
    """Read the rows that there are, each as JSON by its key."""
    keys = [each for each in held.scan_iter("*", count=1000) if each != PLACE]
    return {key: json.dumps(json.loads(held.get(key)), sort_keys=True) for key in keys}


def expect_rows(served: ServedRows) -> dict[str, str]:
    """Return the rows that there should be, each as JSON by its key."""
    return {name_key(row): spell(row) for row in served.as_table().to_pylist()}


def name_key(row: dict[str, Any]) -> str:
    """Name a row's key, as docs/sinks-redis.md says."""
    names = [name for name in ("grouping", "shop", "day", "till", "window_start") if name in row]
    return ":".join([PLACE, *(spell_part(row[name]) for name in names)])


def spell_part(value: Any) -> str:
    """Write a part of a key."""
    if value is None:
        return "%N"
    text = value.replace("%", "%25").replace(":", "%3A") if isinstance(value, str) else format_scalar(value)
    return str(text)


def spell(row: dict[str, Any]) -> str:
    """Write a row as JSON; what is no number is null."""
    kept = {name: value for name, value in row.items() if "__" not in name or name.endswith("__beyond")}
    kept["levels"] = kept["levels"] and [finite(each) for each in kept["levels"]]
    kept["mean"] = finite(kept["mean"])
    kept["total"] = kept["total"] and float(kept["total"])
    return json.dumps(json.loads(json.dumps(kept, default=format_scalar)), sort_keys=True)


def finite(value: float | None) -> float | None:
    """Return a number, None for what is none."""
    return value if value is not None and abs(value) < float("inf") else None


@pytest.mark.parametrize("sets", [(), [["shop"], ["shop", "day", "till"]]], ids=["plain", "grouped"])
def test_keys_have_what_the_view_shows(valkey: Valkey, held: Client, sets: list[list[str]]) -> None:
    """Ugly texts and NULL keys have keys of their own, version after version."""
    served = ServedRows(make_view(grouping_sets=sets), 1, 300)
    with closing(make_target(valkey, served.view)) as target:
        assert target.take_over() is None
        target.write(served.whole(100), served.position)
        assert read_rows(held) == expect_rows(served)
        for _ in range(3):
            target.write([served.change(40, 30, 20), served.change(10, 5, 5)], served.position)
            assert read_rows(held) == expect_rows(served)
        assert target.take_over() == served.position


def test_an_earlier_writer_is_refused(valkey: Valkey, held: Client) -> None:
    """Two processes that both believe that the sink is theirs must not write in turns."""
    served = ServedRows(make_view(), 2, 50)
    with (
        closing(make_target(valkey, served.view)) as first,
        closing(make_target(valkey, served.view)) as second,
    ):
        first.take_over()
        first.write(served.whole(), served.position)
        before, position = expect_rows(served), served.position
        assert second.take_over() == position
        with pytest.raises(Fenced, match="its token is [0-9a-f]{16}, this one's [0-9a-f]{16}"):
            first.write([served.change(5, 5)], served.position)
        with pytest.raises(Fenced):
            first.clear()
        assert read_rows(held) == before
        assert second.take_over() == position


def test_a_script_that_is_sent_twice_changes_nothing_more(valkey: Valkey, held: Client) -> None:
    """Where the answer is lost, the same is written again, or the position says that it was written."""
    served = ServedRows(make_view(), 3, 50)
    with closing(make_target(valkey, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        change = served.change(20, 10, 10)
        target.write([change], served.position)
        target.write([change], served.position)
        assert read_rows(held) == expect_rows(served)
        assert target.take_over() == served.position


def test_a_write_that_was_cut_short_is_gone_on_with(
    valkey: Valkey, held: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of it may change back in the next version: then no difference of the two around it has that row."""
    served = ServedRows(make_view(), 11, 50)
    small = replace(SINK, at_once=10)
    with closing(make_target(valkey, served.view, small)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        before, change = expect_rows(served), served.change(25, 10, 10)
        for scripts in (1, 3):
            monkeypatch.setattr(redis_target, "hit_failpoint", FailAt(scripts))
            with pytest.raises(Killed):
                target.write([change], served.position)
            assert before != read_rows(held) != expect_rows(served)
            underway = SinkPosition(" > ".join([served.view.fingerprint] * 2), 0, 1)
            assert target.take_over() == underway
        monkeypatch.undo()
        target.write([change], served.position)
        assert read_rows(held) == expect_rows(served)
        assert target.take_over() == served.position


class Killed(Exception):
    """Stands for the end of a process."""


class FailAt:
    """Ends a write after so many scripts."""

    def __init__(self, scripts: int) -> None:
        self.left = scripts

    def __call__(self, _: str) -> None:
        self.left -= 1
        if not self.left:
            raise Killed


def test_rows_are_cleared_and_written_anew(valkey: Valkey, held: Client) -> None:
    """Keys of others stay, even where theirs begin like ours."""
    served = ServedRows(make_view(), 4, 1500)
    held.set(f"{PLACE}x:1", "theirs")
    with closing(make_target(valkey, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        target.clear()
        assert held.get(f"{PLACE}x:1") == "theirs"
        assert held.dbsize() == 2
        assert target.take_over() is None
        target.write(served.whole(), served.position)
        held.delete(f"{PLACE}x:1")
        assert read_rows(held) == expect_rows(served)


@pytest.mark.parametrize("harm", ["position", "keys"])
def test_rows_that_no_position_knows_are_deleted(valkey: Valkey, held: Client, harm: str) -> None:
    """Somebody has deleted the position, or the view has other keys: what is there is found by no key any more."""
    served = ServedRows(make_view(), 5, 50)
    with closing(make_target(valkey, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
    other = ServedRows(make_view(keys=("shop",)) if harm == "keys" else make_view(), 6, 20)
    if harm == "position":
        held.delete(PLACE)
    with closing(make_target(valkey, other.view)) as target:
        assert target.take_over() is None
        assert held.keys("*") == [PLACE]


def test_a_key_that_somebody_has_made_another_type_is_replaced(valkey: Valkey, held: Client) -> None:
    """A script that fails half-way would have written half of a difference."""
    served = ServedRows(make_view(), 7, 20)
    with closing(make_target(valkey, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        for key in read_rows(held):
            held.delete(key)
            held.lpush(key, "theirs")
        target.write([served.change(10, 10)], served.position)
        assert read_rows(held) == expect_rows(served)


def test_a_window_that_has_moved_is_not_deleted(valkey: Valkey, held: Client) -> None:
    """A session has one key as long as its start stays: its old end is gone, and the new one is there."""
    served = ServedRows(make_view(window=Session("30 minutes")), 8, 20)
    with closing(make_target(valkey, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        for longer in (1, -2):
            gone = list(served.rows.values())
            served.rows = {at: lengthen(row, longer) for at, row in served.rows.items()}
            changes = [
                ChangeBatch(served.as_table(), served.as_deletions([]), None),
                ChangeBatch(served.as_table([]), served.as_deletions(gone), None),
            ]
            served.version += 1
            target.write(changes[:: 1 if longer > 0 else -1], served.position)
            assert read_rows(held) == expect_rows(served)


def lengthen(row: dict[str, Any], hours: int) -> dict[str, Any]:
    """Return a row whose window ends later."""
    return {**row, "window_end": row["window_end"] + timedelta(hours=hours)}


def test_windows_of_one_start_have_keys_of_their_own(valkey: Valkey, held: Client) -> None:
    """The day so far has a row for each hour of it."""
    served = ServedRows(make_view(window=Cumulating("1 day", "1 hour")), 9, 10)
    with closing(make_target(valkey, served.view)) as target:
        target.take_over()
        longer = [lengthen(row, 1) for row in served.rows.values()]
        target.write(
            [*served.whole(), ChangeBatch(served.as_table(longer), served.as_deletions([]), None)],
            served.position,
        )
        assert len(read_rows(held)) == 20
        assert all(key.endswith(json.loads(value)["window_end"]) for key, value in read_rows(held).items())


def test_rows_expire_after_their_window(valkey: Valkey, held: Client) -> None:
    """What is long over is not kept in memory, and not written either."""
    served = ServedRows(make_view(), 10, 20)
    [old, *_] = served.rows.values()
    old["window_end"] = datetime(2020, 1, 1, tzinfo=UTC)
    with closing(make_target(valkey, served.view, replace(SINK, expire="36500 days"))) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        assert held.expiretime(name_key(old)) == int((old["window_end"] + timedelta(days=36500)).timestamp())
    with closing(make_target(valkey, served.view, replace(SINK, expire="1 day"))) as target:
        target.take_over()
        target.write(served.whole(), served.position)
    assert not held.exists(name_key(old))


def test_a_login_that_is_refused_names_the_connection_and_no_password(valkey: Valkey) -> None:
    """The message stands in logs and on pages."""
    wrong = replace(connect(valkey), password="s3cret-of-mine")
    with pytest.raises(SetupError, match=r"connection 'cache'") as caught:
        RedisTarget(SINK, make_view(), wrong).take_over()
    away = replace(connect(valkey), port=1)
    with pytest.raises(TargetUnavailable, match=r"127.0.0.1:1 \(connection 'cache'\)") as gone:
        RedisTarget(SINK, make_view(), away).take_over()
    said = "".join(traceback.format_exception(caught.value)) + "".join(traceback.format_exception(gone.value))
    assert "s3cret" not in said and valkey.password not in said
