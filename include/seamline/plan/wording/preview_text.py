"""A preview in words: for a terminal, for a pull request, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from seamline.plan.revision.preview import Example, MeasureChange, ViewPreview
from seamline.plan.spelling import format_quantity

NAMED = 3
"""So many intervals that were not looked at are named for a reason."""


def format_preview(found: ViewPreview) -> Iterator[str]:
    """Say what would change of a view, for a terminal."""
    yield f"{found.view}: {format_preview_head(found)}"
    if found.why:
        return
    yield from (f"  {line}" for line in list_preview_notes(found))
    for each in found.measures:
        yield f"  {each.name}: {format_measure_change(each)}"
        for example in each.examples:
            yield f"    {format_example_values(example)}  {format_place(example)}"


def format_preview_head(found: ViewPreview) -> str:
    """Say in a line what would change, and of how much was looked at."""
    if found.why:
        return f"no preview: {found.why}"
    looked = f"over {len(found.intervals)} of {format_quantity(found.published, 'published interval')}"
    if not found.intervals:
        return (
            f"no preview: none of {format_quantity(found.published, 'published interval')} could be looked at"
        )
    if not found.differs:
        return f"no published number would change, {looked}"
    return f"{found.changed:,} rows changed, {found.gone:,} gone, {found.new:,} new, {found.equal:,} equal, {looked}"


def list_preview_notes(found: ViewPreview) -> Iterator[str]:
    """Say what else is to be known of a preview."""
    if found.waits:
        yield (
            f"a person must approve it: it changes by {format_share(found.largest)}, "
            f"approve_change is {format_share(found.limit)}"
        )
    if found.lost:
        yield f"measures that are gone: {', '.join(found.lost)}"
    if found.added:
        yield f"new measures: {', '.join(found.added)}"
    reasons: dict[str, list[str]] = {}
    for interval, why in found.skipped.items():
        reasons.setdefault(why, []).append(interval)
    for why, ids in reasons.items():
        more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
        yield f"not looked at: {', '.join(ids[:NAMED])}{more}: {why}"


def format_measure_change(change: MeasureChange) -> str:
    """Say how much a measure changes."""
    rows = f"{format_quantity(change.rows, 'row')} changed"
    sizes = [
        *([f"{change.absolute:+,g}"] if change.absolute is not None else []),
        *([format_signed_share(change.relative)] if change.relative is not None else []),
    ]
    return f"{rows}, at most {' and '.join(sizes)}" if sizes else rows


def format_example_values(example: Example) -> str:
    """Write a number before and after."""
    share = f" ({format_signed_share(example.relative)})" if example.relative is not None else ""
    return f"{example.before} -> {example.after}{share}"


def format_place(example: Example) -> str:
    """Write where a number is."""
    return ", ".join(f"{name}={value}" for name, value in example.place.items())


def format_share(share: float) -> str:
    """Write a share in percent."""
    return f"{100 * share:,.3g} %"


def format_signed_share(share: float) -> str:
    """Write a change in percent, with its sign."""
    return f"{100 * share:+,.3g} %"


def format_preview_markdown(found: ViewPreview) -> Iterator[str]:
    """Write what would change of a view for a pull request."""
    yield f"**{quote_markdown(found.view)}**: {format_preview_head(found)}."
    yield ""
    if found.why:
        return
    notes = [*list_preview_notes(found)]
    yield from (f"- {quote_markdown(each)}" for each in notes)
    if notes:
        yield ""
    if found.measures:
        yield "| measure | rows changed | largest change | as a share | largest examples |"
        yield "| --- | ---: | ---: | ---: | --- |"
        for each in found.measures:
            yield format_measure_row(each)
        yield ""


def format_measure_row(change: MeasureChange) -> str:
    """Write a measure's line of the table."""
    examples = "<br>".join(
        quote_markdown(f"{format_example_values(one)} at {format_place(one)}") for one in change.examples
    )
    absolute = "" if change.absolute is None else f"{change.absolute:+,g}"
    relative = "" if change.relative is None else format_signed_share(change.relative)
    return f"| {quote_markdown(change.name)} | {change.rows:,} | {absolute} | {relative} | {examples} |"


def quote_markdown(text: str) -> str:
    """Write text so that no letter of it means anything in Markdown, a table or HTML."""
    flat = " ".join(text.split())
    for letter in "\\`*_[]|#~":
        flat = flat.replace(letter, f"\\{letter}")
    return flat.replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;")


def serialize_preview(found: ViewPreview) -> dict[str, Any]:
    """Return a preview as JSON has it; shares are 0.1 for ten percent."""
    return {
        **asdict(found),
        "measures": [asdict(each) for each in found.measures],
        **{name: getattr(found, name) for name in ("equal", "changed", "gone", "new", "differs")},
        "largest": found.largest,
        "waits": found.waits,
    }
