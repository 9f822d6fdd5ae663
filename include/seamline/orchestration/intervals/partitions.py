"""The partitions of the asset ``PIPELINE/intervals``: one event for each interval that is certified and published."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC
from typing import Any

from seamline.model.protocol.manifest import Manifest, Statement
from seamline.model.time.intervals import parse_moment
from seamline.plan.publish.awaited_intervals import is_final

KEY = "%Y-%m-%dT%H:%M:%S"
"""How Airflow's mappers read a key, if they are not told otherwise; UTC."""


def partition_key(interval: str) -> str:
    """Return the partition of an interval by its id."""
    return parse_moment(interval).astimezone(UTC).strftime(KEY)


def list_partitions(statements: Sequence[Statement], manifest: Manifest) -> dict[str, dict[str, Any]]:
    """Say for each partition that some publications complete what it has, oldest first.

    It counts where all of them that are about its interval are certified; ``correction`` says that something was
    published of it before, and ``cause`` why it was built.
    """
    by_interval: dict[str, list[Statement]] = {}
    for each in statements:
        by_interval.setdefault(each.interval, []).append(each)
    known = list_earlier_intervals(manifest, statements)
    return {
        partition_key(interval): {
            "interval": interval,
            "rows": {each.view: each.rows for each in some},
            "cut": max(each.epoch for each in some),
            "certificate": some[0].run,
            "correction": interval in known,
            "cause": some[0].reason,
        }
        for interval, some in sorted(by_interval.items())
        if all(map(is_final, some))
    }


def list_earlier_intervals(manifest: Manifest, statements: Iterable[Statement]) -> Collection[str]:
    """List the ids of the intervals of which other runs have published something: these publications came last."""
    runs = {each.interval: each.run for each in statements}
    return {
        interval
        for (_, interval), past in manifest.history.items()
        if interval in runs and any(each.run != runs[interval] for each in past)
    }


def announce(events: Any, asset: Any, partitions: dict[str, dict[str, Any]], most: int) -> None:
    """Let a task's event be one of each partition; they share what is said, of the newest ``most`` of them."""
    if partitions:
        events[asset].add_partitions([*partitions])
        events[asset].extra = {"partitions": dict([*partitions.items()][-most:])}
