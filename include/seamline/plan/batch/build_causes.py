"""What makes an interval one to build, view by view."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from seamline.model.protocol.manifest import How, Manifest
from seamline.model.protocol.restated_views import Restated
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Grid, Interval
from seamline.model.time.reached_intervals import Spanning
from seamline.plan.batch.interval_arrivals import Arrivals, find_first_arrival


class Kind(StrEnum):
    """What makes an interval one to build; several may apply at once."""

    ASKED = "asked for"
    NEVER = "never built"
    CHANGED = "definition changed"
    RESTATED = "restated"
    LATE = "late rows"
    JOINED = "derived rows changed"
    CLOSED = "closed since it was published"
    RAISED = "to be built above its floor"


@dataclass(frozen=True)
class Cause:
    """One reason to build an interval."""

    kind: Kind
    """The kind of reason."""
    view: str = ""
    """The view version, ``name/fingerprint``. Empty for the whole interval, where it was asked for."""
    cut: int = NOTHING
    """The cut of what is published of the view, NOTHING where nothing is."""
    since: int = NOTHING
    """The epoch that made the interval dirty."""
    rows: int = 0
    """Late rows from then on, or joined ones that they have added."""
    names: tuple[str, ...] = ()
    """The look-ups that were restated, or the view that changed."""


def list_rowless_intervals(
    manifest: Manifest, view: str, grid: Grid, with_rows: Collection[str], reach: int
) -> Iterator[str]:
    """List the intervals beside those ``with_rows`` that a version born later must have built all the same.

    Windows that touch one, and an interval with rows, are not answered before: nothing but a build shows that the
    version has missed no row there.
    """
    for id in with_rows if reach and manifest.births.get(view) else ():
        start = grid.named(id).start
        for step in range(-reach, reach + 1):
            other = grid.of(start + step * grid.length)
            if (
                other.start >= grid.start
                and other.id not in with_rows
                and manifest.is_building(view, other.id)
            ):
                yield other.id


def causes_of(
    manifest: Manifest,
    views: Collection[str],
    interval: Interval,
    arrivals: Arrivals,
    restated: Restated,
    built: Collection[tuple[str, str]],
    derived: Mapping[str, Arrivals],
    spanning: Spanning,
    *,
    closed: bool,
) -> Iterator[Cause]:
    """List what makes an interval dirty, view by view; nothing for a clean one.

    ``built`` are the (name of a view, interval id) of which some version is published; ``derived`` are the arrivals of
    views whose rows are derived; ``spanning`` are those whose rows may be in intervals without accepted ones.
    """
    for view in views:
        name = view.partition("/")[0]
        if (view, interval.id) not in manifest.published:
            first = find_first_arrival(arrivals, restated.grid, interval, spanning.get(view))
            if (name, interval.id) in built:
                born = manifest.births.get(view, first)
                yield Cause(Kind.CHANGED, view, since=max(born, first), names=(name,))
            elif first > NOTHING:
                yield Cause(Kind.NEVER, view, since=first)
            elif manifest.is_building(view, interval.id):
                yield Cause(Kind.NEVER, view, since=manifest.floor(view, interval.id))
            continue
        cut = manifest.cut(view, interval.id)
        if manifest.is_building(view, interval.id):
            yield Cause(Kind.RAISED, view, cut, since=cut)
        if decisions := restated.list_new(manifest, [view], interval):
            names = tuple(sorted({each.lookup for each in decisions}))
            yield Cause(Kind.RESTATED, view, cut, since=min(each.epoch for each in decisions), names=names)
        if closed and manifest.published[view, interval.id].how is How.PROVISIONAL:
            yield Cause(Kind.CLOSED, view, cut, since=cut)
        mine = derived.get(view, arrivals)
        if (since := mine.since(interval.id, after=cut)) > NOTHING:
            rows = mine.total(interval.id) - mine.rows(interval.id, until=cut)
            kind = Kind.JOINED if view in derived else Kind.LATE
            yield Cause(kind, view, cut, since=since, rows=rows)
