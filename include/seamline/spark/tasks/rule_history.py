"""Tables of rules as epochs of the log have met them, made again of its records for another definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from seamline.kernel.epoch_kernel import open_worker_duckdb
from seamline.kernel.halving import UNREADABLE
from seamline.kernel.rule_tables import list_rule_tables
from seamline.lake.log.epoch_log import each_epoch
from seamline.lake.log.master import Master
from seamline.lake.storage.arrow_types import COORDINATES
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.lookups.rule_versions import keep_rule_version
from seamline.lake.tables.schemas.kept_schemas import open_kept_schemas
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.seam import NOTHING

MOST = 50_000
"""Records that are in this process at a time."""
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
        wanted, at = {each.number for each in epochs}, iter(sorted(each.number for each in epochs))
        waiting = next(at, None)
        for found in self.read(last):
            for number in sorted({*pc.unique(found["_epoch"]).to_pylist()}):
                while waiting is not None and waiting < number:
                    self.met.setdefault(waiting, self.keep())
                    waiting = next(at, None)
                self.take(found.filter(pc.equal(found["_epoch"], number)))
        while waiting is not None:
            self.met.setdefault(waiting, self.keep())
            waiting = next(at, None)
        return {number: self.met[number] for number in wanted}

    def finish(self) -> Versions:
        """Return the versions that the next epoch begins with; of a log that has grown only the rest is read."""
        last = max((each.number for each in each_epoch(self.layout)), default=NOTHING)
        for found in self.read(last) if self.tables else ():
            self.take(found)
        return self.keep()

    def take(self, raw: pa.Table) -> None:
        """Take raw records in."""
        kept = open_kept_schemas(self.layout)
        for each in self.tables:
            after = each.fold(open_worker_duckdb(), self.held[each.name], raw, kept, halving=True)
            if not after.equals(self.held[each.name]):
                self.held[each.name] = after
                self.kept.pop(each.name, None)

    def keep(self) -> Versions:
        """Keep the versions that hold now on disk, and return them."""
        for each in self.tables:
            if each.name not in self.kept:
                self.kept[each.name] = keep_rule_version(each.name, self.held[each.name], self.layout)
        return dict(self.kept)

    def read(self, until: int) -> Iterator[pa.Table]:
        """Yield the records of the topics in epochs up to one that were not read yet, accepted or refused.

        Some epochs come at a time, as many as memory has room for. A record that has ended its process is passed over:
        it was refused then, and would end this one.
        """
        if until <= self.until:
            return
        master, quarantine = Master.open(self.layout).table, Table.open(self.layout.table("quarantine"))
        rows = (
            self.select_records(quarantine).where(f.col("_reason") != UNREADABLE).select(*COORDINATES.names)
        )
        rows = rows.unionByName(self.select_records(master).select(*COORDINATES.names))
        rows = rows.where((f.col("_epoch") > self.until) & (f.col("_epoch") <= until))
        read = {each.number for each in each_epoch(self.layout) if each.kind is EpochKind.READ}
        counts = {row["_epoch"]: row["count"] for row in rows.groupBy("_epoch").count().collect()}
        for numbers in group_epochs({number: counts[number] for number in sorted(counts) if number in read}):
            found = rows.where(f.col("_epoch").between(numbers[0], numbers[-1])).toArrow().cast(COORDINATES)
            yield found.filter(pc.is_in(found["_epoch"], pa.array(numbers, pa.int64())))
            self.until = numbers[-1]
        self.until = until

    def select_records(self, table: Table) -> DataFrame:
        """Select the records of the topics in one table."""
        rows = self.spark.read.format("delta").option("versionAsOf", table.version).load(str(table.root))
        return rows.where(f.col("_topic").isin(self.topics))


def group_epochs(counts: Mapping[int, int], most: int = MOST) -> Iterator[list[int]]:
    """Group epochs, in order, so that each group but those of one epoch has ``most`` records at most."""
    group, size = list[int](), 0
    for number, count in counts.items():
        if group and size + count > most:
            yield group
            group, size = [], 0
        group.append(number)
        size += count
    if group:
        yield group
