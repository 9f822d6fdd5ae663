"""What servers say, in our words: what passes by itself, what somebody must mend, and never a password."""

from __future__ import annotations

import psycopg
import pytest
import redis
from tests.e2e.sinks.served_rows import make_view

from seamline import KafkaSink, PostgresSink, RedisSink
from seamline.model.errors import DiskFull, SetupError
from seamline.sinks.postgres.explained_errors import explain_postgres_error
from seamline.sinks.postgres.target import PostgresTarget
from seamline.sinks.redis.clients import explain_redis_error, require_lasting_keys
from seamline.sinks.redis.target import RedisTarget
from seamline.sinks.server_connections import ServerConnection
from seamline.sinks.target_errors import TargetUnavailable
from seamline.sinks.targets import load_class, open_target

WHERE = ServerConnection("shop_db", "postgres", "db", 5433, "me", "s3cret")


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("28P01", SetupError),
        ("3D000", SetupError),
        ("42501", SetupError),
        ("54000", SetupError),
        ("53100", DiskFull),
        ("42703", TargetUnavailable),
        ("08006", TargetUnavailable),
        ("25006", TargetUnavailable),
        ("53300", TargetUnavailable),
        ("55P03", TargetUnavailable),
        ("57P01", TargetUnavailable),
    ],
)
def test_states_of_postgresql_say_whether_they_pass(state: str, kind: type[Exception]) -> None:
    """A sink tries again in any case; people must know whether to do something."""
    error = psycopg.errors.lookup(state)("s3cret was said")
    found = explain_postgres_error(error, WHERE, "table shop.sales")
    assert type(found) is kind and found.hint
    assert "db:5433 (connection 'shop_db')" in found.message and "s3cret" not in str(found)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (redis.AuthenticationError("WRONGPASS"), SetupError),
        (redis.exceptions.NoPermissionError("NOPERM s3cret"), SetupError),
        (redis.ResponseError("OOM command not allowed"), DiskFull),
        (redis.ResponseError("MISCONF Redis is configured to save RDB snapshots"), DiskFull),
        (redis.ConnectionError("refused"), TargetUnavailable),
        (redis.TimeoutError("no answer"), TargetUnavailable),
        (
            redis.exceptions.ReadOnlyError("READONLY You can't write against a read only replica."),
            TargetUnavailable,
        ),
        (redis.BusyLoadingError("LOADING"), TargetUnavailable),
        (redis.ResponseError("unknown command 'EVALSHA'"), SetupError),
        (OSError("broken pipe"), TargetUnavailable),
    ],
)
def test_errors_of_redis_say_whether_they_pass(error: Exception, kind: type[Exception]) -> None:
    """A sink tries again in any case; people must know whether to do something."""
    found = explain_redis_error(error, WHERE, "sink shop.sales_redis")
    assert type(found) is kind and found.hint
    assert "db:5433 (connection 'shop_db')" in found.message and "s3cret" not in str(found)


class Memory:
    """What a server says of its memory."""

    def __init__(self, **told: object) -> None:
        self.told = told

    def info(self, _: str) -> dict[str, object]:
        """Return what is told."""
        return self.told


def test_a_server_that_throws_keys_away_is_refused() -> None:
    """A row that is gone without a word looks like one that there never was."""

    def require(most: int, policy: str, *, expiring: bool = False) -> None:
        told = Memory(maxmemory=most, maxmemory_policy=policy)
        require_lasting_keys(told, WHERE, expiring=expiring)  # type: ignore[arg-type]

    require(0, "allkeys-lru")
    require(1, "volatile-lru")
    require(1, "noeviction", expiring=True)
    with pytest.raises(SetupError, match="allkeys-lru"):
        require(1, "allkeys-lru")
    with pytest.raises(SetupError, match="volatile-lru"):
        require(1, "volatile-lru", expiring=True)


def test_each_sink_has_its_target() -> None:
    """The runner knows none of them."""
    view = make_view()
    env = {"AIRFLOW_CONN_A": "postgres://db/x", "AIRFLOW_CONN_B": "redis://cache/3"}
    table = open_target(PostgresSink(view.name, table="t", connection="a"), view, env)
    keys = open_target(RedisSink(view.name, connection="b"), view, env)
    assert isinstance(table, PostgresTarget) and isinstance(keys, RedisTarget)
    with pytest.raises(TargetUnavailable, match="lost"):
        table.clear()
    with pytest.raises(TargetUnavailable, match="lost"):
        keys.clear()
    keys.close()
    assert KafkaSink(view.name, topic="t").place


def test_a_client_that_is_not_installed_is_told_by_its_extra() -> None:
    """Who installs the package alone has no client of PostgreSQL."""
    with pytest.raises(SetupError, match=r"seamline.sinks.fax is not installed") as caught:
        load_class("seamline.sinks.fax", "Fax")
    assert "seamline[sinks]" in caught.value.hint
