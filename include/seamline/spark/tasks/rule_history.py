"""Tables of rules as epochs of the log have met them, made again of its records for another definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from seamline.kernel.epoch_kernel import open_worker_duckdb
from seamline.kernel.rule_tables import list_rule_tables
from seamline.lake.log.epoch_log import each_epoch
from seamline.lake.log.master import Master
from seamline.lake.storage.arrow_types import COORDINATES
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.lookups.rule_versions import keep_rule_version
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.seam import NOTHING

Versions = Mapping[str, str]
"""The version of each table of rules, by the look-up's name."""


class RuleHistory:
    """Goes through the log once, from its first epoch on.

    What fills a hole changes no table: it is older than what has been read since.
    """

    def __init__(self, spark: SparkSession, pipeline: CompiledPipeline, layout: Layout) -> None:
        self.spark, self.layout = spark, layout
        self.tables = list_rule_tables(pipeline)
        self.topics = sorted({topic for each in self.tables for topic in each.source.source.topics})
        self.held = {each.name: each.empty for each in self.tables}
        self.kept: dict[str, str] = {}
        self.met: dict[int, Versions] = {}
        self.until = NOTHING

    def list_met(self, epochs: Sequence[Epoch]) -> Mapping[int, Versions]:
        """Return the versions that the records of some epochs have met, by the epochs' numbers.

        They are in order, and none is before the first of an earlier call.
        """
        if not self.tables or not epochs:
            return {each.number: {} for each in epochs}
        first, last = epochs[0].number, epochs[-1].number
        self.met = {number: met for number, met in self.met.items() if number >= first}
        wanted = {each.number for each in epochs}
        between = [each for each in each_epoch(self.layout) if self.until < each.number <= last]
        found = self.read(last)
        bringing = {*pc.unique(found["_epoch"]).to_pylist()}
        for epoch in between:
            if epoch.number in bringing and epoch.kind is EpochKind.READ:
                self.take(found.filter(pc.equal(found["_epoch"], epoch.number)))
            if epoch.number in wanted:
                self.met[epoch.number] = self.keep()
        return {number: self.met[number] for number in wanted}

    def finish(self) -> Versions:
        """Return the versions that the next epoch begins with; the whole log is taken in at one step."""
        numbers = [each.number for each in each_epoch(self.layout) if each.kind is EpochKind.READ]
        if self.tables and numbers:
            found = self.read(numbers[-1])
            self.take(found.filter(pc.is_in(found["_epoch"], pa.array(numbers, pa.int64()))))
        return self.keep()

    def take(self, raw: pa.Table) -> None:
        """Take raw records in."""
        for each in self.tables:
            after = each.fold(open_worker_duckdb(), self.held[each.name], raw)
            if not after.equals(self.held[each.name]):
                self.held[each.name] = after
                self.kept.pop(each.name, None)

    def keep(self) -> Versions:
        """Keep the versions that hold now on disk, and return them."""
        for each in self.tables:
            if each.name not in self.kept:
                self.kept[each.name] = keep_rule_version(each.name, self.held[each.name], self.layout)
        return dict(self.kept)

    def read(self, until: int) -> pa.Table:
        """Read the records of the topics in epochs up to one that were not read yet, accepted or refused."""
        if until <= self.until:
            return COORDINATES.empty_table()
        found = [
            self.read_table(table, until)
            for table in (Master.open(self.layout).table, Table.open(self.layout.table("quarantine")))
        ]
        self.until = until
        return pa.concat_tables(found)

    def read_table(self, table: Table, until: int) -> pa.Table:
        """Read what one table has of them."""
        rows = self.spark.read.format("delta").option("versionAsOf", table.version).load(str(table.root))
        within = (f.col("_epoch") > self.until) & (f.col("_epoch") <= until)
        mine = rows.where(within & f.col("_topic").isin(self.topics)).select(*COORDINATES.names)
        return mine.toArrow().cast(COORDINATES)
