"""From the states that count to the rows people read, with the word on how far each is right."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake import states
from seamline.lake.answers import Answer, IntervalAnswer
from seamline.lake.snapshot import Snapshot
from seamline.lake.spans import micros, within
from seamline.lake.types import INSTANT
from seamline.lake.windowing import END, START, codes
from seamline.model.clock import MICROSECOND
from seamline.model.compiled import GROUPING, CompiledView
from seamline.model.intervals import EPOCH, parse_moment, stamp
from seamline.model.ruling import Bounds, Gaps
from seamline.model.seam import Phase, Side, Status


def presented(
    snapshot: Snapshot,
    taken: pa.Table,
    found: pa.Table,
    panes: Sequence[Bounds],
    side: Side,
    intervals: Collection[int] | None,
) -> Answer:
    """Present the merged states of windows, and say how far each row is right.

    ``taken`` are the states they were merged from, within the bounds ``panes``; ``intervals`` those the windows
    start in, None for all.
    """
    view = snapshot.view
    ways = ways_of(snapshot, taken, panes, side)
    first, place = np.unique(codes(found, [START, END]), return_index=True, return_inverse=True)[1:]
    windows = list(
        zip(*(found[name].take(pa.array(first)).to_pylist() for name in (START, END)), strict=True)
    )
    verdicts = verdicts_of(snapshot, ways, windows, side)
    answered = np.array([each is not None for each in verdicts], np.bool_)[place]
    merged, place = found.filter(pa.array(answered)), place[answered]
    epochs, certified, complete, closing = (
        pa.array([each and each[at] for each in verdicts], type).take(pa.array(place))
        for at, type in enumerate((pa.int64(), pa.bool_(), pa.bool_(), pa.int64()))
    )
    keys = [key.name for key in view.keys]
    measures = states.present(view, merged, keep=keys)
    corrected = pc.fill_null(pc.greater(merged["_newest"], closing), False)
    columns = {
        **({GROUPING: merged[GROUPING]} if view.grouped else {}),
        **{name: merged[name] for name in keys},
        "window_start": merged[START].cast(INSTANT),
        "window_end": merged[END].cast(INSTANT),
        **{each.name: measures[each.name] for each in view.measures},
        "batch_part": pc.subtract(merged["rows"], merged["_speed"]),
        "speed_part": merged["_speed"],
        "epoch": epochs,
        "certified": pc.and_(certified, pc.equal(merged["_speed"], 0)),
        "complete": complete,
        "phase": pc.if_else(complete, pc.if_else(corrected, Phase.LATE, Phase.COMPLETE), Phase.EARLY),
    }
    answer = pa.table(columns)
    by = [name for name in ("window_start", "window_end", GROUPING, *keys) if name in columns]
    order = pc.sort_indices(answer, [(name, "ascending") for name in by])
    kept = [pc.cast(merged[START], INSTANT), *(merged[name] for name in ["rows", *part_names(view)])]
    return Answer(
        view=view.qualified,
        version=view.fingerprint,
        side=side,
        table=answer.take(order),
        states=pa.table(kept, names=["window_start", "rows", *part_names(view)]).take(order),
        intervals=ways,
        whole=None if intervals is None else frozenset(map(id_of, intervals)),
        epoch=snapshot.epoch,
        until=snapshot.until,
        manifest_version=snapshot.manifest.version,
        has_event_id=snapshot.has_event_id,
        dedup_within=snapshot.dedup_within,
        served_at=snapshot.served_at,
        as_of=snapshot.as_of,
    )


def part_names(view: CompiledView) -> list[str]:
    """List the names of the state columns."""
    return [part.name for part in view.parts]


def ways_of(
    snapshot: Snapshot, taken: pa.Table, panes: Sequence[Bounds], side: Side
) -> dict[str, IntervalAnswer]:
    """Say for every interval that has anything within the bounds how it is answered, in order."""
    grouped = taken.group_by(["_at", "_speed"], use_threads=False).aggregate([("rows", "sum")]).to_pylist()
    since = {id_of(row["_at"]): row["rows_sum"] for row in grouped if row["_speed"]}
    view, manifest = snapshot.view.id, snapshot.manifest
    length = snapshot.grid.length // MICROSECOND
    ids = {id_of(row["_at"]) for row in grouped}
    named = [id for name, id in manifest.published if name == view]
    starts = np.array([micros(parse_moment(id)) for id in named], np.int64)
    ids.update(id for id, meets in zip(named, within(starts, panes, length).tolist(), strict=True) if meets)
    return {id: way(snapshot, id, since.get(id, 0), side) for id in sorted(ids)}


def way(snapshot: Snapshot, id: str, since: int, side: Side) -> IntervalAnswer:
    """Say how one interval is answered."""
    generation = None if side is Side.SPEED else snapshot.generation(id)
    cut = generation.epoch if generation else snapshot.floor(id)
    owned = side is Side.BATCH or (snapshot.view.counts and generation is not None)
    complete_to = cut if owned else max(cut, snapshot.until)
    if snapshot.building(id, side):
        status = Status.BUILDING
    else:
        news = bool(since) or (generation is not None and snapshot.unmade(generation, id))
        status = snapshot.manifest.standing(generation, news=news)
    named, restated = (generation.generation, generation.restated) if generation else ("", 0)
    note = generation.note if generation and status in NOTED else ""
    return IntervalAnswer(status, cut, named, since, complete_to, restated, note, missing(snapshot, id))


def missing(snapshot: Snapshot, id: str) -> int:
    """Count the offsets of holes that may belong to an interval."""
    if not snapshot.lacking:
        return 0
    span = snapshot.grid.named(id)
    return sum(count for bounds, count in snapshot.lacking.items() if bounds is None or bounds.meets(span))


NOTED = (Status.HELD, Status.PROVISIONAL, Status.UNCERTIFIED)
"""Of these a reader is told who decided, and why."""

Verdict = tuple[int, bool, bool, int | None]
"""A window's epoch, whether its intervals are certified, whether the watermark is past its end, and since when."""


def verdicts_of(
    snapshot: Snapshot,
    ways: dict[str, IntervalAnswer],
    windows: Sequence[tuple[int, int | None]],
    side: Side,
) -> list[Verdict | None]:
    """Judge windows by their bounds; None where one has no answer yet."""
    mark = micros(snapshot.watermark) if snapshot.watermark else None
    judged: dict[tuple[int, int] | None, tuple[int, bool] | None] = {}
    found: list[Verdict | None] = []
    for start, end in windows:
        touched = touching(snapshot.view, start, end)
        if touched not in judged:
            judged[touched] = judge(snapshot, ways, touched, side)
        known = judged[touched]
        complete = mark is not None and end is not None and mark >= end
        closing = snapshot.edges.closing(end, snapshot.epoch) if complete and end is not None else None
        found.append(known and (*known, complete, closing))
    return found


def touching(view: CompiledView, start: int, end: int | None) -> tuple[int, int] | None:
    """Number (from 1970) the first and the last interval on which a window depends; None for all there are.

    A session depends on what could have joined it: a gap before its first and after its last event.
    """
    length = view.interval // MICROSECOND
    if end is None:
        return None
    first = start - view.windows.gap + 1 if isinstance(view.windows, Gaps) else start
    return first // length, (end - 1) // length


def judge(
    snapshot: Snapshot, ways: dict[str, IntervalAnswer], touched: tuple[int, int] | None, side: Side
) -> tuple[int, bool] | None:
    """Judge the intervals a window depends on: the least epoch, and if all are certified; None while one builds."""
    length, found = snapshot.grid.length // MICROSECOND, list(ways.values())
    if touched is not None:
        ids = [id_of(number * length) for number in range(touched[0], touched[1] + 1)]
        found = [ways.get(id) or way(snapshot, id, 0, side) for id in ids]
    if any(each.status is Status.BUILDING for each in found):
        return None
    certified = all(each.status in (Status.CERTIFIED, Status.DIRTY, Status.HELD) for each in found)
    return min(each.complete_to for each in found), certified


def id_of(micros: int) -> str:
    """Name the interval that starts at so many microseconds since 1970."""
    return stamp(EPOCH + timedelta(microseconds=micros))
