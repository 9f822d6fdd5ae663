"""What no metric can be made of: alerts on absent ones would never come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from seamline.supervisor.metrics.metric_families import Family


@dataclass(frozen=True)
class Unread:
    """Whether parts of a pipeline could be read at the last look."""

    pipeline: str
    """The pipeline's name."""
    parts: Mapping[str, bool]
    """By part whether it could not."""


UNREAD_FAMILIES: tuple[Family[Unread], ...] = (
    Family(
        "seamline_metrics_unread",
        "1 if a part of the metrics (answers, sinks, topics) could not be read at the last look, and so is absent.",
        lambda found: (((part,), float(unread)) for part, unread in found.parts.items()),
        ("part",),
    ),
)


def list_unread(pipelines: Iterable[str], parts: Mapping[str, Callable[[], Iterable[str]]]) -> list[Unread]:
    """Tell of each pipeline which parts could not be read; each part lists those of which it could not be."""
    unread = {part: {*told()} for part, told in parts.items()}
    return [Unread(name, {part: name in those for part, those in unread.items()}) for name in pipelines]
