"""Tables of rules made of records: the kernel says which are rules, and the newest of each key make the table."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.epoch_kernel import validate_source_records
from seamline.kernel.formats import open_readers
from seamline.kernel.halving import UNREADABLE, validate_by_halves
from seamline.kernel.kernel_config import configure_validation
from seamline.kernel.validation import REPEATED
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.tables.lookups.lookup_tables import columns_of
from seamline.lake.tables.lookups.rule_versions import IN_FORCE, PLACE, fold_rules, rules_schema
from seamline.lake.tables.schemas.kept_schemas import KeptSchemas
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.lookups.lookup_join import LookupJoin
from seamline.model.compile.record_rules import SELECTED

log = logging.getLogger("seamline.lookups")
CHUNK = 50_000
"""Records that are validated at once."""
AT = "number of the record"
"""The place of a record among those that were read."""


@dataclass(frozen=True)
class RuleTable:
    """The table that the records of one source make for one look-up."""

    join: LookupJoin
    """The look-up."""
    source: CompiledPipeline
    """The source alone."""

    @property
    def name(self) -> str:
        """The look-up's name."""
        return self.join.name

    @property
    def empty(self) -> pa.Table:
        """The version of before the first rule."""
        return rules_schema(self.join).empty_table()

    def fold(
        self,
        con: duckdb.DuckDBPyConnection,
        held: pa.Table,
        raw: pa.Table,
        kept: KeptSchemas | None = None,
        *,
        halving: bool = False,
    ) -> pa.Table:
        """Return the version that follows ``held`` when the raw records of epochs are taken in.

        ``raw`` has ``COORDINATES``, and ``kept`` the writers' schemas of a registry.
        Records of other topics than the source's are passed over. The first record of a
        topic that was created again ends all rules of the one before. What the kernel raises is raised, or with
        ``halving`` takes the record out that it is about, and is logged.
        """
        raw = raw.filter(pc.is_in(raw["_topic"], pa.array(self.source.source.topics, pa.string())))
        raw = raw.sort_by([(name, "ascending") for name in ("_epoch", "_topic", "_partition", "_offset")])
        newest = dict(zip(raw["_topic"].to_pylist(), raw["_topic_id"].to_pylist(), strict=True))
        held = drop_closed_topics(held, newest, PLACE["_topic"], PLACE["_topic_id"])
        raw = drop_closed_topics(raw, newest, "_topic", "_topic_id")
        raw = raw.append_column(AT, pa.arange(0, raw.num_rows))
        found = [
            self.read_rules(con, raw.slice(at, CHUNK), kept, halving) for at in range(0, raw.num_rows, CHUNK)
        ]
        rules = pa.concat_tables([self.schema.empty_table(), *found])
        return fold_rules(held, rules, count_before_removal(raw, rules), self.join)

    def read_rules(
        self, con: duckdb.DuckDBPyConnection, raw: pa.Table, kept: KeptSchemas | None, halving: bool
    ) -> pa.Table:
        """Return the rules among raw records, in their order; one that is not selected has no name."""
        config = configure_validation(self.source)
        [reader] = open_readers(self.source, kept)
        if self.source.record.dedup:
            raw = raw.append_column(REPEATED, pa.repeat(pa.scalar(False), raw.num_rows))
        # A rule's event time is in no view: the time of processing is only one that a task would accept, too.
        now = pa.scalar(datetime.now(UTC), INSTANT)
        raw = raw.append_column("_processing_time", pa.repeat(now, raw.num_rows))

        def judge(some: pa.Table) -> tuple[pa.Table, pa.Table]:
            return validate_source_records(con, some, config, reader)

        found = [self.schema.empty_table()]
        for accepted, refused in validate_by_halves(raw, judge) if halving else [judge(raw)]:
            if accepted.num_rows:
                found.append(self.shape(accepted))
            for row in refused.filter(pc.equal(refused["_reason"], UNREADABLE)).to_pylist():
                place = f"{row['_topic']}/{row['_partition']}@{row['_offset']}"
                log.error("The rule at %s cannot be read again: %s", place, row["_detail"])
        return pa.concat_tables(found)

    def shape(self, accepted: pa.Table) -> pa.Table:
        """Return accepted rows as a version has them, with their places among the records."""
        columns = [accepted[name] for name in PLACE]
        named = self.join.columns[0][1].name
        for loaded, name, _ in columns_of(self.join):
            field = self.source.schema.field(name)
            assert field is not None
            values = accepted[field.name]
            if loaded == named and self.source.record.selective:
                values = pc.if_else(accepted[SELECTED], values, pa.scalar(None, values.type))
            columns.append(values)
        return pa.table([*columns, accepted[AT]], names=self.schema.names).cast(self.schema)

    @property
    def schema(self) -> pa.Schema:
        """The columns of rules that were read: those of a version, and their places."""
        kept = [field for field in rules_schema(self.join) if field.name != IN_FORCE]
        return pa.schema([*kept, pa.field(AT, pa.int64())])


def drop_closed_topics(rows: pa.Table, newest: Mapping[str, str], topic: str, topic_id: str) -> pa.Table:
    """Drop the rows of topics that were created again; ``newest`` has the id by a topic's name.

    ``topic`` and ``topic_id`` are columns.
    """
    names, ids = list(newest), list(newest.values())
    now = pc.take(pa.array(ids, pa.string()), pc.index_in(rows[topic], pa.array(names, pa.string())))
    return rows.filter(pc.fill_null(pc.equal(rows[topic_id], now), True))


def count_before_removal(raw: pa.Table, rules: pa.Table) -> dict[bytes, int]:
    """Return, for each key that has a tombstone, how many of the rules were read before its last one."""
    gone = raw.filter(pc.and_(pc.is_null(raw["_value"]), pc.is_valid(raw["_key"])))
    last = dict(zip(gone["_key"].to_pylist(), gone[AT].to_pylist(), strict=True))
    places = rules[AT].to_numpy()
    return {key: int(places.searchsorted(at)) for key, at in last.items()}


def list_rule_tables(pipeline: CompiledPipeline) -> tuple[RuleTable, ...]:
    """List the tables of rules that sources of a pipeline make."""
    alone = {each.source.name: each for each in pipeline.by_source} if pipeline.alone else {}
    return tuple(RuleTable(join, alone[join.of]) for join in pipeline.lookups if join.of)
