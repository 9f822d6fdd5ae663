"""The comparisons table: what each generation changed of what was answered before."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.model.protocol.comparison import Comparison

SCHEMA = pa.schema(
    [
        ("view", pa.string()),
        ("interval", pa.string()),
        ("generation", pa.string()),
        ("at", INSTANT),
        ("differing", pa.int64()),
        ("alarm", pa.string()),
        ("row", pa.string()),
    ]
)


class Comparisons:
    """Append-only; ``row`` is the whole comparison as JSON."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @classmethod
    def ensure(cls, layout: Layout) -> Comparisons:
        """Open the comparisons; create them if missing."""
        return cls(Table.ensure(layout.table("comparisons"), SCHEMA))

    def append(self, found: Sequence[Comparison]) -> None:
        """Append what a run's generations change, in one commit."""
        if not found:
            return
        rows = [
            {
                "view": each.view,
                "interval": each.interval,
                "generation": each.generation,
                "at": each.at,
                "differing": each.differing,
                "alarm": each.alarm,
                "row": each.to_json(),
            }
            for each in found
        ]
        written = pa.Table.from_pylist(rows, schema=SCHEMA)
        self.table.append(
            [data_files.write_data_file(written, self.table.root, f"{uuid.uuid4().hex}.parquet")]
        )

    def of(self, view: str, interval: str = "") -> list[Comparison]:
        """List those of a view version (``name/fingerprint``), or of one interval of it; oldest first."""
        condition = pc.field("view") == view
        if interval:
            condition &= pc.field("interval") == interval
        rows = (
            self.table.refresh().handle.to_pyarrow_dataset().to_table(columns=["at", "row"], filter=condition)
        )
        return [Comparison.from_json(text) for text in rows.sort_by("at")["row"].to_pylist()]

    def of_generations(self, ids: Collection[str]) -> list[Comparison]:
        """List those of some generations; oldest first."""
        if not ids:
            return []
        dataset = self.table.refresh().handle.to_pyarrow_dataset()
        rows = dataset.to_table(columns=["at", "row"], filter=pc.field("generation").isin(sorted(ids)))
        return [Comparison.from_json(text) for text in rows.sort_by("at")["row"].to_pylist()]


def list_unexplained(layout: Layout, view: str) -> Mapping[str, str]:
    """List the intervals of a view version with a change that nothing explains, in its newest comparison, and what."""
    found = read_cached_table(
        layout.table("comparisons"), ("alarms", view), lambda table: find_alarms(table, view)
    )
    return found or {}


def find_alarms(table: Table, view: str) -> Mapping[str, str]:
    """Find them by the columns alone."""
    dataset = table.handle.to_pyarrow_dataset()
    rows = dataset.to_table(columns=["interval", "at", "alarm"], filter=pc.field("view") == view).sort_by(
        "at"
    )
    newest = dict(zip(rows["interval"].to_pylist(), rows["alarm"].to_pylist(), strict=True))
    return {interval: alarm for interval, alarm in newest.items() if alarm}


def comparisons_of(layout: Layout, view: str, interval: str = "") -> list[Comparison]:
    """List what is known of a view version; none if there is no table, which is not made for it."""
    exists = Table.exists(layout.table("comparisons"))
    return Comparisons.ensure(layout).of(view, interval) if exists else []
