"""Published answers in numbers: what is certified, what is owed, and what nothing explains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from seamline.lake.storage.layout import locate_tables
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.accuracy import Accuracy
from seamline.serve.trust.published_answers import PipelineTrust, ViewTrust, read_trust
from seamline.supervisor.metrics.metric_families import (
    Family,
    Samples,
    make_unlabelled_sample,
    to_unix_seconds,
)
from seamline.supervisor.metrics.paced_reading import PacedReader


def sample_views(value: Callable[[ViewTrust], float | None]) -> Callable[[PipelineTrust], Samples]:
    """Make a sample of each view."""
    return lambda found: (((each.view,), value(each)) for each in found.views)


def group_by_age(found: PipelineTrust) -> Iterator[tuple[str, str, list[Accuracy]]]:
    """Group what was found of the measures of each view by its age, in seconds; there are six ages."""
    for view, measured in found.accuracy.items():
        ages: dict[float, list[Accuracy]] = {}
        for each in measured:
            ages.setdefault(each.age.total_seconds(), []).append(each)
        for age, some in ages.items():
            yield view, f"{age:.0f}", some


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
    Family(
        "seamline_answer_there_ratio",
        "The share of keys and panes that had an answer so many seconds after the pane's end, as of the newest audit.",
        lambda found: (((view, age), each[0].there) for view, age, each in group_by_age(found)),
        ("view", "age"),
    ),
    Family(
        "seamline_answer_change_ratio",
        "By how much answers of an age moved until they were final, as a share of them: the median, and the bound that "
        "nine of ten did not exceed, as of the newest audit.",
        lambda found: (
            ((view, one.measure, age, quantile), share)
            for view, age, each in group_by_age(found)
            for one in each
            for quantile, share in (("0.5", one.typical), ("0.9", one.most))
        ),
        ("view", "measure", "age", "quantile"),
    ),
)


@dataclass(eq=False)
class TrustReader(PacedReader[PipelineTrust]):
    """Reads the tables of published answers."""

    def look(self, name: str, pipeline: CompiledPipeline) -> PipelineTrust:
        return read_trust(pipeline, locate_tables(name))
