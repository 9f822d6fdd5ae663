"""What changes take away and add, for a build or a block of epochs: from the newest snapshot that is old enough on."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from seamline.lake.joins.changed_rows import IMAGES
from seamline.lake.joins.log_stamps import LogWriter
from seamline.lake.joins.snapshot_files import SnapshotFiles, SnapshotFolders
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.model.compile.changes.compiled_changelog import CompiledChangelog
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.seam import NOTHING
from seamline.spark.build.reprocessing import log_of
from seamline.spark.tasks.changed_rows import blank_images, contribute, keep_keys, read_changed_rows

log = logging.getLogger("seamline.build")


@dataclass(frozen=True)
class ReadLog:
    """A log as one who only reads it knows it."""

    pipeline: CompiledPipeline
    """The definition."""
    master: Master
    """The master."""
    ledger: Ledger
    """The ledger."""
    restated: int = 0
    """No restatement is about the rows of tables."""

    @classmethod
    def open(cls, pipeline: CompiledPipeline, layout: Layout) -> ReadLog:
        """Open the log of a pipeline."""
        return cls(pipeline, Master.open(layout), Ledger.ensure(layout))


def find_contributions(
    spark: SparkSession,
    pipeline: CompiledPipeline,
    layout: Layout,
    changelog: CompiledChangelog,
    wanted: Column,
    until: int,
    writer: LogWriter | None = None,
) -> DataFrame:
    """Return what the rows up to an epoch take away and add that meet a condition on their times and epochs.

    What their keys were before the first of them is told by the newest snapshot of before its epoch, and by the rows
    after that. Rows behind the last of them change nothing that it does, and are not read.
    """
    writer = writer or ReadLog.open(pipeline, layout)
    every = log_of(spark, pipeline, layout, version=writer.master.table.version)
    rows = read_changed_rows(every.where(f.col("_epoch") <= until), changelog)
    touched = rows.where(wanted)
    bounds = touched.agg(f.min("_epoch").alias("first"), f.max("_epoch").alias("last")).toArrow()
    first, last = bounds["first"][0].as_py(), bounds["last"][0].as_py()
    if first is None:
        return contribute(blank_images(rows, changelog), touched, changelog)
    folders = SnapshotFolders(writer, layout, [changelog.id], form=IMAGES, restates=False)
    above, images = read_images(rows, touched, folders, changelog, first - 1)
    between = (f.col("_epoch") > above) & (f.col("_epoch") <= last)
    mine = keep_keys(rows.where(between), touched, changelog)
    return contribute(images, mine, changelog).where(wanted)


def read_images(
    rows: DataFrame,
    touched: DataFrame,
    folders: SnapshotFolders,
    changelog: CompiledChangelog,
    latest: int,
) -> tuple[int, DataFrame]:
    """Read what some keys were at the epoch of the newest snapshot up to another one; nothing where there is none.

    The stream may delete a file meanwhile: an older one serves as well.
    """
    gone: set[SnapshotFiles] = set()
    while files := folders.find_readable(changelog, latest, gone):
        try:
            held = read_image_file(rows.sparkSession, files, changelog)
            # Not persisted: whoever catches up would keep them until the driver ends.
            found = keep_keys(held, touched, changelog).localCheckpoint()
        except PySparkException as error:
            log.warning("A snapshot of %s cannot be read: %s", changelog.name, error)
            gone.add(files)
            continue
        return files.epoch, found
    return NOTHING, blank_images(rows, changelog)


def read_image_file(spark: SparkSession, files: SnapshotFiles, changelog: CompiledChangelog) -> DataFrame:
    """Read a snapshot, whose pages have checksums."""
    blank = blank_images(spark.range(0).toDF("_"), changelog)
    reader = spark.read.schema(blank.schema).option("parquet.page.verify-checksum.enabled", "true")
    return reader.parquet(*map(str, files.places))
