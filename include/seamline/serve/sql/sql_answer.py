"""The answer to a question in SQL: rows, and how far each view that they are made of is right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from seamline.lake.read.answers import Answer
from seamline.model.errors import BadRange


@dataclass(frozen=True)
class SqlAnswer:
    """Rows, and what they are made of."""

    rows: pa.Table
    """At most as many as were asked for."""
    more: bool
    """Whether the statement gives more rows than these."""
    views: tuple[Answer, ...]
    """How far each view is right, by name; the tables in them have no rows."""

    @property
    def final(self) -> bool:
        """Whether nothing that any of the views says can change, unless by a correction."""
        return all(each.final for each in self.views)

    def serialize(self) -> dict[str, Any]:
        """Return it as JSON has it: the rows, whether there are more, and how far each view is right."""
        with writing_values():
            rows = self.rows.to_pylist()
        return {
            "rows": rows,
            "more": self.more,
            "final": self.final,
            "views": [
                {
                    "view": each.view,
                    "version": each.version,
                    "epoch": each.epoch,
                    "complete_to": each.complete_to,
                    "manifest_version": each.manifest_version,
                    "final": each.final,
                    "summary": each.summary(),
                }
                for each in self.views
            ],
        }


@contextmanager
def writing_values() -> Iterator[None]:
    """Say what to do about values of DuckDB that Python does not have, while the block writes an answer.

    These are infinite dates, years outside 1 to 9999, and nanoseconds. Raises BadRange.
    """
    try:
        yield
    except (OverflowError, ValueError, TypeError) as problem:
        raise BadRange(
            f"A value of the answer cannot be written: {problem}.",
            hint="dates and times are written from year 1 to 9999, to the microsecond; cast others to VARCHAR.",
        ) from problem


def narrow_nanoseconds(rows: pa.Table) -> pa.Table:
    """Return rows with instants to the microsecond; ValueError for one that is none.

    Arrow gives Python others as those of pandas where that is installed, and refuses them where it is not.
    """
    fields = [
        field.with_type(pa.timestamp("us", field.type.tz))
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns"
        else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))
