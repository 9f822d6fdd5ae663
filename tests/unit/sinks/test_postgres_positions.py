"""What a sink of PostgreSQL does with a position that nobody can read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.e2e.sinks.served_rows import make_view

from seamline import PostgresSink
from seamline.model.errors import SetupError
from seamline.sinks.postgres import target
from seamline.sinks.postgres.positions import Positions
from seamline.sinks.postgres.sink_table import SinkTable
from seamline.sinks.postgres.target import PostgresTarget
from seamline.sinks.server_connections import ServerConnection


class Session:
    """A session whose statements all find a token and a position which is none."""

    closed = False

    def execute(self, *_: object) -> Session:
        """Take a statement."""
        return self

    def fetchone(self) -> tuple[Any, ...]:
        """Return the token and the position."""
        return 1, "{"

    def close(self) -> None:
        """Note that it is closed."""
        self.closed = True


@contextmanager
def transaction(session: Session, _: str) -> Iterator[Session]:
    """Do something in a transaction."""
    yield session


def test_what_cannot_be_read_can_be_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names `seamline sinks resend`, which takes over and then clears."""
    session, emptied, moved = Session(), [], []
    monkeypatch.setattr(target, "open_session", lambda *_: session)
    monkeypatch.setattr(target, "transaction", transaction)
    for owner, name in ((SinkTable, "ensure_schema"), (Positions, "ensure"), (SinkTable, "ensure")):
        monkeypatch.setattr(owner, name, lambda *_, **__: True)
    monkeypatch.setattr(SinkTable, "empty", lambda *_: emptied.append("table"))
    monkeypatch.setattr(Positions, "move", lambda *given: moved.append(given[-1]))
    view = make_view()
    table = PostgresTarget(
        PostgresSink(view.name, table="t"), view, ServerConnection("db", "postgres", "host")
    )
    with pytest.raises(SetupError, match="cannot be read"):
        table.take_over()
    assert not session.closed
    table.clear()
    assert (emptied, moved) == (["table"], [None])
