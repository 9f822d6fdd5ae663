"""The lineage of a stream's driver, where one is to be told: a look between two epochs, from another thread."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial

from seamline.lineage.configuration import read_namespace, read_pace
from seamline.lineage.stream_reporter import StreamReporter
from seamline.lineage.table_names import name_tables
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.lineage.lineage_events import RunState, StreamFacts, spell_error
from seamline.plan.lineage.run_ids import make_run_id
from seamline.plan.lineage.stream_events import (
    StreamNames,
    StreamSnapshot,
    make_stream_event,
    name_stream_job,
)
from seamline.spark.stream.driver_loop import Driver

log = logging.getLogger("seamline.lineage")
LONGEST = 30.0
"""Seconds that a look waits for the end of an epoch; what it would have seen is told the next time."""


@contextmanager
def report_lineage(driver: Driver) -> Iterator[None]:
    """Tell the lineage of a driver that has started, while it runs; whatever fails of that is logged."""
    reporter, state, error = start_reporter(driver), RunState.FAIL, ""
    try:
        yield
        state = RunState.COMPLETE
    except Exception as failure:
        error = spell_error(failure)
        raise
    finally:
        if reporter:
            end_reporter(reporter, driver, state, error)


def start_reporter(driver: Driver) -> StreamReporter[StreamSnapshot] | None:
    """Start the thread that tells; None if it cannot be."""
    try:
        pipeline, topics, namespace = driver.writer.pipeline, driver.topics, read_namespace()
        began = read_snapshot(driver)
        job = f"{namespace}.{name_stream_job(pipeline.name)}.{driver.token}"
        names = StreamNames(
            namespace,
            topics.connection.brokers if topics.names else "",
            dict(topics.ids),
            name_tables(pipeline, driver.layout),
        )
        return StreamReporter(
            partial(make_stream_event, pipeline, names),
            str(make_run_id(began.at, job)),
            partial(look, driver),
            driver.folder / "lineage.json",
            every=read_pace(),
            began=began,
        )
    except Exception:
        log.exception("Lineage is not told")
        return None


def end_reporter(
    reporter: StreamReporter[StreamSnapshot], driver: Driver, state: RunState, error: str
) -> None:
    """Tell how the run has ended."""
    try:
        reporter.end(read_snapshot(driver), state, error)
    except Exception:
        log.exception("The end of the run is not told")


def look(driver: Driver) -> StreamSnapshot | None:
    """Look between two epochs; None where none ends in time."""
    if not driver.lock.acquire(timeout=LONGEST):
        return None
    try:
        return read_snapshot(driver)
    finally:
        driver.lock.release()


def read_snapshot(driver: Driver) -> StreamSnapshot:
    """Read where the driver stands; nothing is asked of Kafka or of a store."""
    writer, progress = driver.writer, driver.epochs.progress
    last = progress.epoch
    return StreamSnapshot(
        datetime.now(UTC),
        dict(progress.vector),
        StreamFacts(
            writer.pipeline.name,
            writer.token,
            last.number if last else -1,
            format_utc_instant(progress.mark) if progress.mark else "",
            dict(writer.behind),
        ),
        {
            "master": writer.master.table.version,
            "quarantine": writer.quarantine.version,
            **{view: each.table.version for view, each in writer.slices.items()},
        },
        dict(last.lookups) if last else {},
    )
