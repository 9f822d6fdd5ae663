"""What an error of PostgreSQL means, in our words, and never with a password."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg

from seamline.model.errors import DiskFull, SeamlineError, SetupError
from seamline.sinks.server_connections import ServerConnection
from seamline.sinks.target_errors import TargetUnavailable

CHANGED = ("42P01", "42703", "42P10", "42804", "42809", "3F000")
"""States that say that a table, or a column, is not as it was when the sink took it over."""
PASSING: Mapping[str, str] = {
    "08": "the connection was lost",
    "25": "it only lets read",
    "40": "it gave the transaction up for another",
    "53": "it lacks resources",
    "55": "another session has locked the table",
    "57": "it ended the session",
}
"""Classes of states that may pass by themselves."""
HINTS: Mapping[str, str] = {
    "08": "check that the server runs, and the address of the connection.",
    "25": "name the primary, or set target_session_attrs to read-write in the connection's extra.",
    "53": "the sink tries again; look at the server's log.",
    "55": "end what holds the lock: pg_stat_activity names it.",
}
FULL = ("53100", "58030")
"""States that say that the server could not write to its disk."""
TOO_LONG = "54000"
"""The state that says that a key does not fit into an index."""


@contextmanager
def explained_postgres(connection: ServerConnection, about: str) -> Iterator[None]:
    """Raise a SeamlineError in place of an error of PostgreSQL; ``about`` is the table."""
    try:
        yield
    except psycopg.Error as error:
        raise explain_postgres_error(error, connection, about) from None


def explain_postgres_error(error: psycopg.Error, connection: ServerConnection, about: str) -> SeamlineError:
    """Say in our words what an error of PostgreSQL or of its client means."""
    state = error.sqlstate or ""
    said = connection.hide_secrets(error.diag.message_primary or str(error).strip().partition("\n")[0])
    where = f"PostgreSQL at {connection.called}"
    if state.startswith("28") or "authentication failed" in said or "no password supplied" in said:
        return SetupError(
            f"{where} does not let in user {connection.login!r}: {said}.",
            hint="correct login and password of the connection, or the server's pg_hba.conf.",
        )
    # What is said while a session is opened has no state.
    if state == "3D000" or (not state and "does not exist" in said):
        return SetupError(f"{where} has no such database: {said}.", hint="create it, or correct the schema.")
    if state == "42501":
        return SetupError(
            f"User {connection.login!r} lacks a right for {about}, says {where}: {said}.",
            hint="docs/sinks-postgresql.md lists the rights that a sink needs.",
        )
    if state in FULL:
        return DiskFull(
            f"{where} has no space left for {about}: {said}.",
            hint="free some there; the sink then goes on where it is.",
        )
    if state in CHANGED:
        return TargetUnavailable(
            f"Somebody has changed {about} in {where}: {said}.",
            hint="the sink starts again, adds what is missing, and writes all rows anew.",
        )
    if not state or state[:2] in PASSING:
        why = PASSING.get(state[:2], "it does not answer")
        return TargetUnavailable(
            f"{where} cannot take rows for {about}, {why}: {said}.",
            hint=HINTS.get(state[:2], "the sink tries again by itself." if state else HINTS["08"]),
        )
    return SetupError(
        f"{where} refused rows for {about} (state {state}): {said}.",
        hint="`seamline sinks resend PIPELINE SINK` writes the table anew, once what it refused is mended.",
    )
