"""What is said of offsets that are gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seamline.model.errors import OffsetGap, SeamlineError, TopicRecreated
from seamline.model.protocol.holes import Gap


def build_gap_error(pipeline: str, topics: Mapping[str, str], found: Sequence[Gap]) -> SeamlineError:
    """Say what is gone and what a person can do about it; ``topics`` are the ids by name."""
    listed = "; ".join(map(str, found))
    hint = (
        f"`seamline holes list {pipeline}` shows it; where the records cannot be recovered, "
        f"`seamline holes accept {pipeline} --reason ...` registers the loss and lets the stream continue."
    )
    if any(gap.end is None for gap in found):
        now = ", ".join(f"{name!r} with id {id}" for name, id in topics.items())
        return TopicRecreated(
            f"Kafka now has {now}: the topic that was read is no longer read, or was deleted and recreated. "
            f"Not read: {listed}.",
            hint=hint,
        )
    names = ", ".join(map(repr, topics))
    if all(gap.lane.of_table for gap in found):
        return OffsetGap(
            "A version that rewrites or deletes rows, or whose files or log entry are gone, cannot be read. "
            f"Not read: {listed}.",
            hint=hint,
        )
    return OffsetGap(f"Kafka has deleted records of {names} before they were read: {listed}.", hint=hint)
