"""The generations of a view version: states per key and pane, partitioned by interval, never changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from seamline.lake.storage import data_files, durability
from seamline.lake.storage.arrow_types import generations_schema, late_names
from seamline.lake.storage.commit_conflicts import retry_overtaken
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.parquet_files import read_plain_columns
from seamline.lake.storage.table_cache import Files
from seamline.lake.store.fetched_files import localize_files
from seamline.lake.store.locations import Location, path_below
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.errors import Conflict
from seamline.model.time.intervals import Interval
from seamline.plan.maintain.unneeded import parse_build_start

CLOSED = "seamline.closed"
"""App id: no build that began up to this second since 1970 commits here any more; every build's commit carries it."""
INTERVAL, FILE = "interval", "__filename"
"""The partition column, which no file has, and what Arrow calls the path that a row was read from."""


@dataclass(frozen=True)
class Volume:
    """The size of a generation, or of one interval of it."""

    rows: int
    """Rows in the table."""
    state_rows: int
    """Records counted in those rows."""


class Generations:
    """Written by builds, each in one commit; what a reader may use of them is the manifest's word."""

    def __init__(self, table: Table, view: CompiledView) -> None:
        self.table = table
        self.view = view

    @classmethod
    def ensure(cls, layout: Layout, view: CompiledView) -> Generations:
        """Open the generations of a view version; create them if missing."""
        schema = generations_schema(view)
        table = Table.ensure(layout.generations(view), schema, partition_by=["interval"])
        return cls(table.holding(schema, late=late_names(view)), view)

    def folder(self, generation: str) -> Location:
        """Return the folder in which one generation's files are written before their commit."""
        return self.table.root / generation

    def append(self, written: Iterable[tuple[Location, Interval]]) -> dict[str, Volume]:
        """Commit files that are below the table's folder, all at once; return the volume per interval id.

        The files have every column but ``interval``. Raises Conflict if upkeep has given the build up meanwhile.
        """
        described = []
        for path, interval in written:
            name = path_below(path, self.table.root)
            file = data_files.describe_data_file(self.table.root, name, partition={"interval": interval.id})
            counted = pc.sum(read_plain_columns(path, ["rows"])["rows"]).as_py() or 0
            described.append((file, Volume(file.rows, counted)))
        return self.commit_files(described)

    def commit_files(self, written: Sequence[tuple[data_files.DataFile, Volume]]) -> dict[str, Volume]:
        """Commit files with their volumes, all at once; return the volume per interval id. Raises as ``append``."""
        volumes: dict[str, Volume] = {}
        for file, volume in written:
            known = volumes.get(file.partition["interval"], Volume(0, 0))
            volumes[file.partition["interval"]] = Volume(
                known.rows + volume.rows, known.state_rows + volume.state_rows
            )
        if written:
            self.commit([file for file, _ in written])
        return volumes

    def commit(self, described: list[data_files.DataFile]) -> None:
        """Commit a generation unless the table is closed to it, whatever other builds commit beside it.

        What it was made of is on disk before: a generation of epochs that a power cut takes would count them twice.
        """
        generation = described[0].path.partition("/")[0]
        began = parse_build_start(generation)
        durability.sync_disk(self.table.root)

        def once() -> None:
            closed = self.table.refresh().txn(CLOSED) or 0
            if began is not None and began <= closed:
                raise Conflict(
                    f"Generation {generation} was abandoned: upkeep has deleted its files.",
                    hint="its build held no claim for a day; build it again.",
                )
            self.table.append(described, txns={CLOSED: closed})

        retry_overtaken(once)

    def read(self, generation: str, columns: list[str] | None = None) -> pa.Table:
        """Read one generation with all its intervals (``generations_schema``, or some of its columns).

        Only files that may contain it are looked at: a year of others is in the log alone.
        """
        schema = generations_schema(self.view)
        names = columns or schema.names
        files = Files.of(self.table.refresh())
        if files.actions.num_rows:
            low, high = (side("generation").cast(pa.string()) for side in (files.low, files.high))
            files = files.keep(pc.and_(pc.less_equal(low, generation), pc.greater_equal(high, generation)))
        if not files.actions.num_rows:
            return pa.schema([schema.field(name) for name in names]).empty_table()
        place = schema.get_field_index(INTERVAL)
        paths = localize_files(files.paths)
        dataset = ds.dataset(paths, schema=schema.remove(place), format="parquet", partitioning=None)
        found = dataset.to_table(
            columns=[*(name for name in names if name != INTERVAL), FILE],
            filter=pc.field("generation") == generation,
        )
        of_file = pc.index_in(found[FILE], pa.array(paths, pa.string()))
        interval = pc.take(files.partition(INTERVAL).combine_chunks().cast(pa.string()), of_file)
        return found.append_column(INTERVAL, interval).select(names)
