"""Where a number has gone, in lines for people and as JSON has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from seamline.model.time.intervals import format_utc_instant
from seamline.sinks.audit.sent_numbers import ABSENT, SAME, SentNumber


def format_sent_numbers(found: Iterable[SentNumber]) -> Iterator[str]:
    """Say in lines where a number has gone."""
    for number, each in enumerate(found):
        if not number:
            yield "Sinks:"
        yield f"  {each.sink}, {each.target}: {format_sent_number(each)}"


def format_sent_number(found: SentNumber) -> str:
    """Say what is known of a row in one target."""
    return "; ".join(
        filter(None, (format_version(found), format_since(found), format_held(found), found.note))
    )


def format_version(found: SentNumber) -> str:
    """Say which version a target shows."""
    position = found.position
    if position is None:
        return "nothing has been sent yet" if not found.note else "what it shows is not known"
    version = "no version" if position.version < 0 else f"version {position.version}"
    way = f", and is on the way to {position.toward}" if position.toward is not None else ""
    newest = (
        ""
        if way or found.newest < 0
        else f" of {found.newest}"
        if found.newest > position.version
        else ", the newest"
    )
    moved = f", sent by {found.moved}" if found.moved else ""
    return f"shows {version}{newest}{way}{moved}"


def format_since(found: SentNumber) -> str:
    """Say what the row is in that version, and since when."""
    since = found.since
    if since is None:
        known = found.looked and found.position is not None and found.position.version >= 0
        return "which does not have this row" if known else ""
    at = f" of {format_utc_instant(since.at)}" if since.at else ""
    so = f"the row is so since version {since.version}{at}{'' if since.exact else ', or longer'}"
    return so if found.sent else f"{so}, and is not sent as it is now"


def format_held(found: SentNumber) -> str:
    """Say what was read back."""
    if found.held == SAME:
        return "read back, it is there"
    if found.held == ABSENT:
        return "read back, it is not there"
    if not found.columns:
        return "read back, there is a row" if found.held else ""
    said = ", ".join(f"{name} {held} in place of {shown}" for name, (held, shown) in found.columns.items())
    return f"read back, there is another: {said}"


def serialize_sent_number(found: SentNumber) -> Mapping[str, Any]:
    """Return what is known of a row in one target, as JSON has it."""
    since = found.since
    return {
        "sink": found.sink,
        "target": found.target,
        "version": found.position.version if found.position and found.position.version >= 0 else None,
        "toward": found.position.toward if found.position else None,
        "newest": found.newest if found.newest >= 0 else None,
        "moved_at": found.moved or None,
        "row_since_version": since.version if since else None,
        "row_since": format_utc_instant(since.at) if since and since.at else None,
        "row_since_exactly": since.exact if since else None,
        "sent_now": found.sent,
        "read_back": found.held or None,
        "differs": {name: {"held": held, "shown": shown} for name, (held, shown) in found.columns.items()},
        "note": found.note,
    }
