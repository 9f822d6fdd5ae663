"""How much of what a topic keeps its oldest unread record has used up: at 1 Kafka may delete it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class UnreadRange:
    """One partition's offsets: where it begins, where reading goes on, and where it ends."""

    begins: int
    """The first offset that there is."""
    reads: int
    """The first offset that is not read."""
    ends: int
    """The offset after the last."""

    @property
    def share(self) -> float:
        """Which share of the partition's offsets is not read, 0 to 1."""
        there = self.ends - self.begins
        return min((self.ends - max(self.reads, self.begins)) / there, 1.0) if there > 0 else 0.0


@dataclass(frozen=True)
class TopicExpiry:
    """How near the oldest unread record of a topic is to its end; None where nobody knows, or all is kept."""

    time: float | None
    """Its age, as a share of the time that the topic keeps records."""
    bytes: float | None
    """The bytes from it to the partition's end, as a share of those that a partition keeps, of the worst partition."""


def find_topic_expiry(
    unread: Mapping[int, UnreadRange],
    *,
    age: float | None,
    seconds: float | None,
    bytes: int | None,
    sizes: Mapping[int, int],
) -> TopicExpiry:
    """Find how near the oldest unread record of a topic is to its end.

    ``age`` is the record's in seconds; ``seconds`` and ``bytes`` are what the topic keeps, None for ever. ``sizes`` are
    the partitions' bytes: those of a part of its offsets are taken to be in proportion.
    """
    if not any(each.share > 0 for each in unread.values()):
        return TopicExpiry(None if seconds is None else 0.0, None if bytes is None else 0.0)
    known = [sizes[part] * each.share for part, each in unread.items() if part in sizes]
    return TopicExpiry(divide(age, seconds), divide(max(known, default=None), bytes))


def divide(used: float | None, kept: float | None) -> float | None:
    """Return a share; None where either is not known. What keeps nothing has used up all."""
    if used is None or kept is None:
        return None
    return used / kept if kept > 0 else 1.0
