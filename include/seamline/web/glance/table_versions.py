"""Which versions tables were at when something was read of them: while they stay so, it need not be read again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.store.locations import Location
from seamline.lake.tables.reprocessed import Reprocessed
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.recent import Recent

T = TypeVar("T")
TABLES = (
    "ledger",
    "master",
    "quarantine",
    "control",
    "manifest",
    "certificates",
    "comparisons",
    "audits",
    "builds",
)
"""The tables that completeness, certificates, comparisons, audits and builds are read of."""
PIPELINES = 8
"""Pipelines of which a server process remembers what their pages show: thousands of intervals each."""


@dataclass(frozen=True)
class TableVersions:
    """What was seen, before anything was read of it."""

    definition: CompiledPipeline
    """The definition, which is compiled once for as long as its file does not change."""
    versions: tuple[tuple[Location, int | None], ...]
    """Each table with its version; None for one that is not there."""

    @classmethod
    def of(cls, pipeline: CompiledPipeline, layout: Layout) -> Self:
        """Ask each table for its newest version; slices of derived rows and verdicts come by themselves."""
        live = add_live_versions(pipeline, layout).views
        roots = [
            *(layout.table(name) for name in TABLES),
            layout.records(Reprocessed(pipeline, layout).hash) / "verdicts",
            *(layout.slices(view) for view in live if view.derived),
        ]
        return cls(pipeline, tuple((root, read_version(root)) for root in roots))

    def are_still(self, pipeline: CompiledPipeline) -> bool:
        """Return whether nothing has changed."""
        return self.definition is pipeline and all(read_version(root) == held for root, held in self.versions)


def read_version(root: Location) -> int | None:
    """Read the version of a table; None if it is not there."""
    return read_cached_table(root, "version", lambda table: table.version)


@dataclass(frozen=True)
class Remembered(Generic[T]):
    """What was read of tables."""

    versions: TableVersions
    """The tables."""
    found: T
    """What was read."""


class Memory(Generic[T]):
    """Reads something of a pipeline again only if its tables have changed; for the pipelines asked for last."""

    def __init__(self, read: Callable[[CompiledPipeline, Layout], T]) -> None:
        self.read = read
        self.known: Recent[Any, Remembered[T]] = Recent(PIPELINES)

    def find(self, pipeline: CompiledPipeline, layout: Layout) -> T:
        """Return what there is to be read."""
        place = layout.table("")
        held = self.known.get(place)
        if held is None or not held.versions.are_still(pipeline):
            # Asked for before the tables are read: what comes meanwhile is read the next time.
            versions = TableVersions.of(pipeline, layout)
            held = self.known[place] = Remembered(versions, self.read(pipeline, layout))
        return held.found
