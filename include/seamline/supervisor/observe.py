"""One look at a stream: its tables, what its processes say, and where Kafka ends. Nothing is made by looking."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from seamline.kafka.connections import read_airflow_connection
from seamline.kafka.topic_ends import AskEnds, TopicEnds, ends_of, oldest_from
from seamline.lake.log.epoch_log import newest_epochs
from seamline.lake.log.master import Master
from seamline.lake.status.marks import RECONCILED, RECONCILES_WITHIN, REFUSED, read_mark
from seamline.lake.status.stream_words import read_words_elsewhere
from seamline.lake.storage.layout import Layout, list_pipelines_apart, locate_tables, shared_warehouse
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.store.locations import Location, list_places
from seamline.lake.store.promises import is_on_disk
from seamline.lake.tables.control_table import Control, ControlTable, Desired
from seamline.lake.tables.decided import find_connection
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import SeamlineError
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import Gap, find_gaps, list_undecided_gaps
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import parse_duration
from seamline.plan.stream.observation import (
    Lag,
    Observation,
    Sample,
    compute_record_rates,
    count_astray_records,
    rows_per_second,
)
from seamline.plan.stream.stream_state import Facts, actual_of
from seamline.runtime.places import host_name
from seamline.sinks.sink_facts import read_sink_facts
from seamline.supervisor.board import Board, read_board
from seamline.supervisor.driver_report import DriverReport
from seamline.supervisor.sources.ageing_gaps import read_ageing_gaps
from seamline.supervisor.sources.source_ends import ask_source_ends
from seamline.supervisor.stream_facts import (
    find_live_lease,
    list_lagging_views,
    read_last_heartbeat,
    read_last_report,
    summarize_driver,
    summarize_reported_lag,
    summarize_supervisor,
)
from seamline.supervisor.supervisor_heartbeat import GAVE_UP

log = logging.getLogger("seamline.observe")
RECENT = 200
"""Epochs: what the rates of the last minute are made of."""
STUCK_AFTER = timedelta(minutes=2)
WANTED = (Desired.RUNNING, Desired.PAUSED)
T = TypeVar("T")


@dataclass
class Observer:
    """One look at one pipeline's stream; what cannot be read counts as unknown."""

    layout: Layout
    """Of the pipeline's tables."""
    now: datetime
    """The instant of the look."""
    unread: list[str] = field(default_factory=list)
    """What could not be read, and why, one line each."""

    def try_read(self, what: str, see: Callable[[], T]) -> T | None:
        """Read something; None if it is missing or cannot be read."""
        try:
            return see()
        except Exception as error:  # noqa: BLE001 - whatever is broken, the rest is shown
            said = error.message if isinstance(error, SeamlineError) else f"{type(error).__name__}: {error}"
            self.unread.append(f"{what}: {said.partition(chr(10))[0][:200]}")
            return None

    def read_control(self) -> Control | None:
        """Read the control table's state; None if it cannot be read, an empty one where there is none."""
        root = self.layout.table("control")
        return self.try_read(
            "control",
            lambda: read_cached_table(root, "state", lambda table: ControlTable(table).see()) or Control(),
        )

    def read_recent(self) -> Sequence[Epoch]:
        """Read the newest epochs, of the ledger and those that it does not have yet."""
        return self.try_read("log", lambda: newest_epochs(self.layout, RECENT)) or ()

    def fetch_ends(self, definition: Pipeline, env: Mapping[str, str], ask: AskEnds) -> TopicEnds | None:
        """Ask Kafka where the topics begin and end, and look at the tables."""
        what = "Kafka" if definition.kafka_topics else "tables"
        return self.try_read(what, lambda: ask_source_ends(definition, self.layout, env, ask))

    def read_positions(self, lanes: Iterable[Lane]) -> Mapping[Lane, int]:
        """Read the end offset of every lane that the master has read from."""
        asked = tuple(sorted(lanes))
        root = self.layout.table("master")
        return (
            self.try_read(
                "master", lambda: read_cached_table(root, asked, lambda at: Master(at).position(asked))
            )
            or {}
        )

    def fetch_lag(
        self, ends: TopicEnds, driver: DriverReport | None, definition: Pipeline, env: Mapping[str, str]
    ) -> Lag:
        """Fetch the current lag from Kafka."""
        held = self.read_positions(ends.ends)
        at = {lane: held.get(lane, ends.beginnings[lane]) for lane in ends.ends}
        lanes = {
            (ends.names[lane.topic_id], lane.partition): len(OffsetRange(lane, at[lane], max(end, at[lane])))
            for lane, end in ends.ends.items()
        }
        # Offsets of a table tell versions, and are no count of rows.
        counted = [lane for lane in ends.ends if not lane.of_table]
        here = Sample(ends.at, sum(at[lane] for lane in counted), sum(ends.ends[lane] for lane in counted))
        arriving, drained = compute_record_rates(driver.earlier if driver else None, here)
        lag = Lag(sum(lanes.values()), 0.0, ends.at, True, lanes, arriving, drained)
        if not lag.records:
            return lag
        places = {
            (ends.names[lane.topic_id], lane.partition): max(start, ends.beginnings[lane])
            for lane, start in at.items()
            if start < ends.ends[lane] and not lane.of_table
        }
        if not places:
            # Rows of tables wait, and nobody has looked at their times.
            return replace(lag, seconds=None)
        name = find_connection(definition.connection, self.layout)
        oldest = self.try_read("Kafka", lambda: oldest_from(read_airflow_connection(name, env), places))
        age = max((ends.at - oldest).total_seconds(), 0.0) if oldest else None
        return replace(lag, seconds=age)

    def list_open_gaps(
        self, ends: TopicEnds, recent: Sequence[Epoch], control: Control | None
    ) -> tuple[str, ...]:
        """List what is gone from the topics before it was read and nobody has decided on.

        Of a lane that is gone with its topic only where one of the newest epochs has read it.
        """
        held = self.read_positions(ends.ends)
        short = {
            Gap(lane, end, ends.beginnings[lane]) for lane, end in held.items() if end < ends.beginnings[lane]
        }
        found = sorted({*short, *find_gaps(recent, ends.beginnings)}, key=lambda gap: gap.lane)
        return tuple(
            str(gap)
            for gap in list_undecided_gaps(found, control.list_decided_gaps(recent) if control else ())
        )


def observe(
    name: str,
    layout: Layout,
    compiled: CompiledPipeline | None,
    *,
    broker: bool = True,
    now: datetime | None = None,
    env: Mapping[str, str] = os.environ,
    ask: AskEnds = ends_of,
) -> Observation:
    """Observe a stream.

    With ``broker`` Kafka is asked for its ends, for a few seconds at most; without, or where it does not answer, the
    lag is what the driver said at its last heartbeat, and when. Without a definition nobody knows whom to ask.
    """
    now = now or datetime.now(UTC)
    it = Observer(layout, now)
    control = it.read_control()
    recent = it.read_recent()
    last = recent[-1] if recent else None
    lease = find_live_lease(layout, control, now)
    words = it.try_read("stream.json", lambda: read_words_elsewhere(layout))
    beat = it.try_read("supervisor.json", lambda: read_last_heartbeat(layout, words))
    said = it.try_read("driver.json", lambda: read_last_report(layout, words))
    broken = [each for each in it.unread if each.startswith(("control", "stream", "supervisor", "driver"))]
    definition = compiled.definition if compiled and broker else None
    ends = it.fetch_ends(definition, env, ask) if definition else None
    lag = it.fetch_lag(ends, said, definition, env) if definition and ends else summarize_reported_lag(said)
    mark = it.try_read("reconciled.json", lambda: read_mark(layout, RECONCILED))
    refused = it.try_read("refused.json", lambda: read_mark(layout, REFUSED))
    facts = Facts(
        host=host_name(),
        wanted=bool(control and control.desired in WANTED),
        lease=lease,
        supervisor=summarize_supervisor(beat, lease),
        driver=summarize_driver(said, lease),
        unread="; ".join(broken),
        committed_at=last.committed_at if last else None,
        lag=lag.records if lag.asked else None,
        waiting=lag.at - timedelta(seconds=lag.seconds) if lag.at and lag.seconds else None,
        stuck_after=parse_duration(compiled.definition.stream.stuck_after) if compiled else STUCK_AFTER,
    )
    actual, detail = actual_of(facts, now=now)
    return Observation(
        pipeline=name,
        at=now,
        desired=control.desired.value if control else "unknown",
        actor=control.actor if control else "",
        reason=control.reason if control else "",
        actual=actual,
        detail=detail,
        epoch=last.number if last else None,
        committed_at=facts.committed_at,
        lag=lag,
        watermark=last.watermark if last else None,
        rows_per_second=rows_per_second(recent, now=now),
        restarts=max(beat.starts - 1, 0) if beat else None,
        strikes=beat.strikes if beat else None,
        last_error=beat.last_error if beat else "",
        behind=list_lagging_views(last, said),
        hot=said.hot if said else {},
        indexed=said.indexed if said else {},
        rules=said.rules if said else None,
        asks=said.asks if said else None,
        sinks=it.try_read("sinks", lambda: read_sink_facts(compiled, layout, now)) if compiled else None,
        holes=it.list_open_gaps(ends, recent, control) if ends else None,
        ageing=it.try_read("ageing.json", lambda: read_ageing_gaps(layout, it.read_positions)),
        reconciled=mark[0] if mark else None,
        silenced=bool(mark and now - mark[0] > RECONCILES_WITHIN),
        unread=tuple(it.unread),
        alerts=(it.try_read("alerts.json", lambda: read_board(layout)) or Board({})).raised,
        frontiers=last.frontiers if last else {},
        seconds=said.seconds if said else {},
        trigger=last.trigger if last else {},
        refused=refused[0] if refused else None,
        refusal=str(refused[1].get("why", "")) if refused else "",
        given_up=bool(beat and beat.state == GAVE_UP),
        disk_free=it.try_read("disk", lambda: disk_free(layout.warehouse)),
        astray=count_astray_records(recent, said.topics if said else {}, now=now) if recent else None,
    )


def streams_of(defined: Mapping[str, CompiledPipeline]) -> dict[str, CompiledPipeline | None]:
    """List every stream that is defined, and those of our warehouses whose definition is gone or broken.

    A pipeline with a warehouse of its own is that one there, and none that has its name in the shared warehouse.
    While the shared one cannot be listed, the others are: it is raised only where no stream is known without it.
    """
    apart = list_pipelines_apart()
    known = {**dict.fromkeys(name for name in apart if has_control_table(name)), **defined}
    try:
        shared = [each.parent.name for each in list_places(shared_warehouse(), "[!_]*/control")]
    except (SeamlineError, OSError) as error:
        if not known:
            raise
        said = str(error).partition("\n")[0]
        log.warning("Streams of the shared warehouse that are not defined are left out: %s", said)
        return known
    return {**dict.fromkeys(name for name in shared if name not in apart), **known}


def has_control_table(pipeline: str) -> bool:
    """Return whether a pipeline has a control table; also where that cannot be seen, which its observation says."""
    try:
        return locate_tables(pipeline).table("control").is_dir()
    except (SeamlineError, OSError):
        return True


def observe_all(
    pipelines: Mapping[str, CompiledPipeline | None], *, broker: bool = True
) -> list[Observation]:
    """Observe several streams at the same time, so that a broker that is down is waited for once."""

    def one(name: str) -> Observation:
        try:
            return observe(name, locate_tables(name), pipelines[name], broker=broker)
        except Exception as error:  # noqa: BLE001 - the others are shown all the same
            said = f"{type(error).__name__}: {error}".partition("\n")[0]
            return Observation(name, datetime.now(UTC), desired="unknown", unread=(said,))

    with ThreadPoolExecutor(8, thread_name_prefix="observe") as threads:
        return list(threads.map(one, sorted(pipelines)))


def disk_free(warehouse: Location) -> float | None:
    """Return the share of a folder's disk that is free; None if there is no folder yet, or it is a bucket."""
    if not is_on_disk(warehouse) or not warehouse.is_dir():
        return None
    found = shutil.disk_usage(warehouse)
    return found.free / found.total
