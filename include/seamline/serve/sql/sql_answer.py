"""The answer to a question in SQL: rows, and how far each view that they are made of is right."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from seamline.lake.read.answers import Answer


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
