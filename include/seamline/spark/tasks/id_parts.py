"""Event ids in parts: tasks hash the ids of records, and a part says which of its own were there before."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

from seamline.kernel.epoch_kernel import open_worker_duckdb
from seamline.kernel.hashed_ids import hash_ids, split_ids
from seamline.kernel.id_index import NEW, IdIndex
from seamline.kernel.id_runs import HASHES
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.marks import PLACE
from seamline.kernel.survey import survey_records
from seamline.lake.engine.accepted_rows import record_version_sql, selected_sql
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.storage.arrow_types import master_schema
from seamline.lake.store.fetched_files import localize_file
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.runtime.failpoints import hit_failpoint
from seamline.spark.tasks.parts import (
    TABLE,
    Piece,
    Received,
    Row,
    encode_report,
    encode_table,
    split_into_pieces,
)

IDS, COUNTED, MARKS, LOST = "ids", "counted", "marks", "lost"
"""Kinds: ids on their way to a part, rows that the driver numbers, places of repeated records, an index not there."""
AT_ONCE = 500_000
"""Rows of the master that a task has in memory while an index is made."""


@dataclass(frozen=True)
class IndexAsked:
    """The index that a survey asks, and where it is to stand."""

    folder: Path
    """The folder of all indexes of the pipeline, on whichever machine a part is."""
    names: tuple[str, ...]
    """The name of each part's index: one that is made again has another, which no task of before can write to."""
    after: int
    """The epoch up to which it is to have all ids."""
    oldest: int | None = None
    """Ids of before are not known, in microseconds since 1970; None where all are."""

    @property
    def parts(self) -> int:
        """Into how many parts it is divided."""
        return len(self.names)

    def part_folder(self, part: int) -> Path:
        """Return the folder of a part."""
        return self.folder / self.names[part] / f"{part:05d}"

    def rename(self, parts: Iterable[int]) -> IndexAsked:
        """Return what is asked once some parts were made again, under a name that nobody has used."""
        name, others = uuid.uuid4().hex, set(parts)
        return replace(
            self, names=tuple(name if part in others else old for part, old in enumerate(self.names))
        )


def survey_by_ids(
    config: KernelConfig, parts: int, *, counting: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[Piece]]:
    """Make the first stage of a survey: the records' ids for their parts, and all rows where a view is ``counting``."""

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
        con = open_worker_duckdb()
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        for table in survey_records(con, batches, config):
            con.register("surveyed_rows", table)
            places = [name for name in NEW.names if name not in HASHES.names]
            ids = hash_ids(con, config.pipeline, "surveyed_rows", places).to_arrow_table().cast(NEW)
            con.unregister("surveyed_rows")
            for part, share in split_ids(ids, parts).items():
                yield from split_into_pieces(part, IDS, share)
            if counting:
                yield from split_into_pieces(task % parts, COUNTED, table)

    return make


def survey_for_counts(
    config: KernelConfig,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make a survey of which no ids are asked; it yields rows of ``REPORT``."""

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in survey_records(open_worker_duckdb(), batches, config):
            for _, kind, payload in split_into_pieces(0, COUNTED, table):
                yield encode_report(kind, payload)

    return task


def mark_ids(asked: IndexAsked, epoch: int, *, dry: bool) -> Callable[[int, Received], Iterator[Row]]:
    """Make the second stage: the places of records that repeat an id; what is new is pending, unless ``dry``."""

    def merge(part: int, received: Received) -> Iterator[Row]:
        found = []
        for kind, piece in received:
            assert isinstance(piece, pa.Table)
            if kind == IDS:
                found.append(piece)
            else:
                yield TABLE + kind, encode_table(piece)
        index = IdIndex.open(asked.part_folder(part), asked.names[part], str(asked.after))
        if index is None:
            yield LOST, str(part).encode()
            return
        rows = pa.concat_tables(found) if found else NEW.empty_table()
        # A trial without files is there to find out whether the disk is full.
        repeated = (
            index.find_repeated(rows, asked.oldest) if dry else index.mark(rows, str(epoch), asked.oldest)
        )
        hit_failpoint("part")
        places = rows.filter(pa.array(repeated)).select(PLACE.names)
        if places.num_rows:
            yield TABLE + MARKS, encode_table(places)

    return merge


def read_master_ids(
    pipeline: CompiledPipeline, shares: Sequence[Sequence[str]], asked: IndexAsked, made: Collection[int]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[Piece]]:
    """Make the first stage of making parts: a task reads the ids in its share of the master's files, once.

    Ids of other parts than those that are ``made`` go no further, nor do those of epochs after which none stands.
    """

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
        con = open_worker_duckdb()
        # A column that no file has yet comes from here.
        con.register("blank", master_schema(pipeline).empty_table())
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            for path in shares[number]:
                rows = f"SELECT * FROM {read_parquet_sql([localize_file(path)], uneven=True)}"
                chosen = f"{record_version_sql(pipeline.record_version)} AND {selected_sql(pipeline)}"
                chosen += f" AND _epoch <= {asked.after}"
                if asked.oldest is not None:
                    chosen += f" AND epoch_us(_event_time) >= {asked.oldest}"
                relation = f"(SELECT * FROM (SELECT * FROM blank UNION ALL BY NAME {rows}) WHERE {chosen})"
                for batch in hash_ids(con, pipeline, relation).to_arrow_reader(AT_ONCE):
                    ids = pa.Table.from_batches([batch]).cast(HASHES)
                    for part, share in split_ids(ids, asked.parts, made).items():
                        yield from split_into_pieces(part, IDS, share)
        con.unregister("blank")

    return make


def load_index(asked: IndexAsked, made: Collection[int]) -> Callable[[int, Received], Iterator[Row]]:
    """Make the second stage of making parts: each of those that are ``made`` writes its own."""

    def merge(part: int, received: Received) -> Iterator[Row]:
        tables = (piece for _, piece in received if isinstance(piece, pa.Table))
        if part not in made:
            assert not list(tables)
            return
        index = IdIndex.load(asked.part_folder(part), asked.names[part], str(asked.after), tables)
        yield IDS, str(sum(run.rows for run in index.state.runs)).encode()

    return merge
