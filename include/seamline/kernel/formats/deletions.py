"""JSON in which a tombstone is the deletion of a row: its columns are those of the key in Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from seamline.kernel.formats.exact import ExactJsonReader, json_transform_sql
from seamline.kernel.formats.json import JsonReader
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.engine.states import quote_identifier
from seamline.model.definition.debezium import DELETED
from seamline.model.types.schema import BOOLEAN, Field

WRAPPED = "payload"
"""Where Kafka Connect has what it wraps together with a schema."""


class DeletionReader(JsonReader):
    """Makes ``_gone``, whether a record deletes a row, and ``_keyed``, the columns of the key in JSON where it does."""

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that say which row was deleted."""
        assert self.deletion
        return self.deletion.key

    def shaped_sql(self, text: str, shape: Mapping[str, Any]) -> str:
        """Write the members of an object, of which there is one for each in ``shape``."""
        if isinstance(self, ExactJsonReader):
            return json_transform_sql(text, dict(shape))
        return f"json_transform({text}, {quote_literal(json.dumps(shape))})"

    def read_key_sql(self) -> str:
        """Write ``_k``: the key in Kafka of a record that deletes a row, with a schema around it or without."""
        columns = dict.fromkeys(self.key, "JSON")
        text = self.valid_sql("CASE WHEN _gone THEN _key END")
        return f"{self.shaped_sql(text, {WRAPPED: columns, **columns})} AS _k"

    def key_texts(self) -> dict[str, str]:
        """Write each column of the key as JSON."""
        found = {}
        for name in self.key:
            inner = f"_k.{quote_identifier(name)}"
            wrapped = f"_k.{WRAPPED}.{quote_identifier(name)}"
            found[name] = inner if name == WRAPPED else f"coalesce({wrapped}, {inner})"
        return found

    def join_key_sql(self) -> str:
        """Write an object of the columns of the key; NULL where one of them is not known."""
        texts = self.key_texts()
        members = (f"{quote_literal(json.dumps(name) + ':')} || {texts[name]}" for name in self.key)
        joined = " || ',' || ".join(members)
        return f"'{{' || {joined} || '}}'"

    def tombstone_sql(self) -> tuple[str, str]:
        lacking = quote_literal(f"its key in Kafka is no JSON object with {', '.join(self.key)}")
        return "_value IS NULL AND _json IS NULL", lacking

    def told_sql(self, field: Field) -> str:
        """Write what a column says that is no part of a row: whether it was deleted."""
        return "_gone" if field.type == BOOLEAN else "_gone::VARCHAR"


class TombstoneReader(DeletionReader):
    """Reads rows that are objects of JSON, which may say themselves that they were deleted."""

    def open_record(self) -> Iterator[str]:
        yield "_value IS NULL AS _gone"
        yield self.read_key_sql()
        yield f"CASE WHEN _gone THEN {self.join_key_sql()} ELSE {self.valid_sql('_text')} END AS _json"

    def value_sql(self, field: Field, at: int) -> str:
        made = super().value_sql(field, at)
        return (
            f"CASE WHEN _gone THEN {self.gone_sql(field)} ELSE {made} END" if field.name == DELETED else made
        )

    def gone_sql(self, field: Field) -> str:
        """Write what a tombstone says of its row."""
        return "true" if field.type == BOOLEAN else "'true'"


class ChangeReader(TombstoneReader, JsonReader):
    """Reads rows of JSON, and tombstones."""


class ExactChangeReader(TombstoneReader, ExactJsonReader):
    """Reads rows of JSON, numbers by their digits, and tombstones."""
