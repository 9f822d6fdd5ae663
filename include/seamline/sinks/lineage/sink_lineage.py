"""The lineage of one sink, as long as its process lives: it is looked at from another thread, once a minute."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from seamline.lake.storage.layout import Layout, home_folder
from seamline.lineage.configuration import read_namespace, read_pace
from seamline.lineage.stream_reporter import StreamReporter
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.definition.sinks.sink_base import AnySink, Sink
from seamline.plan.lineage.dataset_names import DatasetName, name_place
from seamline.plan.lineage.lineage_events import Column, LineageEvent, RunState
from seamline.plan.lineage.run_ids import make_run_id
from seamline.plan.lineage.sink_events import (
    SinkNames,
    SinkSnapshot,
    is_whole,
    make_sink_event,
    name_sink_job,
)
from seamline.plan.lineage.table_columns import list_answer_columns
from seamline.plan.lineage.told_offsets import Step
from seamline.sinks.lineage.target_names import name_target

log = logging.getLogger("seamline.lineage")


class Sent(Protocol):
    """A sink that has taken over its target."""

    @property
    def shown(self) -> int:
        """The version, or the epoch, that the target shows."""


class SinkLineage:
    """One run of a sink: it begins when the target is taken over first, and ends with the process.

    ``find`` finds what has taken over the target, and ``count`` counts the changes that were sent. A failure after
    which the sink tries again is no end. Whatever fails here is logged, and is in the way of no row.
    """

    def __init__(
        self,
        pipeline: CompiledPipeline,
        layout: Layout,
        sink: AnySink,
        find: Callable[[], Sent | None],
        count: Callable[[], int],
    ) -> None:
        self.pipeline, self.layout, self.sink, self.find, self.count = pipeline, layout, sink, find, count
        self.reporter: StreamReporter[SinkSnapshot] | None = None
        self.last: SinkSnapshot | None = None
        self.told: tuple[Column, ...] = ()
        self.failed = False

    def begin(self) -> None:
        """Begin, unless that was done."""
        if self.reporter or self.failed:
            return
        try:
            self.reporter = self.start()
        except Exception:
            self.failed = True
            log.exception("Lineage of %s is not told", self.sink.id)

    def start(self) -> StreamReporter[SinkSnapshot] | None:
        """Start the thread that tells; None while the sink has no target."""
        began = self.look()
        if began is None:
            return None
        names = self.name()
        job = f"{names.namespace}.{name_sink_job(names.pipeline, names.sink)}.{uuid.uuid4().hex}"

        def make(step: Step, snapshot: SinkSnapshot) -> LineageEvent:
            whole = is_whole(step) or snapshot.columns != self.told
            return make_sink_event(names, step, snapshot, whole=whole)

        def take(snapshot: SinkSnapshot) -> None:
            self.told = snapshot.columns

        memory = home_folder() / "streams" / self.pipeline.name / "sinks" / f"{self.sink.id}.lineage"
        memory.parent.mkdir(parents=True, exist_ok=True)
        return StreamReporter(
            make,
            str(make_run_id(began.at, job)),
            self.look,
            memory,
            every=read_pace(),
            began=began,
            take=take,
        )

    def name(self) -> SinkNames:
        """Name the sink and its datasets."""
        return SinkNames(
            read_namespace(),
            self.pipeline.name,
            self.sink.id,
            self.name_source(),
            name_target(self.sink, self.pipeline.name),
            versioned=isinstance(self.sink, Sink),
        )

    def name_source(self) -> DatasetName:
        """Name what is sent."""
        if not isinstance(self.sink, Sink):
            return name_place(str(self.layout.table("quarantine")))
        view = self.pipeline.view(self.sink.view)
        assert view is not None
        return name_place(str(self.layout.serving(view)))

    def look(self) -> SinkSnapshot | None:
        """Look where the sink stands; None while it has no target."""
        sending = self.find()
        if sending is None:
            return None
        view: CompiledView | None = getattr(sending, "view", None)
        columns = list_answer_columns(view) if view else ()
        self.last = SinkSnapshot(datetime.now(UTC), sending.shown, self.count(), columns)
        return self.last

    def end(self, error: str = "") -> None:
        """Tell how it has ended, and wait for that a little."""
        try:
            self.look()
            if self.reporter and self.last:
                self.reporter.end(self.last, RunState.FAIL if error else RunState.COMPLETE, error)
        except Exception:
            log.exception("The end of %s is not told", self.sink.id)
