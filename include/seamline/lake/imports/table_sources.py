"""The Delta tables that a pipeline reads: their lanes, and what there is of each from some offset on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from seamline.lake.imports.import_options import ImportOptions
from seamline.lake.imports.import_plans import staging_folder
from seamline.lake.imports.table_versions import TableNews, TableVersions
from seamline.lake.storage.layout import Layout
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.sources import DeltaSource
from seamline.model.errors import BadRange
from seamline.model.protocol.offsets import Lane, Vector
from seamline.model.types.schema import Schema


class TableSources:
    """The tables of a pipeline; nothing is asked of a store before something is asked here.

    What is asked raises NotFound without a table, BadRange for one that cannot be read, and StoreUnavailable.
    """

    def __init__(self, pipeline: Pipeline, layout: Layout) -> None:
        self.sources, self.staging = pipeline.tables, staging_folder(layout)

    @cached_property
    def versions(self) -> Mapping[Lane, TableVersions]:
        """The tables, each by the lane of its rows."""
        found = [TableVersions(each, make_table_options(each), self.staging) for each in self.sources]
        return {each.lane: each for each in found}

    @property
    def ids(self) -> Mapping[str, str]:
        """The ids of the lanes, by the names by which records are known."""
        return {each.options.topic: lane.topic_id for lane, each in self.versions.items()}

    def look(self, held: Vector) -> dict[Lane, TableNews]:
        """Look at what comes of each table after the rows that are read, up to the offsets that are ``held``."""
        return {lane: each.look(held.get(lane)) for lane, each in self.versions.items()}

    def fetch_beginnings(self, held: Vector) -> dict[Lane, int]:
        """Return from which offset on each table can be read; above what is ``held`` where a version cannot be."""
        return {lane: news.beginning for lane, news in self.look(held).items()}

    def fetch_ends(self, held: Vector) -> dict[Lane, int]:
        """Return the end of what each table has to be read next; where that cannot be read there is nothing."""
        return {lane: news.end for lane, news in self.look(held).items()}

    def require_readable(self, held: Vector) -> None:
        """Raise BadRange where nothing of a table was read yet, and its newest version cannot be."""
        for lane, news in self.look(held).items():
            if news.lost and lane not in held:
                raise BadRange(
                    f"Reading {self.versions[lane].source.table!r} cannot begin: {news.lost}",
                    hint="make the newest version of the table readable, or read another table.",
                )

    def find_last_ends(self, held: Vector) -> dict[Lane, int]:
        """Return the end of all that each table has now."""
        return {lane: each.find_last_end(held.get(lane)) for lane, each in self.versions.items()}


def make_table_options(source: DeltaSource) -> ImportOptions:
    """Return how a row of a table becomes a record."""
    fields = Schema.parse(source.schema).fields
    named = source.event_time if any(each.name == source.event_time for each in fields) else ""
    text = {"STRING", "DATE", "TIMESTAMP", "BINARY"}
    return ImportOptions(
        source.topics[0],
        tuple(source.columns.items()),
        named,
        bare=tuple(each.name for each in fields if each.type.spark not in text),
    )
