"""The stream's side of schema registries: schemas that records name are asked for once, and kept for everybody else."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from seamline.kafka.registry_connection import read_registry_connection
from seamline.kafka.schema_registry import SchemaRegistry
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.schemas.kept_schemas import (
    KeptSchemas,
    begin_registry,
    find_newest_schemas,
    is_schema_kept,
    keep_schema,
    list_begun_topics,
)
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.formats import registry_of
from seamline.model.errors import RegistryRefused, RegistryUnavailable
from seamline.model.schemas.wire_format import HEADER, LARGEST_ID, read_schema_id

log = logging.getLogger("seamline.stream")
ASK_AGAIN = 30.0
"""Seconds for which a number stays unknown that a registry did not know."""
MOST_NAMED = 100_000
"""How many different beginnings of values are looked at."""
COMPARED = 3
"""How many of the schemas that are kept a registry is compared by."""
MOST_UNKNOWN = 10_000
"""How many numbers are known to be unknown; more are asked for again."""


def require_registry_connections(pipeline: CompiledPipeline) -> None:
    """Require that there is a connection to each registry; ConnectionMissing."""
    for name in pipeline.definition.registries:
        read_registry_connection(name)


def find_named_schemas(spark: SparkSession, layout: Layout, topics: Sequence[str]) -> list[int]:
    """Find the numbers of schemas that the records of topics name in the log, accepted or refused."""
    found: set[int] = set()
    for place in ("master", "quarantine"):
        if not Table.exists(layout.table(place)):
            continue
        table = Table.open(layout.table(place))
        rows = spark.read.format("delta").option("versionAsOf", table.version).load(str(table.root))
        heads = rows.where(f.col("_topic").isin(*topics)).select(
            f.substring("_value", 1, HEADER).alias("head")
        )
        values = heads.distinct().limit(MOST_NAMED).toArrow()["head"].to_pylist()
        found |= {id for value in values if value and (id := read_schema_id(value)) is not None}
    return sorted(id for id in found if id <= LARGEST_ID)


class Registries:
    """The registries of one driver's pipeline; without any nothing is asked or kept."""

    def __init__(
        self, pipeline: CompiledPipeline, layout: Layout, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.pipeline, self.layout = pipeline, layout
        self.folder, self.clock = layout.schemas, clock
        self.registries = {name: SchemaRegistry(name) for name in pipeline.definition.registries}
        self.unknown: dict[tuple[str, int], float] = {}
        self.wanted: dict[str, list[int]] = {}
        """What tasks lack and no registry has answered yet."""
        self.compared_again = 0.0
        self.uncompared = set(self.registries)
        """Registries that this driver has not compared with what is kept of them."""

    def begin(self, spark: SparkSession) -> None:
        """Keep what the log's records of topics name of a registry that these topics did not have before.

        Their source may have got it, or its connection another name, since they were read. RegistryUnavailable.
        """
        for source in self.pipeline.definition.sources:
            if name := registry_of(source.format):
                begun = list_begun_topics(self.folder, name)
                if new := [topic for topic in source.topics if topic not in begun]:
                    self.ask(name, find_named_schemas(spark, self.layout, new))
                    begin_registry(self.folder, name, new)

    def forget_unknown(self) -> None:
        """Forget which numbers a registry did not know a while ago: they are asked for again.

        Not between two attempts at the same records, which would never end if there are many.
        """
        now = self.clock()
        kept = [each for each in self.unknown.items() if each[1] > now]
        self.unknown = dict(kept[-MOST_UNKNOWN:])

    def current_schemas(self) -> KeptSchemas | None:
        """Return what tasks read by; None where there is no registry.

        What tasks lack is asked for before, and raised as RegistryUnavailable or RegistryRefused: no task reads
        records in vain while a registry is away.
        """
        if not self.registries:
            return None
        if self.uncompared and self.clock() >= self.compared_again:
            self.compared_again = self.clock() + ASK_AGAIN
            for name in list(self.uncompared):
                with suppress(RegistryUnavailable):
                    self.compare(name)
        for name in list(self.wanted):
            self.ask(name, self.wanted[name])
            del self.wanted[name]
        return KeptSchemas(self.folder, frozenset(self.unknown), final=False)

    def want(self, wanted: Mapping[str, Iterable[int]]) -> bool:
        """Remember what tasks lack; return whether any of it is worth asking for.

        What is kept or unknown by now is not: that would go on for ever.
        """
        for name, ids in wanted.items():
            new = [
                id
                for id in ids
                if (name, id) not in self.unknown and not is_schema_kept(self.folder, name, id)
            ]
            if name in self.registries and new:
                self.wanted[name] = new
        return bool(self.wanted)

    def compare(self, name: str) -> bool:
        """Return whether a registry still has one of the newest schemas that are kept of it, or none is kept.

        Raises RegistryRefused where an id means another schema now, as records would be read by the wrong one, and
        RegistryUnavailable.
        """
        kept = find_newest_schemas(self.folder, name, COMPARED)
        for each in kept:
            found = self.registries[name].find_schema(each.id)
            if found and (found.kind, found.text) != (each.kind, each.text):
                raise RegistryRefused(
                    f"Schema {each.id} of the registry {name!r} is another one than that which is kept.",
                    hint="its connection names another registry now: give that one a connection of its own, and name "
                    "it in the definition.",
                )
            if found:
                break
        else:
            if kept:
                return False
        self.uncompared.discard(name)
        return True

    def ask(self, name: str, ids: Iterable[int]) -> None:
        """Ask a registry for schemas: those that it has are kept, the others are unknown for ``ASK_AGAIN`` seconds.

        Raises RegistryUnavailable and RegistryRefused.
        """
        same = None
        for id in ids:
            found = self.registries[name].find_schema(id)
            if found is None and same is None and not (same := self.compare(name)):
                raise RegistryUnavailable(
                    f"The schema registry {name!r} has neither schema {id} nor those that it had before.",
                    hint="records wait: restore what it has lost, or let its connection name the one that it was.",
                )
            if found is None:
                log.warning("The registry %s has no schema %s: records that name it are refused", name, id)
                self.unknown[name, id] = self.clock() + ASK_AGAIN
            else:
                keep_schema(self.folder, name, found)
                log.info("Schema %s of the registry %s (%s) is read from now on", id, name, found.kind)
