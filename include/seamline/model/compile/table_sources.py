"""What a source that is a Delta table may not say."""

from __future__ import annotations

from seamline.model.compile.problems import Problems
from seamline.model.compile.record_rules import PROCESSING_TIME
from seamline.model.definition.sources import DeltaSource
from seamline.model.types.schema import Schema

OF_RECORD = ("_key", "_value", "_kafka_timestamp")
"""What a column of a table may be of a record beside a field."""


def check_table_source(source: DeltaSource, schema: Schema, problems: Problems) -> None:
    """Note a table without a name, an event time that it cannot have, and columns that are taken for nothing."""
    if not source.table.strip():
        problems.note(
            "source.table",
            source.origin,
            "The source names no table.",
            'for example: table="/lake/orders", or the URL of a folder in a bucket.',
        )
    if source.event_time == PROCESSING_TIME:
        problems.note(
            "source.event_time",
            source.origin,
            "Rows of a table have no processing time.",
            "name a column, or _kafka_timestamp, which is when a row's version was committed.",
        )
    known = [*(each.name for each in schema.fields), *OF_RECORD]
    for name in (each for each in source.columns if each not in known):
        problems.note(
            "source.columns",
            source.origin,
            f"There is no field {name!r}.",
            f"name one of {', '.join(known)}: the field is before the colon, the table's column after it.",
        )
