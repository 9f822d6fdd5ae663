"""A client of Redis or Valkey, as sinks want it, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError, RedisError
from redis.retry import Retry

from seamline.model.errors import DiskFull, SeamlineError, SetupError
from seamline.sinks.server_connections import ServerConnection
from seamline.sinks.target_errors import TargetUnavailable

USUAL_PORT = 6379
TLS = (
    "ssl",
    "ssl_ca_certs",
    "ssl_cert_reqs",
    "ssl_certfile",
    "ssl_check_hostname",
    "ssl_keyfile",
)
"""What a connection's extra may say, in the words of redis-py."""
REFUSED = (redis.AuthenticationError, NoPermissionError)
EVICTS, EVICTS_EXPIRING = "allkeys-", "volatile-"


def open_client(connection: ServerConnection) -> redis.Redis:
    """Make a client; of a cluster where the connection's extra says ``"cluster": true``."""
    given: dict[str, Any] = {name: read_flag(each) for name, each in connection.extra.items() if name in TLS}
    if connection.kind == "rediss":
        given.setdefault("ssl", True)
    options = {
        "host": connection.host,
        "port": connection.port or USUAL_PORT,
        "username": connection.login or None,
        "password": connection.password or None,
        "socket_connect_timeout": 10,
        "socket_timeout": 60,
        **given,
    }
    if read_flag(connection.extra.get("cluster")):
        return redis.RedisCluster(**options)  # type: ignore[return-value]
    # Whether a script was run whose answer is lost, the position says; the client does not try again by itself.
    once = Retry(NoBackoff(), 0)
    database = int(connection.extra.get("db") or connection.schema or 0)
    return redis.Redis(**options, db=database, health_check_interval=30, retry=once)


def read_flag(value: Any) -> Any:
    """Return what is true or false as such: a connection in URI form has texts alone."""
    return {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value


def require_lasting_keys(client: redis.Redis, connection: ServerConnection, *, expiring: bool) -> None:
    """Raise SetupError where the server throws keys away that nobody has deleted, ``expiring`` ones or all."""
    found = client.info("memory")
    told = found if "maxmemory" in found else next(iter(found.values()), {})
    evicts = (EVICTS, EVICTS_EXPIRING) if expiring else EVICTS
    if told.get("maxmemory") and str(told.get("maxmemory_policy", "")).startswith(evicts):
        raise SetupError(
            f"Redis at {connection.called} throws keys away when its memory is full "
            f"(maxmemory-policy {told['maxmemory_policy']}).",
            hint="rows would be missing without a word: set noeviction; without expire= also a policy that begins "
            "with volatile-.",
        )


@contextmanager
def explained_redis(connection: ServerConnection, about: str) -> Iterator[None]:
    """Raise a SeamlineError in place of an error of the client; ``about`` is the sink."""
    try:
        yield
    except (RedisError, OSError) as error:
        raise explain_redis_error(error, connection, about) from None


def explain_redis_error(error: Exception, connection: ServerConnection, about: str) -> SeamlineError:
    """Say in our words what an error of Redis or of its client means."""
    where, said = f"Redis at {connection.called}", connection.hide_secrets(str(error))
    if isinstance(error, REFUSED) or said.startswith(("NOAUTH", "WRONGPASS", "NOPERM")):
        return SetupError(
            f"{where} does not let in user {connection.login or 'default'!r}, or not do this for {about}: {said}.",
            hint="correct login and password of the connection; docs/sinks-redis.md lists the commands that are used.",
        )
    if isinstance(error, redis.OutOfMemoryError) or "OOM" in said:
        return DiskFull(
            f"{where} has no memory left for {about}: {said}.",
            hint="raise maxmemory, or set expire=; the sink then goes on where it is.",
        )
    if "MISCONF" in said:
        return DiskFull(f"{where} cannot save to its disk: {said}.", hint="free some there.")
    if not isinstance(error, redis.ResponseError) or said.startswith(("LOADING", "READONLY", "MASTERDOWN")):
        return TargetUnavailable(
            f"{where} does not take rows for {about}: {said}.",
            hint="check that the server runs, is no replica, and the address of the connection.",
        )
    return SetupError(
        f"{where} refused rows for {about}: {said}.",
        hint="a sink needs Redis 6.2 or Valkey, with scripts.",
    )
