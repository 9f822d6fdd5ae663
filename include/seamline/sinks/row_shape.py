"""What rows of a view are in a target: which columns tell them apart, and which are shown."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from seamline.model.compile.compiled_pipeline import GROUPING, CompiledView
from seamline.model.types.schema import BIGINT, BOOLEAN, STRING, TIMESTAMP, Field, parse_type

BOUNDS = ("window_start", "window_end")


@dataclass(frozen=True)
class RowShape:
    """The rows of one version of a view: columns of its serving table, without states and without Delta's own."""

    fingerprint: str
    """The version of the view."""
    identity: tuple[str, ...]
    """The columns by which a row is told from others: the grouping set where there are several, the keys, and the
    bounds of the window."""
    columns: tuple[Field, ...]
    """All columns that a target has, those of the identity first."""

    @classmethod
    def of(cls, view: CompiledView) -> RowShape:
        """Return the rows of a view: no state of a sketch, and its interval as the instant at which it starts."""
        grouping = [Field(GROUPING, STRING)] if view.grouped else []
        bounds = [Field(name, TIMESTAMP) for name in BOUNDS]
        identity = [*grouping, *view.keys, *bounds]
        decorations = [field for join in view.decorations for _, field in join.columns]
        measures = [Field(each.name, parse_type(each.result, each.name)) for each in view.measures]
        told = [
            *(Field(name, STRING) for name in view.beyond),
            *(Field(name, BIGINT) for name in ("batch_part", "speed_part", "epoch", "manifest_version")),
            *(Field(name, BOOLEAN) for name in ("certified", "complete")),
            Field("phase", STRING),
            Field("interval", TIMESTAMP),
        ]
        return cls(
            view.fingerprint,
            tuple(each.name for each in identity),
            (*identity, *decorations, *measures, *told),
        )

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [field.name for field in self.columns]

    @property
    def keys(self) -> tuple[Field, ...]:
        """The columns of the identity."""
        return self.columns[: len(self.identity)]

    def name_identity(self, deletions: pa.Table) -> pa.Table:
        """Return rows that are gone with the names that they have in the target."""
        return deletions.rename_columns(list(self.identity))
