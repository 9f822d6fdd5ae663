"""One interval of a view in full: what it was proven by, and what a rebuild would do."""

from __future__ import annotations

from typing import Any

from seamline.lake.publish.planning import plan_run
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.certificates_table import Certificates
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.wording.plan_text import format_plan as planned
from seamline.serve.trust.interval_shades import Square


def load_interval_detail(pipeline: CompiledPipeline, layout: Layout, square: Square) -> dict[str, Any]:
    """Show one interval in full: its certificate, and what a rebuild would do."""
    cell = square.cell
    span = pipeline.grid.named(cell.interval)
    certificate = None
    if Table.exists(layout.table("certificates")):
        mine = Certificates.ensure(layout).of(view=f"{cell.view}/{cell.version}", interval=cell.interval)
        certificate = mine[-1] if mine else None
    return {
        "cell": cell,
        "shade": square.shade,
        "end": format_utc_instant(span.end),
        "certificate": certificate,
        "report": bool(certificate and layout.report(certificate.run).is_dir()),
        "plan": list(planned(plan_run(pipeline, layout, asked=span, dirty=False, waits=False), why=True)),
    }
