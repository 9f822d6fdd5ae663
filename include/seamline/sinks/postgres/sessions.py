"""A session with PostgreSQL, as sinks want it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

from seamline.model.errors import SetupError
from seamline.sinks.server_connections import ServerConnection

OLDEST = 150000
"""The first version that takes two NULLs for equal in a unique index, which keys may be."""
LIBPQ = (
    "channel_binding",
    "gssencmode",
    "hostaddr",
    "krbsrvname",
    "require_auth",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslmode",
    "sslpassword",
    "sslrootcert",
    "target_session_attrs",
)
"""What a connection's extra may say, in the words of libpq."""
LIVENESS: Mapping[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""By these a connection whose other end is gone is noticed within half a minute."""

Session = psycopg.Connection[tuple[Any, ...]]
Transaction = psycopg.Cursor[tuple[Any, ...]]
"""The cursor of an open transaction."""


def open_session(connection: ServerConnection, application: str) -> Session:
    """Log in; psycopg.Error where that cannot be, SetupError for a server that cannot hold rows of ours."""
    given: dict[str, Any] = {name: str(value) for name, value in connection.extra.items() if name in LIBPQ}
    # No statement is prepared: a pooler may give each transaction another session.
    session: Session = psycopg.connect(
        host=connection.host,
        port=connection.port,
        user=connection.login or None,
        password=connection.password or None,
        dbname=connection.schema or None,
        application_name=application,
        client_encoding="UTF8",
        autocommit=True,
        prepare_threshold=None,
        **LIVENESS,
        **given,
    )
    try:
        require_capable_server(session, connection)
    except BaseException:
        session.close()
        raise
    return session


def require_capable_server(session: Session, connection: ServerConnection) -> None:
    """Raise SetupError for a server that is too old, or whose database cannot hold every text."""
    where = f"PostgreSQL at {connection.called}"
    if session.info.server_version < OLDEST:
        raise SetupError(
            f"{where} is of version {session.info.server_version // 10000}.",
            hint=f"a sink needs {OLDEST // 10000} or later: its unique indexes tell a NULL key from none.",
        )
    encoding = session.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise SetupError(
            f"The database of {where} is encoded as {encoding}.",
            hint="name a database whose encoding is UTF8, which holds any text.",
        )


@contextmanager
def transaction(session: Session, wait: str) -> Iterator[Transaction]:
    """Do something in one transaction that waits for a lock no longer than ``wait``."""
    with session.transaction(), session.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{wait}'")
        cursor.execute("SET LOCAL TIME ZONE 'UTC'")
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = '10min'")
        yield cursor
