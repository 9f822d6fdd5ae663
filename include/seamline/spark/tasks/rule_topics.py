"""The look-ups of a stream: tables that somebody keeps, and tables of rules that its own topics make, epoch by epoch.

The table of an epoch is that of the epoch before with the rules of its own range on top. The master's commit names it,
so that whoever comes after goes on from there, whatever an attempt that died has written or remembered (rule 23).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from seamline.kernel.epoch_kernel import open_worker_duckdb
from seamline.kernel.rule_tables import list_rule_tables
from seamline.lake.store.locations import Location
from seamline.lake.tables.lookups.lookup_tables import Lookups
from seamline.lake.tables.lookups.rule_versions import count_rules, keep_rule_version, read_rules
from seamline.lake.tables.schemas.kept_schemas import KeptSchemas
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.lookups.named_versions import named_last
from seamline.model.protocol.epoch import Epoch
from seamline.plan.stream.rule_counts import RuleCount
from seamline.spark.tasks.rule_history import RuleHistory


class RuleTopics:
    """The versions of all look-ups as the next epoch finds them; ``lookups`` are those that somebody keeps."""

    def __init__(self, pipeline: CompiledPipeline, lookups: Lookups, spark: SparkSession) -> None:
        self.pipeline, self.lookups, self.spark = pipeline, lookups, spark
        self.tables = list_rule_tables(pipeline)
        self.topics = frozenset(topic for each in self.tables for topic in each.source.source.topics)
        self.held: dict[str, str] = {}
        self.counts: dict[str, RuleCount] = {}
        self.history = RuleHistory(spark, pipeline, lookups.layout)

    def resume(self, log: Sequence[Epoch]) -> None:
        """Go on from what the last epoch of the log names, or read the log where it was read by other rules."""
        named = named_last(log, self.pipeline.record_version)
        kept = (
            each.name in named and self.lookups.layout.lookup(each.name, named[each.name]).exists()
            for each in self.tables
        )
        self.hold(named if all(kept) else self.history.finish())

    def hold(self, versions: Mapping[str, str]) -> None:
        """Go on from the versions that an epoch of the master names."""
        before, self.held = self.held, {each.name: versions[each.name] for each in self.tables}
        for each in self.tables:
            if before.get(each.name) != (version := self.held[each.name]):
                path = self.lookups.layout.lookup(each.name, version)
                self.counts[each.name] = count_rules(each.join, read_rules(path))

    def current_versions(self) -> Mapping[str, str]:
        """Return the version of each look-up before the next epoch's own rules."""
        return {**self.lookups.current_versions(), **self.held}

    def version_paths(self, versions: Mapping[str, str]) -> dict[str, Location]:
        """Return the file of each version."""
        return self.lookups.version_paths(versions)

    def fold(self, raw: pa.Table, kept: KeptSchemas | None = None) -> Mapping[str, str]:
        """Return the versions with the rules of an epoch's raw records, which have ``COORDINATES``, on top.

        ``kept`` has the writers' schemas of registries.

        They are on disk; nothing is remembered until an epoch names them.
        """
        found, layout = dict(self.held), self.lookups.layout
        for each in self.tables:
            held = read_rules(layout.lookup(each.name, self.held[each.name]))
            after = each.fold(open_worker_duckdb(), held, raw, kept)
            if not after.equals(held):
                found[each.name] = keep_rule_version(each.name, after, layout)
        return found
