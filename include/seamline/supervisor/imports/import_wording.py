"""What an import would do, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from seamline.lake.imports.import_options import ImportOptions
from seamline.model.time.intervals import Interval, format_utc_instant
from seamline.supervisor.imports.import_samples import SAMPLE, Sample

if TYPE_CHECKING:
    from seamline.supervisor.imports.import_planning import DraftedImport

SHOWN = 5
"""Reasons of refusals that are listed."""
FIRST_YEAR = 1
"""The year of a bound that stands for none."""


def describe_border(event_id: Sequence[str], options: ImportOptions, actor: str) -> str:
    """Say how rows that the topic has too are told from the others."""
    said = []
    if options.border:
        parts = ", ".join(f"{partition}: {offset}" for partition, offset in options.border)
        said.append(f"split by offset: rows below the offsets from which the topic is read ({parts})")
    if options.until:
        at = format_utc_instant(options.until)
        twice = "" if options.border or event_id else "; records before it that are in both count twice"
        said.append(f"split by time: rows before {at}{twice}")
    if event_id:
        said.append(f"deduplicated by event id {', '.join(event_id)}: the first copy read counts")
    return "; ".join(said) or f"none, as {actor} declared"


def describe_draft(drafted: DraftedImport) -> Iterator[str]:
    """Say in lines what an import would do."""
    plan, decision = drafted.plan, drafted.decision
    count = len({each.file.name for each in plan.files})
    yield f"{drafted.request.place}: {drafted.history.about}"
    if plan.rows:
        files = f"{count} file{'' if count == 1 else 's'}"
        yield f"  {plan.rows:,} rows of {files}, {plan.size:,} bytes, as records of {decision.topic!r}"
    else:
        yield "  no rows to import"
    if drafted.skipped:
        yield f"  skipped: {drafted.skipped:,} rows that were imported before, or are about to be"
    if drafted.left and drafted.request.until:
        at = format_utc_instant(drafted.request.until)
        yield f"  left to the topic: {drafted.left:,} rows of files that begin at {at} or later"
    yield from (f"  note: {note}" for note in drafted.notes)
    if plan.rows:
        yield f"  event times: {describe_times(decision.bounds)}"
        yield f"  overlap with the topic: {decision.border}"
        yield from describe_sample(drafted.sample, min(SAMPLE, plan.rows))


def describe_times(bounds: Interval | None) -> str:
    """Describe the event times that rows can have."""
    if bounds is None:
        return "unknown, so no interval is certified until the import is done"
    end = format_utc_instant(bounds.end)
    return (
        f"before {end}" if bounds.start.year == FIRST_YEAR else f"{format_utc_instant(bounds.start)} to {end}"
    )


def describe_sample(sample: Sample | None, looked: int) -> Iterator[str]:
    """Say what becomes of the first rows."""
    if sample is None:
        yield "  not validated in advance: the stream alone has the rules, or the schemas, that it takes"
        return
    refused = sum(sample.refused.values())
    left = looked - sample.accepted - refused
    rest = f", {left:,} are left to the topic" if left else ""
    yield f"  of the first {looked:,} rows {sample.accepted:,} are valid, {refused:,} are refused{rest}"
    for reason, rows in sorted(sample.refused.items(), key=lambda each: -each[1])[:SHOWN]:
        yield f"    {rows:,} x {reason}"
    if sample.example:
        yield f"    for example {sample.example}" + (f" ({sample.detail})" if sample.detail else "")
