"""A command of Airflow's own over SQLite: ``python -m seamline.local.airflow_command backfill create ...``.

Python's driver opens no transaction at a savepoint, so that one is SQLite's deferred kind: it reads, and SQLite drops
it at its first write with "database is locked" if anybody has written since, however long it may wait. Airflow creates
each run of a backfill so, and a busy scheduler writes more often than that takes.
"""

from __future__ import annotations

import runpy

from sqlalchemy import Connection, Engine, event


def write_from_savepoints_on(engine: Engine | type[Engine]) -> None:
    """Have each transaction that begins with a savepoint wait for its turn to write, and keep it."""

    @event.listens_for(engine, "savepoint")
    def begin(connection: Connection, name: str) -> None:
        driver = connection.connection.dbapi_connection
        if connection.dialect.name == "sqlite" and driver is not None and not driver.in_transaction:
            connection.exec_driver_sql("BEGIN IMMEDIATE")


def main() -> None:
    """Run the command."""
    write_from_savepoints_on(Engine)
    runpy.run_module("airflow", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
