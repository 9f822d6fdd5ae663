"""From the states that count to the rows people read, with the word on how far each is right."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake import states
from seamline.lake.answers import Answer, IntervalAnswer
from seamline.lake.snapshot import Snapshot
from seamline.lake.types import partial_schema
from seamline.model.compiled import CompiledView
from seamline.model.intervals import EPOCH, parse_moment, stamp
from seamline.model.seam import Side, Status
from seamline.model.windows import MICROSECOND


def presented(
    snapshot: Snapshot,
    taken: pa.Table,
    panes: tuple[int, int],
    side: Side,
    intervals: Collection[str] | None,
) -> Answer:
    """Merge the states per key and window, present them, and say how far each row is right."""
    view = snapshot.view
    ways = ways_of(snapshot, taken, panes, side, intervals)
    names = partial_schema(view).names
    merged = merged_states(view, taken)
    starts = merged["pane"].combine_chunks().dictionary_encode()
    verdicts = verdicts_of(snapshot, ways, starts.dictionary, side)
    answered = pc.take(pa.array([each is not None for each in verdicts], pa.bool_()), starts.indices)
    merged, index = merged.filter(answered), starts.indices.filter(answered)
    epochs, certified, complete = (
        pc.take(pa.array([each and each[at] for each in verdicts], type), index)
        for at, type in enumerate((pa.int64(), pa.bool_(), pa.bool_()))
    )
    keys = [key.name for key in view.keys]
    table = states.present(view, merged.select(names), keep=[*keys, "pane"])
    measures = [measure.name for measure in view.measures]
    end = pc.add(merged["pane"], pa.scalar(view.window.length, pa.duration("us")))
    columns = {
        **{name: table[name] for name in keys},
        "window_start": merged["pane"],
        "window_end": end,
        **{name: table[name] for name in measures},
        "batch_part": pc.subtract(merged["rows"], merged["_speed"]),
        "speed_part": merged["_speed"],
        "epoch": epochs,
        "certified": pc.and_(certified, pc.equal(merged["_speed"], 0)),
        "complete": complete,
    }
    answer = pa.table(columns)
    order = pc.sort_indices(answer, [("window_start", "ascending"), *((name, "ascending") for name in keys)])
    return Answer(
        view=view.qualified,
        version=view.fingerprint,
        side=side,
        table=answer.take(order),
        states=merged.select(names).take(order),
        intervals=ways,
        epoch=snapshot.epoch,
        until=snapshot.until,
        manifest_version=snapshot.manifest.version,
        has_event_id=snapshot.has_event_id,
    )


def merged_states(view: CompiledView, taken: pa.Table) -> pa.Table:
    """Merge the states per key and window; ``_speed`` counts the rows that slices brought.

    Most groups have one state: only the others are merged.
    """
    schema = partial_schema(view)
    if not taken.num_rows:
        return schema.empty_table().append_column("_speed", pa.array([], pa.int64()))
    group = [*(key.name for key in view.keys), "pane"]
    values = [pc.unique(taken[name]) for name in group]
    codes = coded(taken, group, values)
    _, place, sizes = np.unique(codes, return_inverse=True, return_counts=True)
    speed = taken["rows"].to_numpy() * taken["_speed"].to_numpy()
    single = pa.array(sizes[place] == 1)
    alone = taken.filter(single).select(schema.names)
    alone = alone.append_column("_speed", pa.array(speed).filter(single))
    if alone.num_rows == taken.num_rows:
        return alone
    several = pc.invert(single)
    together = states.combine(view, [taken.filter(several).select(schema.names)])
    shared, at = np.unique(codes[several.to_numpy(zero_copy_only=False)], return_inverse=True)
    sums = np.bincount(at, weights=speed[several.to_numpy(zero_copy_only=False)]).astype(np.int64)
    found = sums[np.searchsorted(shared, coded(together, group, values))]
    return pa.concat_tables([alone, together.append_column("_speed", pa.array(found))])


def coded(table: pa.Table, group: list[str], values: list[pa.Array]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Number each row's group, by the known values of each of its columns."""
    codes = np.zeros(table.num_rows, np.int64)
    for name, known in zip(group, values, strict=True):
        codes = codes * len(known) + pc.index_in(table[name], known).to_numpy()
    return codes


def ways_of(
    snapshot: Snapshot, taken: pa.Table, panes: tuple[int, int], side: Side, wanted: Collection[str] | None
) -> dict[str, IntervalAnswer]:
    """Say for every interval that has anything within the bounds how it is answered, in order."""
    low, high = panes
    grouped = taken.group_by(["_at", "_speed"]).aggregate([("rows", "sum")]).to_pylist()
    since = {id_of(row["_at"]): row["rows_sum"] for row in grouped if row["_speed"]}
    view, manifest = snapshot.view.id, snapshot.manifest
    length = snapshot.grid.length // MICROSECOND
    ids = {id_of(row["_at"]) for row in grouped}
    for name, id in manifest.published:
        at = (parse_moment(id) - EPOCH) // MICROSECOND
        if name == view and at + length > low and at < high and (wanted is None or id in wanted):
            ids.add(id)
    return {id: way(snapshot, id, since.get(id, 0), side) for id in sorted(ids)}


def way(snapshot: Snapshot, id: str, since: int, side: Side) -> IntervalAnswer:
    """Say how one interval is answered."""
    generation = None if side is Side.SPEED else snapshot.generation(id)
    cut = generation.epoch if generation else snapshot.floor(id)
    complete_to = cut if side is Side.BATCH else max(cut, snapshot.until)
    if snapshot.building(id, side):
        status = Status.BUILDING
    elif generation is None or not generation.certified:
        status = Status.OPEN
    else:
        status = Status.DIRTY if since else Status.CERTIFIED
    return IntervalAnswer(status, cut, generation.generation if generation else "", since, complete_to)


Verdict = tuple[int, bool, bool]
"""A window's epoch, whether its intervals are certified, and whether the watermark is past its end."""


def verdicts_of(
    snapshot: Snapshot, ways: dict[str, IntervalAnswer], starts: pa.Array, side: Side
) -> list[Verdict | None]:
    """Judge windows by their starts; None where one has no answer yet."""
    size, length = snapshot.view.window.length, snapshot.grid.length // MICROSECOND
    mark = snapshot.watermark and (snapshot.watermark - EPOCH) // MICROSECOND
    judged: dict[tuple[int, int], tuple[int, bool] | None] = {}
    found: list[Verdict | None] = []
    for start in starts.cast(pa.int64()).to_pylist():
        end = start + size // MICROSECOND
        touched = (start // length, (end - 1) // length)
        if touched not in judged:
            judged[touched] = judge(snapshot, ways, range(touched[0], touched[1] + 1), side)
        known = judged[touched]
        found.append(known and (*known, mark is not None and mark >= end))
    return found


def judge(
    snapshot: Snapshot, ways: dict[str, IntervalAnswer], touched: range, side: Side
) -> tuple[int, bool] | None:
    """Judge the intervals that a window touches, counted from 1970: the least epoch, and if all are certified."""
    length = snapshot.grid.length // MICROSECOND
    ids = [id_of(number * length) for number in touched]
    found = [ways.get(id) or way(snapshot, id, 0, side) for id in ids]
    if any(each.status is Status.BUILDING for each in found):
        return None
    certified = all(each.status in (Status.CERTIFIED, Status.DIRTY) for each in found)
    return min(each.complete_to for each in found), certified


def id_of(micros: int) -> str:
    """Name the interval that starts at so many microseconds since 1970."""
    return stamp(EPOCH + timedelta(microseconds=micros))
