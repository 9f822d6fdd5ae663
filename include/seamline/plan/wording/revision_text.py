"""A change of definitions in words, for a terminal and for a pull request, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from seamline.plan.revision.changed_parts import PartChange
from seamline.plan.revision.definition_diff import (
    PipelineChange,
    PipelineChangeKind,
    ViewChange,
    ViewChangeKind,
)
from seamline.plan.revision.revision_plan import PlannedChange, RevisionPlan
from seamline.plan.spelling import format_duration, format_quantity
from seamline.plan.wording.plan_text import format_bytes, serialize_plan
from seamline.plan.wording.preview_text import (
    format_preview,
    format_preview_markdown,
    quote_markdown,
    serialize_preview,
)

WORDS = {
    "measures": "measure",
    "keys": "keys",
    "window": "window",
    "where": "where of the view",
    "explode": "explode",
    "interval": "interval of the batch layer",
    "topic": "topics",
    "of": "sources of the view",
    "join": "join",
    "process": "process",
    "changelog": "changelog",
    "added": "added column",
    "record.select": "select",
    "record.side": "side",
    "record.rules": "rule",
    "record.lookups": "look-up",
    "record.bounds": "bound",
    "record.added": "added column",
    "record.where": "where of the pipeline",
    "record.transform": "transform",
    "record.schema": "schema",
    "record.format": "format",
    "record.event_time": "event time",
    "record.event_id": "event id",
    "record.start": "start",
    "record.kernel": "kernel of this release",
}
"""What parts of a fingerprint are called; what is behind the dot after one of them is a name."""
LONGEST = 100
"""Letters of a value that are shown."""


def format_part(part: str) -> str:
    """Name a part of a fingerprint; one of several sources is named with its source."""
    pieces = part.split(".")
    if pieces[:2] == ["record", "sources"] and len(pieces) > 3:
        return f"source {pieces[2]}: {format_part('.'.join(['record', *pieces[3:]]))}"
    for count in (2, 1):
        if (head := ".".join(pieces[:count])) in WORDS:
            rest = ".".join(pieces[count:])
            return f"{WORDS[head]} {rest}" if rest else WORDS[head]
    return part.removeprefix("record.")


def format_value(value: Any) -> str:
    """Write the value of a part; a measure by its kind and what it is of."""
    if value is None:
        return "none"
    if isinstance(value, dict) and "kind" in value:
        given = [
            format_value(each) for name, each in value.items() if name != "kind" and each not in ("", None)
        ]
        text = f"{value['kind']}({', '.join(given)})"
    elif isinstance(value, list):
        text = ", ".join(map(format_value, value))
    else:
        text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def format_part_change(change: PartChange) -> str:
    """Say what a part was and is."""
    return f"{format_part(change.part)}: {format_value(change.before)} -> {format_value(change.after)}"


def format_view_change(change: ViewChange) -> str:
    """Say what happens to a view."""
    match change.kind:
        case ViewChangeKind.ADDED:
            return f"new view, version {version_of(change.after)}"
        case ViewChangeKind.GONE:
            return (
                f"no longer declared; version {version_of(change.before)} is served on, and its tables stay"
            )
        case ViewChangeKind.RENAMED:
            former = change.before.partition("/")[0]
            return f"renamed from {former}: the same numbers, built once more under the new name"
        case _:
            how = ", records are validated again first" if change.record else ""
            return (
                f"new version {version_of(change.before)} -> {version_of(change.after)}, built beside the one "
                f"that is served{how}"
            )


def list_view_parts(change: ViewChange) -> list[str]:
    """Say which parts made a version new."""
    if change.kind is not ViewChangeKind.VERSION:
        return []
    return [format_part_change(each) for each in change.parts] or [
        "added columns that the records' steps use"
    ]


def version_of(id: str) -> str:
    """Return the fingerprint of ``name/fingerprint``."""
    return id.partition("/")[2]


def list_pipeline_lines(change: PipelineChange) -> Iterator[str]:
    """Say what else happens to a pipeline."""
    if change.kind is PipelineChangeKind.GONE:
        yield "no longer declared: its stream is not started again, and its tables stay"
    if change.kind is PipelineChangeKind.UNKNOWN:
        yield "only one of the two revisions has it, and a definition of the other is broken"
    if change.intervals:
        before, after = change.intervals
        yield f"intervals of {before} become {after}: a stream whose log has rows does not start with that"
    if change.settings and change.kind is PipelineChangeKind.CHANGED:
        yield f"settings that change no number: {', '.join(change.settings)}"


def format_size(planned: PlannedChange) -> str:
    """Say what is to be built; empty where nothing is."""
    if planned.unknown:
        return f"to build: not known: {planned.unknown}"
    if planned.size is None:
        return ""
    plan = planned.size.plan
    again = f"{plan.again:,} records are validated again, then " if plan.again else ""
    if not plan.builds:
        return f"to build: {again}nothing yet" if not plan.again else f"to build: {again}nothing else yet"
    took = "no past run shows how long" if plan.seconds is None else f"about {format_duration(plan.seconds)}"
    return (
        f"to build: {again}{format_quantity(len(plan.builds), 'interval')}, {plan.rows:,} rows, "
        f"at most {format_bytes(plan.bytes)} to read, {took}"
    )


def format_revision_plan(found: RevisionPlan) -> Iterator[str]:
    """Say what a change of definitions means, for a terminal."""
    yield f"compared with {found.base}"
    yield from (f"  note: {each}" for each in found.notes)
    yield from (f"  wrong in {found.base}: {each}" for each in found.diff.base_problems)
    yield from (f"  wrong now: {each}" for each in found.diff.problems)
    if not found.pipelines:
        yield "no definition has changed"
    for planned in found.pipelines:
        change = planned.change
        yield f"{change.name}: {change.kind}"
        yield from (f"  {line}" for line in list_pipeline_lines(change))
        for view in change.views:
            yield f"  {change.name}.{view.view}: {format_view_change(view)}"
            yield from (f"    {line}" for line in list_view_parts(view))
        if size := format_size(planned):
            yield f"  {size}"
        for preview in planned.previews:
            yield from (f"  {line}" for line in format_preview(preview))
    yield format_verdict(found)


def format_verdict(found: RevisionPlan) -> str:
    """Say in a line what it comes to."""
    if found.diff.problems:
        return "Not all of it is known: a definition is wrong."
    if not found.diff.builds:
        return "Nothing has to be built, and no published number changes."
    if found.differs:
        waits = any(each.waits for one in found.pipelines for each in one.previews)
        return f"Published numbers would change{', by more than approve_change' if waits else ''}."
    if any(each.intervals for one in found.pipelines for each in one.previews):
        return "Versions are to be built; no published number that was looked at would change."
    return "Versions are to be built; which published numbers change was not looked at."


def format_revision_markdown(found: RevisionPlan) -> Iterator[str]:
    """Write the same for a pull request."""
    yield "### Seamline plan"
    yield ""
    yield f"**{format_verdict(found)}** Compared with {quote_markdown(found.base)}."
    yield ""
    lines = [*(f"Note: {each}" for each in found.notes)]
    lines += [f"Wrong in {found.base}: {each}" for each in found.diff.base_problems]
    lines += [f"Wrong now: {each}" for each in found.diff.problems]
    yield from (f"- {quote_markdown(each)}" for each in lines)
    if lines:
        yield ""
    for planned in found.pipelines:
        yield from format_pipeline_markdown(planned)


def format_pipeline_markdown(planned: PlannedChange) -> Iterator[str]:
    """Write what happens to a pipeline."""
    change = planned.change
    yield f"#### {quote_markdown(change.name)}: {change.kind}"
    yield ""
    yield from (f"- {quote_markdown(line)}" for line in list_pipeline_lines(change))
    for view in change.views:
        yield f"- **{quote_markdown(view.view)}**: {quote_markdown(format_view_change(view))}"
        yield from (f"  - {quote_markdown(line)}" for line in list_view_parts(view))
    if size := format_size(planned):
        yield f"- {quote_markdown(size)}"
    yield ""
    for preview in planned.previews:
        yield from format_preview_markdown(preview)


def serialize_revision_plan(found: RevisionPlan) -> dict[str, Any]:
    """Return it as JSON has it; a size that is not known is null."""
    return {
        "base": found.base,
        "notes": list(found.notes),
        "base_problems": list(found.diff.base_problems),
        "problems": list(found.diff.problems),
        "builds": found.diff.builds,
        "differs": found.differs,
        "pipelines": [serialize_planned_change(each) for each in found.pipelines],
    }


def serialize_planned_change(planned: PlannedChange) -> dict[str, Any]:
    """Return a pipeline that changes as JSON has it."""
    change, size = planned.change, planned.size
    views = [
        {
            **asdict(each),
            "intervals": size.intervals.get(each.after) if size else None,
            "why": list_view_parts(each),
        }
        for each in change.views
    ]
    return {
        **asdict(change),
        "views": views,
        "unknown": planned.unknown,
        "plan": serialize_plan(size.plan) if size else None,
        "previews": [serialize_preview(each) for each in planned.previews],
    }
