"""Rows that say that a row was deleted: of them a source has no more than the key, and asks no more."""

from __future__ import annotations

from dataclasses import dataclass, replace

from seamline.model.compile.problems import Problems
from seamline.model.definition.debezium import DELETED, Debezium, check_deleted_column
from seamline.model.definition.format_base import Format
from seamline.model.definition.sources import Source
from seamline.model.types.schema import BOOLEAN, Field, Schema


@dataclass(frozen=True)
class Deletion:
    """How the rows of a source say that a row was deleted."""

    flag: Field
    """The column that is true of such a row, BOOLEAN or STRING."""
    key: tuple[str, ...]
    """The columns that say which row it was, by their names in the schema."""
    spared: frozenset[str]
    """The columns that every other row must have."""

    @property
    def condition(self) -> str:
        """Write it in Spark SQL."""
        return f"`{DELETED}`" if self.flag.type == BOOLEAN else f"`{DELETED}` = 'true'"

    @property
    def condition_duckdb(self) -> str:
        """Write it in DuckDB's SQL, where it is never NULL."""
        return f"({self.condition.replace('`', chr(34))}) IS TRUE"

    def asked_sql(self, field: Field) -> str:
        """Write when a row must have a column; empty where it need not."""
        return f"NOT {self.condition_duckdb}" if field.name in self.spared else ""


def find_deletion(source: Source, schema: Schema) -> Deletion | None:
    """Return how a source's rows say that a row was deleted; None where no column does, or no key says which."""
    flag, key = schema.field(DELETED), tuple(filter(None, map(schema.field, source.key)))
    if flag is None or not key:
        return None
    names = {field.name for field in key}
    asked = {field.name for field in schema.fields if not field.nullable} | {source.event_time}
    asked &= {field.name for field in schema.fields}
    return Deletion(
        flag, tuple(field.name for field in key), frozenset(asked - names - {*source.event_id, DELETED})
    )


def spare_columns(schema: Schema, deletion: Deletion | None) -> Schema:
    """Let columns be NULL that a deleted row may lack, for all that reads rows."""
    if deletion is None:
        return schema
    fields = (
        replace(each, nullable=True) if each.name in deletion.spared else each for each in schema.fields
    )
    return Schema(tuple(fields))


def check_deletion(source: Source, format: Format, schema: Schema, problems: Problems) -> None:
    """Note a source that has deletions and does not say of which row, or not by what."""
    problems.attempt("source.schema", source.origin, lambda: check_deleted_column(schema))
    if (schema.field(DELETED) or isinstance(format, Debezium)) and not source.key:
        problems.note(
            "source.key",
            source.origin,
            "A tombstone deletes a row, and no key= says which columns are its key.",
            'write key=["id"], for example: the columns of the table\'s primary key.',
        )
