"""A DuckDB file that says of itself which rows it has: what keeps rows of the log, and outlives its process.

``stamp`` says which rows they are, empty while nobody knows: it is written with the rows, in one transaction. So a file
that is opened again has those of its stamp, if not the last ones, for what is written is not written to a log before.
DuckDB's lock keeps it to one process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.duckdb_scans import quote_literal

MEMORY = 512 << 20
"""Bytes of a file that are in memory at most."""


class StampedFile(ABC):
    """A file of rows below ``folder``, as database ``kept`` of the connection ``con``, with its stamp."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise duckdb.IOException(str(error)) from error
        self.con = open_duckdb()
        self.con.execute(f"SET memory_limit = '{MEMORY >> 20}MiB'")
        file = folder / "rows.duckdb"
        known = file.exists()
        try:
            self.con.execute(f"ATTACH {quote_literal(str(file))} AS kept (RECOVERY_MODE no_wal_writes)")
            if not known:
                self.create_tables()
                self.con.execute("CREATE TABLE kept.stamped AS SELECT '' AS stamp")
            [(self.stamp,)] = self.con.sql("SELECT stamp FROM kept.stamped").fetchall()
        except BaseException:
            self.con.close()
            raise

    @abstractmethod
    def create_tables(self) -> None:
        """Create the tables of rows."""

    @contextmanager
    def stamped(self, stamp: str) -> Iterator[None]:
        """Change rows in the block, and say which they are from then on: both, or neither."""
        self.con.begin()
        try:
            yield
            self.con.execute("UPDATE kept.stamped SET stamp = ?", [stamp])
        except BaseException:
            self.con.rollback()
            raise
        self.con.commit()
        self.stamp = stamp

    def register(self, **tables: pa.Table) -> None:
        """Let the SQL that follows read tables by name, in the place of those of the same names."""
        for name, table in tables.items():
            self.con.register(name, table)

    def close(self) -> None:
        """Close the file."""
        self.con.close()

    @contextmanager
    def on_all_cores(self) -> Iterator[None]:
        """Work on all cores while the block runs, in any order of rows: at a start nothing else is to be done."""
        self.con.execute("RESET threads; SET preserve_insertion_order = false")
        try:
            yield
        finally:
            self.con.execute("SET threads = 1")

    @abstractmethod
    def count_rows(self) -> int:
        """Count the rows."""
