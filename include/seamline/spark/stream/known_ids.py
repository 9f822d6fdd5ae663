"""Which event ids the master contains, within the horizon: the driver's half of an index that is kept in parts."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.marks import PLACE
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.log.log_files import files_of
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.reprocessed import Reprocessed
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import SeamlineError, SetupError, SparkFailed
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import EPOCH, Interval
from seamline.plan.batch.work_shares import split_by_size
from seamline.runtime.storage_failures import store_failed
from seamline.spark.session.arrow_batches import MEASURED, BatchSize
from seamline.spark.tasks.id_parts import (
    COUNTED,
    LOST,
    MARKS,
    IndexAsked,
    load_index,
    mark_ids,
    read_master_ids,
    survey_by_ids,
)
from seamline.spark.tasks.kernel_attempts import find_worker_message
from seamline.spark.tasks.parts import TABLE, Row, decode_table, run_in_parts
from seamline.spark.tasks.spread import count_task_slots

log = logging.getLogger("seamline.stream")
EVER = datetime.max.replace(tzinfo=UTC)
NEVER = 2**62
Found = tuple[pa.Table, list[pa.Table]]
"""The places (``PLACE``) of records that repeat an id, and the rows that views count."""


class KnownIds:
    """The index of one driver, below ``folder``; an epoch that is committed is told of by ``commit``.

    The index is made from the master at the first survey, and a part again that has lost its own.
    """

    def __init__(self, pipeline: CompiledPipeline, layout: Layout, folder: Path) -> None:
        self.pipeline, self.layout, self.folder = pipeline, layout, folder
        self.counting = any(view.counts for view in pipeline.views)
        self.asked: IndexAsked | None = None
        self.attempt = ""
        self.dropped: set[str] = set()
        shutil.rmtree(folder, ignore_errors=True)

    def find_repeated(self, frame: DataFrame, config: KernelConfig) -> Found:
        """Survey a micro-batch: which records repeat an id, and the rows that are counted."""
        within = self.pipeline.dedup_within
        horizon = config.watermark - within if config.watermark and within is not None else None
        oldest = None if horizon is None else to_unix_micros(horizon)
        asked, spark = self.asked, frame.sparkSession
        # Parts forget what is older: for an earlier horizon the index is made again.
        if asked is None or (asked.oldest is not None and (oldest is None or oldest < asked.oldest)):
            asked = self.load(spark, oldest, horizon)
        self.asked = replace(asked, oldest=oldest)
        rows = self.survey(frame, config, self.asked)
        if lost := list_lost_parts(rows):
            log.warning(
                "Parts %s of %s of the index of event ids are lost; they are made again from the master",
                ", ".join(map(str, lost)),
                self.asked.parts,
            )
            self.asked = self.make_parts_again(spark, self.asked, lost, horizon)
            rows = self.survey(frame, config, self.asked)
        if list_lost_parts(rows):
            raise SetupError(
                f"The index of event ids below {self.folder} does not keep what is written to it.",
                hint="the tasks of a stream that drops duplicates need a folder that all of its workers have.",
            )
        self.attempt = "" if config.dry else str(config.epoch)
        return (
            pa.concat_tables([PLACE.empty_table(), *decode_tables(rows, MARKS)]),
            decode_tables(rows, COUNTED),
        )

    def survey(self, frame: DataFrame, config: KernelConfig, asked: IndexAsked) -> list[Row]:
        """Ask the parts, once."""
        return run_in_parts(
            frame,
            survey_by_ids(config, asked.parts, counting=self.counting),
            mark_ids(asked, config.epoch, dry=config.dry),
            parts=asked.parts,
            memory=self.pipeline.definition.stream.worker_memory,
        )

    def commit(self) -> None:
        """Let what the last survey found new be known, if there was one since: its epoch is committed."""
        if self.asked and self.attempt:
            self.asked = replace(self.asked, after=int(self.attempt))
            self.dropped.clear()
        self.attempt = ""

    def settle(self, newest: int) -> None:
        """Find out, after a failure, whether the epoch of the last survey is the ``newest`` that is committed.

        A commit may land after it was found not to have: its ids were dropped, and the index is made again.
        """
        if self.attempt == str(newest):
            self.commit()
        elif str(newest) in self.dropped:
            self.asked = None
        self.dropped.update([self.attempt] if self.attempt else [])
        self.attempt = ""

    def load(self, spark: SparkSession, oldest: int | None, horizon: datetime | None) -> IndexAsked:
        """Make the index from the master's rows of the horizon and later."""
        if self.asked:
            self.delete_parts(self.asked, range(self.asked.parts))
        # An index that cannot be made is asked for again.
        self.asked, self.attempt = None, ""
        parts = self.pipeline.definition.stream.parts or count_task_slots(spark)
        newest = read_cached_table(self.layout.table("master"), "newest", lambda table: Master(table).epoch)
        after = NOTHING if newest is None else newest
        asked = IndexAsked(self.folder, ("",) * parts, after, oldest).rename(range(parts))
        self.fill_parts(spark, asked, range(parts), horizon)
        return asked

    def make_parts_again(
        self, spark: SparkSession, asked: IndexAsked, lost: Sequence[int], horizon: datetime | None
    ) -> IndexAsked:
        """Make the parts that are ``lost`` stand where the others do, which keep what is pending."""
        self.delete_parts(asked, lost)
        made = asked.rename(lost)
        self.fill_parts(spark, made, lost, horizon)
        return made

    def fill_parts(
        self, spark: SparkSession, asked: IndexAsked, made: Sequence[int], horizon: datetime | None
    ) -> None:
        """Let parts be made from the master's rows and those validated again; each file is read by one task.

        Raises an error of ours, whatever fails: no record of an epoch has to do with it.
        """
        began = time.monotonic()
        tables = (
            read_cached_table(self.layout.table("master"), "files", Files.of),
            Reprocessed(self.pipeline, self.layout).files(),
        )
        span = Interval(horizon or EPOCH.min.replace(tzinfo=UTC), EVER)
        paths = [path for files in tables if files for path in files_of(files, span, NEVER)]
        shares = [
            [paths[at] for at in share] for share in split_by_size([1] * len(paths), asked.parts, least=1)
        ] or [[]]
        try:
            with measured_batches(spark):
                rows = run_in_parts(
                    spark.range(0, len(shares), 1, len(shares)),
                    read_master_ids(self.pipeline, shares, asked, made),
                    load_index(asked, made),
                    parts=asked.parts,
                    memory=self.pipeline.definition.stream.worker_memory,
                )
        except Exception as error:
            self.delete_parts(asked, made)
            raise explain_failure(error) from error
        if count := sum(int(payload) for _, payload in rows):
            log.info(
                "%s event ids of %s files are known again after %.1f s",
                count,
                len(paths),
                time.monotonic() - began,
            )

    def delete_parts(self, asked: IndexAsked, parts: Iterable[int]) -> None:
        """Delete the folders of parts, and of no other driver's, which was fenced off or has fenced us off."""
        for part in parts:
            shutil.rmtree(asked.part_folder(part), ignore_errors=True)


@contextmanager
def measured_batches(spark: SparkSession) -> Iterator[None]:
    """Let batches be measured while the block runs: they are of a few megabytes for each row."""
    names = ("maxRecordsPerBatch", "maxBytesPerBatch")
    before = [str(spark.conf.get(f"spark.sql.execution.arrow.{name}")) for name in names]
    MEASURED.apply(spark)
    try:
        yield
    finally:
        BatchSize(*map(int, before)).apply(spark)


def explain_failure(error: Exception) -> SeamlineError:
    """Return the error that it is if an index cannot be made; of a store that is away it says so."""
    if isinstance(error, SeamlineError):
        return error
    return store_failed(error) or SparkFailed(
        f"The index of event ids cannot be made: {find_worker_message(error)}",
        hint="it is tried again; the folder that all workers have needs space for the ids of the horizon.",
    )


def list_lost_parts(rows: list[Row]) -> list[int]:
    """List the parts that have said that their index is not there."""
    return sorted(int(payload) for kind, payload in rows if kind == LOST)


def decode_tables(rows: list[Row], kind: str) -> list[pa.Table]:
    """Decode the tables of a kind that parts report."""
    return [decode_table(payload) for each, payload in rows if each == TABLE + kind]
