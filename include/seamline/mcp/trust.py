"""How far answers of a pipeline are right, in what every tool says."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from seamline.lake.log.epoch_log import newest_epochs
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.time.intervals import format_utc_instant
from seamline.serve.trust.published_answers import PipelineTrust, ViewTrust


def describe_newest_epoch(pipeline: CompiledPipeline, layout: Layout) -> dict[str, Any]:
    """Say what has been read: the last epoch, when it was committed, and its watermark; null before the first."""
    newest = newest_epochs(layout, 1)
    if not newest:
        return {"epoch": None, "committed_at": None, "watermark": None}
    epoch = newest[-1]
    return {
        "epoch": epoch.number,
        "committed_at": format_utc_instant(epoch.committed_at),
        "watermark": spell(pipeline.timed.watermark_at(epoch)),
    }


def describe_pipeline_trust(found: PipelineTrust) -> dict[str, Any]:
    """Say what is published: each view, and what the newest audit found."""
    return {
        "views": {each.view: describe_view_trust(each) for each in found.views},
        "audit": {"findings": found.findings, "at": spell(found.audited_at)} if found.audited_at else None,
    }


def describe_view_trust(found: ViewTrust) -> dict[str, Any]:
    """Say how far a view is certified, and what is owed."""
    return {
        "certified_through": spell(found.certified_through),
        "intervals": {shade.value: count for shade, count in found.shades.items() if count},
        "late_rows": found.late_rows,
        "owed_since": spell(found.owed_since),
        "unexplained_changes": found.unexplained,
    }


def spell(moment: datetime | None) -> str | None:
    """Write an instant, if there is one."""
    return format_utc_instant(moment) if moment else None
