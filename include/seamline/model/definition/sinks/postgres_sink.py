"""A table of PostgreSQL that has the newest row of each key and window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seamline.model.definition.sinks.sink_base import Sink


@dataclass(frozen=True)
class PostgresSink(Sink):
    """A table of a view's rows in PostgreSQL 15 or later: a row is replaced when it changes, deleted when it is gone.

    The sink creates the table and adds the columns of a changed view. Rows and the sink's position change in one
    transaction, so that a reader sees what the view showed at one moment.
    """

    table: str
    """The table's name; it is nobody else's."""
    connection: str = "postgres_default"
    """The id of the Airflow connection to PostgreSQL."""
    schema: str = "public"
    """The schema of PostgreSQL in which the table is; it is created where there is none."""

    kind: ClassVar[str] = "postgres"

    @property
    def place(self) -> str:
        return f"table {self.schema}.{self.table} of {self.connection}"
