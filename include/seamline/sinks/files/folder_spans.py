"""Which windows are in which folders of files, as their names say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.model.compile.sinks.file_rules import LABEL, starts_like_duration
from seamline.model.time.intervals import parse_duration
from seamline.model.time.zone_clock import MICROSECOND
from seamline.sinks.files.bucket_names import EPOCH, WINDOW

NAMED_BY = timedelta(seconds=1)
"""Of shorter pieces of time several have one name."""


def find_folder_span(span: StartRange, buckets: Sequence[str]) -> StartRange:
    """Return when the windows start that are in the same folders as those of a range."""
    size = find_piece(buckets)
    if size is None:
        return StartRange()
    start = None if span.start is None else cut_down(span.start, size)
    end = None if span.end is None else cut_down(span.end - MICROSECOND, size) + size
    return StartRange(start, end)


def may_start_in(bucket: str, buckets: Sequence[str], span: StartRange) -> bool:
    """Return whether windows of a folder may start in a range; a folder without a piece of time has any."""
    size = find_piece(buckets)
    if size is None:
        return True
    start = find_start(bucket, buckets)
    if start is None:
        return True
    before = span.end is None or start < span.end
    return before and (span.start is None or start + size > span.start)


def find_start(bucket: str, buckets: Sequence[str]) -> datetime | None:
    """Return the start of the piece of time for which a folder is named; None where it is named for none."""
    parts = [each for each, by in zip(bucket.split("/"), buckets, strict=False) if starts_like_duration(by)]
    try:
        year, month, day, *clock = map(int, parts[0].removeprefix(f"{LABEL}{WINDOW}=").split("-"))
        hour, minute, second = [*clock, 0, 0, 0][:3]
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except (ValueError, IndexError):
        return None


def find_piece(buckets: Sequence[str]) -> timedelta | None:
    """Return how long the pieces of time are after which folders are named; None where none is."""
    sizes = [max(parse_duration(each), NAMED_BY) for each in buckets if starts_like_duration(each)]
    return sizes[0] if sizes else None


def cut_down(moment: datetime, size: timedelta) -> datetime:
    """Return the start of the piece of time that has a moment."""
    return EPOCH + (moment - EPOCH) // size * size
