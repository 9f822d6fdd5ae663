"""How the dull engine validates records: epoch by epoch, and again from its raw records where that was decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path

import duckdb
import pyarrow as pa

from seamline.kernel.epoch_kernel import validate_records as kernel_judged
from seamline.kernel.formats import open_readers
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.marks import PLACE, join_marks
from seamline.kernel.raw import add_coordinates, select_new_records
from seamline.kernel.rule_tables import list_rule_tables
from seamline.lake.storage.arrow_types import COORDINATES
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.lake.tables.lookups.rule_versions import keep_rule_version
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import ProtocolError
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane
from seamline.model.protocol.restatement import Restatement, apply_restatements
from seamline.model.time.intervals import Interval
from seamline.plan.batch.reprocessing_plan import Verdict


@dataclass(frozen=True)
class Read:
    """An epoch with its raw records, and what they were validated to."""

    epoch: Epoch
    """Its ledger row."""
    pipeline: CompiledPipeline
    """What they were validated by."""
    raw: pa.Table
    """All records."""
    marks: pa.Table | None
    """Which of them the stream recognised as duplicates; None without ``dedup_within``."""
    accepted: pa.Table
    """Rows of the master."""
    refused: pa.Table
    """Rows of the quarantine."""
    known: int = 0
    """How many restatements the rows were made with."""


def validate_raw_records(
    con: duckdb.DuckDBPyConnection,
    pipeline: CompiledPipeline,
    raw: pa.Table,
    number: int,
    at: datetime,
    lookups: Mapping[str, Location],
    marks: pa.Table | None = None,
) -> tuple[pa.Table, pa.Table]:
    """Validate records with the kernel, which splits them into rows and refusals."""
    config = KernelConfig(
        pipeline=pipeline,
        topic_ids=topic_ids_of(pipeline),
        token=1,
        epoch=number,
        committed={},
        views=frozenset(),
        master=Path(),
        quarantine=Path(),
        at=at,
        lookups=lookups,
    )
    rows = join_marks(con, select_new_records(raw, config), pipeline, marks)
    return kernel_judged(con, rows, config, open_readers(pipeline))


def make_rule_versions(
    con: duckdb.DuckDBPyConnection,
    pipeline: CompiledPipeline,
    epochs: Iterable[tuple[int, pa.Table]],
    layout: Layout,
) -> dict[str, str]:
    """Make the tables of rules of all that was read, from the beginning; ``epochs`` are numbers and raw records."""
    tables = list_rule_tables(pipeline)
    if not tables:
        return {}
    ids = topic_ids_of(pipeline)
    read = [add_coordinates(raw, ids, number, pipeline.record_version) for number, raw in epochs]
    rows = pa.concat_tables([COORDINATES.empty_table(), *read])
    return {
        each.name: keep_rule_version(each.name, each.fold(con, each.empty, rows), layout) for each in tables
    }


def topic_ids_of(pipeline: CompiledPipeline) -> dict[str, str]:
    """Return the ids of the topics, by name."""
    return {topic: f"id of {topic}" for topic in pipeline.definition.topics}


def reprocess_interval_rows(
    con: duckdb.DuckDBPyConnection,
    read: Read,
    layout: Layout,
    interval: Interval,
    decisions: Sequence[Restatement],
) -> pa.Table:
    """Return an epoch's rows of an interval, from its raw records where that was decided since it was validated."""
    epoch = read.epoch
    rows = of_interval(read.accepted, interval)
    versions = apply_restatements(decisions, epoch.lookups, interval.start, epoch.number)
    if versions == epoch.lookups:
        return rows
    paths = {name: layout.lookup(name, version) for name, version in versions.items()}
    found, _ = validate_raw_records(
        con, read.pipeline, read.raw, epoch.number, epoch.committed_at, paths, read.marks
    )
    found = of_interval(found, interval)
    if rows.select(PLACE.names) != found.select(PLACE.names):
        raise ProtocolError(
            f"Epoch {epoch.number} has other rows of {interval} when it is reprocessed with {versions}.",
            hint="a restatement changes what a row says, not whether or where it is.",
        )
    return found


def of_interval(rows: pa.Table, interval: Interval) -> pa.Table:
    """Keep the rows of an interval."""
    return rows.filter(pa.array([at in interval for at in rows["_event_time"].to_pylist()], pa.bool_()))


def find_latest_event_times(accepted: pa.Table) -> dict[Lane, datetime]:
    """Find the largest event time of every lane."""
    found: dict[Lane, datetime] = {}
    columns = (accepted[name].to_pylist() for name in ("_topic_id", "_partition", "_event_time"))
    for topic_id, partition, at in zip(*columns, strict=True):
        lane = Lane(topic_id, partition)
        found[lane] = max(at, found.get(lane, at))
    return found


def count_names(names: Iterable[str]) -> dict[str, int]:
    """Count names."""
    return {name: len(list(some)) for name, some in groupby(sorted(names))}


def count_verdict(number: int, read: Read, interval_of: Callable[[datetime], str]) -> Verdict:
    """Count what became of an epoch's records when they were validated again."""
    return Verdict(
        number,
        "",
        count_names(map(interval_of, read.accepted["_event_time"].to_pylist())),
        count_names(read.refused["_reason"].to_pylist()),
        read.epoch.lookups,
        read.known,
    )
