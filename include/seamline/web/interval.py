"""One interval of a view in full: what it was proven by, and what a rebuild would do."""

from __future__ import annotations

from typing import Any

from seamline.lake.certificates import Certificates
from seamline.lake.layout import Layout
from seamline.lake.planning import plan_run
from seamline.lake.tables import Table
from seamline.model.compiled import CompiledPipeline
from seamline.model.intervals import stamp
from seamline.plan.told import lines as planned
from seamline.web.calendar import Square


def detail(pipeline: CompiledPipeline, layout: Layout, square: Square) -> dict[str, Any]:
    """Tell one interval in full: its certificate, and what a rebuild would do."""
    cell = square.cell
    span = pipeline.grid.named(cell.interval)
    certificate = None
    if Table.exists(layout.table("certificates")):
        mine = Certificates.ensure(layout).of(view=f"{cell.view}/{cell.version}", interval=cell.interval)
        certificate = mine[-1] if mine else None
    return {
        "cell": cell,
        "shade": square.shade,
        "end": stamp(span.end),
        "certificate": certificate,
        "report": bool(certificate and layout.report(certificate.run).is_dir()),
        "plan": list(planned(plan_run(pipeline, layout, asked=span, dirty=False, waits=False), why=True)),
    }
