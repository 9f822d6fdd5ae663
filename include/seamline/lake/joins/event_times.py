"""Spans of event times as SQL has them."""

from __future__ import annotations

Times = tuple[int | None, int | None]
"""The first event time, and that before which all are, in microseconds from 1970; None for no bound."""


def within_sql(times: Times) -> str:
    """Write the condition that an event time is within bounds, as Parquet's statistics are compared."""
    first, end = times
    bounds = [f"_event_time >= make_timestamptz({first})"] if first is not None else []
    bounds += [f"_event_time < make_timestamptz({end})"] if end is not None else []
    return " AND ".join(bounds) or "true"
