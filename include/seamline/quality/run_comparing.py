"""What a run's generations change of what is answered, kept before they are published."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence

from seamline.lake.audit.generation_comparing import compare_generations
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.builds_table import Builds
from seamline.lake.tables.comparisons_table import Comparisons
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.comparison import Comparison

log = logging.getLogger("seamline.batch")


def compare_run(pipeline: CompiledPipeline, layout: Layout, run: str) -> list[Comparison]:
    """Compare every generation of a run with what is answered in its place, and keep that in one commit.

    While it is answered nobody takes away the slices that it needs.
    """
    builds, epochs = Builds.ensure(layout).of(run), read_condensed_log(layout)
    found = [
        each
        for view in add_live_versions(pipeline, layout).views
        for each in compare_generations(
            pipeline, view, layout, [row for row in builds if row.view == view.id], epochs
        )
    ]
    Comparisons.ensure(layout).append(found)
    return found


def compare_and_report(pipeline: CompiledPipeline, layout: Layout, run: str) -> Iterator[str]:
    """Compare, and say what came of it; a failure here is logged, and holds back no generation."""
    try:
        yield from format_comparisons(compare_run(pipeline, layout, run))
    except Exception as error:
        log.exception("Run %s was not compared", run)
        yield f"not compared with what was answered before: {type(error).__name__}: {error}"


def format_comparisons(found: Sequence[Comparison]) -> Iterator[str]:
    """Sum up comparisons, and name each interval with a difference that nothing explains."""
    causes: Counter[str] = Counter()
    for each in found:
        causes.update(each.causes)
    why = ", ".join(f"{cause}: {count}" for cause, count in sorted(causes.items()))
    equal, differing = sum(each.equal for each in found), sum(each.differing for each in found)
    yield f"Compared with what was answered before: {equal} states equal, {differing} differ" + (
        f" ({why})." if why else "."
    )
    for each in found:
        if each.alarm:
            yield f"ALARM {each.view} {each.interval}: unattributed: {each.alarm}"
