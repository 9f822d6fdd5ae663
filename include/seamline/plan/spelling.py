"""Lengths of time, counts and errors, spelled for a line of text."""

from __future__ import annotations


def format_duration(seconds: float) -> str:
    """Write a length of time by its one or two largest units: ``0.4 s``, ``12 s``, ``3 min``, ``2 h 5 min``."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days = round(seconds / 86400)
    return f"{days:,} d"


def format_quantity(number: int, noun: str) -> str:
    """Write a number with what it counts, by a noun whose plural takes an s: ``1 table``, ``2 tables``."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def last_line(text: str) -> str:
    """Return the first line of an error and the driver's last words, without the stack between them."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    rest = lines[1:]
    words = rest[-2:] if rest and rest[-1].startswith("Hint:") else rest[-1:]
    return "; ".join([*lines[:1], *words])[:300]
