"""Published answers in numbers: what is certified, what is owed, and what nothing explains."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from seamline.lake.storage.layout import locate_tables
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.serve.trust.published_answers import PipelineTrust, ViewTrust, read_trust
from seamline.supervisor.metrics.metric_families import (
    Family,
    Samples,
    make_unlabelled_sample,
    to_unix_seconds,
)

log = logging.getLogger("seamline.metrics")
EVERY = 60.0
"""Seconds after which a pipeline's tables are read again: intervals are built by the hour or the day."""
BUDGET = 3.0
"""Seconds of a scrape after which no further pipeline is read: the next scrapes go on, the longest known first."""


def sample_views(value: Callable[[ViewTrust], float | None]) -> Callable[[PipelineTrust], Samples]:
    """Make a sample of each view."""
    return lambda found: (((each.view,), value(each)) for each in found.views)


TRUST_FAMILIES: tuple[Family[PipelineTrust], ...] = (
    Family(
        "seamline_intervals",
        "Intervals of the served version of a view that have rows, by state, as the page Completeness shows them.",
        lambda found: (
            ((each.view, shade.value.replace(" ", "_")), float(count))
            for each in found.views
            for shade, count in each.shades.items()
        ),
        ("view", "state"),
    ),
    Family(
        "seamline_certificates_failed",
        "Intervals whose newest certificate did not pass.",
        sample_views(lambda each: each.failed),
        ("view",),
    ),
    Family(
        "seamline_certified_through_timestamp_seconds",
        "The event time up to which all intervals are certified, since 1970.",
        sample_views(lambda each: to_unix_seconds(each.certified_through)),
        ("view",),
    ),
    Family(
        "seamline_late_rows",
        "Rows that dirty intervals have got since they were built.",
        sample_views(lambda each: each.late_rows),
        ("view",),
    ),
    Family(
        "seamline_owed_since_timestamp_seconds",
        "The end of the first interval that is dirty or was never built, since 1970; absent if there is none.",
        sample_views(lambda each: to_unix_seconds(each.owed_since)),
        ("view",),
    ),
    Family(
        "seamline_differences_unexplained",
        "Intervals whose newest generation changed what was answered in a way that nothing explains.",
        sample_views(lambda each: each.unexplained),
        ("view",),
    ),
    Family(
        "seamline_audit_findings",
        "What the newest audit found to be wrong.",
        make_unlabelled_sample(lambda found: found.findings),
    ),
    Family(
        "seamline_audit_timestamp_seconds",
        "When the newest audit began, since 1970.",
        make_unlabelled_sample(lambda found: to_unix_seconds(found.audited_at)),
    ),
    Family(
        "seamline_build_seconds",
        "How long the newest attempt to build intervals took.",
        make_unlabelled_sample(lambda found: found.build_seconds),
    ),
    Family(
        "seamline_build_timestamp_seconds",
        "When the newest attempt to build intervals ended, since 1970.",
        make_unlabelled_sample(lambda found: to_unix_seconds(found.built_at)),
    ),
)


@dataclass(eq=False)
class TrustReader:
    """Reads the tables of pipelines where the last reading is older than ``EVERY``; of the others it remembers."""

    pipelines: Callable[[], Mapping[str, CompiledPipeline]]
    """Gives the pipelines as they are now, by name."""
    clock: Callable[[], float] = time.monotonic
    """Seconds."""
    known: dict[str, tuple[float, PipelineTrust | None]] = field(default_factory=dict)
    """What was read of a pipeline, and when; None if that was not possible."""

    def read(self) -> list[PipelineTrust]:
        """Read what is to be read again, within the budget; return what is known."""
        pipelines = self.pipelines()
        self.known = {name: each for name, each in self.known.items() if name in pipelines}
        began = self.clock()
        for name in sorted(pipelines, key=self.read_at):
            if self.clock() - began < BUDGET:
                self.refresh(name, pipelines[name])
        return [each for _, each in self.known.values() if each]

    def read_at(self, name: str) -> float:
        """Return when a pipeline was read last; one that never was comes first."""
        return self.known[name][0] if name in self.known else float("-inf")

    def refresh(self, name: str, pipeline: CompiledPipeline) -> None:
        """Read a pipeline's tables if it is time; one that cannot be read has no numbers, and ends no scrape."""
        now = self.clock()
        if now - self.read_at(name) < EVERY:
            return
        try:
            self.known[name] = now, read_trust(pipeline, locate_tables(name))
        except Exception as error:  # noqa: BLE001 - whatever is broken, the rest is shown
            log.warning("%s: %s: %s", name, type(error).__name__, error)
            self.known[name] = now, None
