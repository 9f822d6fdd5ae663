"""A move of a warehouse for people: what it would do, and what it has done."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from seamline.model.protocol.moving import MovePlan, MoveReport
from seamline.model.protocol.warehouse_names import WarehouseName
from seamline.plan.spelling import format_quantity

MB = 1e6


def format_move_plan(plan: MovePlan) -> Iterator[str]:
    """Say what a move would do."""
    yield f"{plan.source} -> {plan.to}{' (begun)' if plan.begun else ''}"
    for name, tables in plan.pipelines.items():
        yield f"  {name}: {format_quantity(tables, 'table')}"
    yield f"  {format_quantity(plan.files, 'file')}, {plan.bytes / MB:,.1f} MB"
    yield f"  to copy: {format_quantity(plan.copied, 'file')}, {plan.copied_bytes / MB:,.1f} MB"
    yield f"  there already, to compare: {format_quantity(plan.compared, 'file')}"
    if plan.deleted:
        yield f"  there, and no longer here, to delete: {format_quantity(plan.deleted, 'file')}"
    if plan.requests:
        yield f"  about {format_quantity(plan.requests, 'request')}"
    yield "Nothing was changed."


def format_move_report(report: MoveReport, named: WarehouseName) -> Iterator[str]:
    """Say what a move has done, and how to go on from there; ``named``: how one names the warehouse."""
    if report.before:
        yield f"{report.source} had moved to {report.to} before; nothing was copied."
    else:
        yield (
            f"{report.source} has moved to {report.to}: {format_quantity(report.files, 'file')}, "
            f"{report.bytes / MB:,.1f} MB, each with the same SHA-256 in both places."
        )
        if report.compared:
            yield f"  {report.copied} copied now, {report.compared} found there and compared"
        for name, rows in report.pipelines.items():
            yield f"  {name}: {format_quantity(rows, 'row')} in the master"
        yield f"  {format_quantity(report.tables, 'table')} opened in both places: the same version, files and rows"
        if report.requests:
            said = ", ".join(f"{count} {kind}" for kind, count in sorted(report.requests.items()))
            yield f"  requests: {said}"
    yield f"Use it: {named.set_to(report.to)} wherever Seamline runs, then start the streams."
    yield f"{report.source} is closed: it answers, and nothing is written there."
    yield f"  open it again, as long as nothing was done in the new place: {named.migrate('--undo')}"
    yield f"  delete it, once you are sure: {format_deletion(report.source)}"


def format_deletion(place: str) -> str:
    """Return the command that deletes a warehouse."""
    scheme, found, _ = place.partition("://")
    if not found:
        return f"rm -r {shlex.quote(place)}"
    return f"aws s3 rm --recursive {place}" if scheme == "s3" else f"delete what is below {place}/"
