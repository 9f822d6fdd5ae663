"""Sinks in numbers: which are up, and how far each is behind what is served."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from seamline.lake.storage.layout import locate_tables
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.sinks.sink_states import PipelineSinks, SinkState, read_sink_states
from seamline.supervisor.metrics.metric_families import Family, Samples

log = logging.getLogger("seamline.metrics")


def sample_sinks(value: Callable[[SinkState], float | None]) -> Callable[[PipelineSinks], Samples]:
    """Make a sample of each sink."""
    return lambda found: (((each.sink,), value(each)) for each in found.sinks)


SINK_FAMILIES: tuple[Family[PipelineSinks], ...] = (
    Family(
        "seamline_sink_up",
        "1 if the sink's process, on this host, sends or waits for what is new; 0 if it failed or says nothing.",
        sample_sinks(lambda each: float(each.up)),
        ("sink",),
    ),
    Family(
        "seamline_sink_behind_versions",
        "Versions of the serving table, of dead letters epochs of the log, from the one that the target shows to the "
        "newest.",
        sample_sinks(lambda each: each.behind),
        ("sink",),
    ),
    Family(
        "seamline_sink_behind_seconds",
        "Age of the first version, of dead letters epoch, that the target does not show; 0 if it shows the newest.",
        sample_sinks(lambda each: each.behind_seconds),
        ("sink",),
    ),
    Family(
        "seamline_sink_changes_total",
        "Changes that the sink's process has sent since it was started.",
        sample_sinks(lambda each: each.sent),
        ("sink",),
    ),
    Family(
        "seamline_sink_audit_wrong",
        "Rows, or files, that an audit of the sink found wrong and no later audit right; none if it was never audited.",
        sample_sinks(lambda each: each.wrong),
        ("sink",),
    ),
    Family(
        "seamline_sink_audit_timestamp_seconds",
        "When the sink was audited last, in seconds since 1970.",
        sample_sinks(lambda each: each.audited_at.timestamp() if each.audited_at else None),
        ("sink",),
    ),
)


@dataclass(eq=False)
class SinkReader:
    """Reads how the sinks of pipelines do; a pipeline that cannot be read is left out."""

    pipelines: Callable[[], Mapping[str, CompiledPipeline]]
    """Gives the pipelines as they are now, by name."""
    unread: list[str] = field(default_factory=list)
    """Those that could not be read the last time."""

    def read(self) -> list[PipelineSinks]:
        """Read it now."""
        now, found, unread = datetime.now(UTC), list[PipelineSinks](), list[str]()
        for name, pipeline in self.pipelines().items():
            if not pipeline.definition.sinks:
                continue
            try:
                found.append(read_sink_states(pipeline, locate_tables(name), now))
            except Exception as error:  # noqa: BLE001 - whatever is broken, the rest is shown
                log.warning("Sinks of %s: %s: %s", name, type(error).__name__, error)
                unread.append(name)
        self.unread = unread
        return found
