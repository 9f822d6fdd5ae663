"""The files that answer: generations that the manifest names, and slices above the cut of their interval."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.deadline import in_time
from seamline.lake.pins import Files
from seamline.lake.scans import connection, scan
from seamline.lake.snapshot import Snapshot
from seamline.lake.spans import micros, within
from seamline.lake.types import INSTANT
from seamline.lake.windowing import column
from seamline.model.clock import MICROSECOND
from seamline.model.errors import BadRange
from seamline.model.intervals import parse_moment, stamp
from seamline.model.ruling import Bounds
from seamline.model.seam import Side


class Unsettled(Exception):
    """What was pinned does not fit together: something was replaced meanwhile. Pin again."""


def marks_of(snapshot: Snapshot, side: Side) -> pa.Table:
    """List the intervals with a cut of their own: ``_at`` (start in microseconds), ``_cut``, ``_generation``."""
    manifest, view = snapshot.manifest, snapshot.view.id
    ids = {interval for name, interval in [*manifest.published, *manifest.floors] if name == view}
    rows = []
    for id in in_time(sorted(ids)):
        found = None if side is Side.SPEED else snapshot.generation(id)
        cut = found.epoch if found else snapshot.floor(id)
        rows.append(
            (
                micros(parse_moment(id)),
                cut,
                found.generation if found else None,
                found.rows if found else 0,
                id,
            )
        )
    at, cut_, generation, stated, names = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return pa.table(
        {
            "_at": pa.array(at, pa.int64()),
            "_cut": pa.array(cut_, pa.int64()),
            "_generation": pa.array(generation, pa.string()),
            "_stated": pa.array(stated, pa.int64()),
            "_interval": pa.array(names, pa.string()),
        }
    )


def generation_files(snapshot: Snapshot, marks: pa.Table, panes: Sequence[Bounds]) -> list[str]:
    """List the files of the generations that answer; Unsettled where one is absent or short."""
    length = snapshot.grid.length // MICROSECOND
    inside = pa.array(within(column(marks, "_at"), panes, length))
    named = marks.filter(pc.and_(inside, pc.is_valid(marks["_generation"])))
    if not named.num_rows:
        return []
    if snapshot.generations is None:
        if pc.sum(named["_stated"]).as_py():
            raise Unsettled("generations are named and there is no table of them")
        return []
    place = pc.index_in(snapshot.generations.partition("interval").cast(pa.string()), named["_interval"])
    wanted = pc.take(named["_generation"], place)
    lowest, highest = (
        each.cast(pa.string())
        for each in (snapshot.generations.low("generation"), snapshot.generations.high("generation"))
    )
    own = pc.and_(
        pc.is_valid(place),
        pc.fill_null(pc.and_(pc.less_equal(lowest, wanted), pc.greater_equal(highest, wanted)), True),
    )
    files = Files(
        snapshot.generations.root, snapshot.generations.version, snapshot.generations.actions.filter(own)
    )
    sure = pc.all(pc.fill_null(pc.equal(lowest, highest), False).filter(own)).as_py()
    held = files.rows if sure else counted(files, named)
    if held != (stated := pc.sum(named["_stated"]).as_py()):
        if snapshot.served_at:
            raise gone(snapshot, f"{stated - held} rows of its generations were taken away since")
        raise Unsettled(f"generations hold {held} rows of the {stated} that the manifest states")
    return files.paths


def counted(files: Files, named: pa.Table) -> int:
    """Count the rows of the named generations in files whose statistics do not tell them apart."""
    if not (paths := files.paths):
        return 0
    con = connection()
    con.register("named", named.select(["_generation", "_interval"]))
    rows = 0
    by_interval: dict[str, list[str]] = {}
    for path, interval in zip(paths, files.partition("interval").to_pylist(), strict=True):
        by_interval.setdefault(interval, []).append(path)
    for interval, some in in_time(by_interval.items()):
        # A result that is not read to its end keeps the connection from the next query.
        [(count,)] = con.execute(
            f"SELECT count(*) FROM {scan(some)} WHERE generation IN "
            "(SELECT _generation FROM named WHERE _interval = ?)",
            [interval],
        ).fetchall()
        rows += count
    return rows


def slice_files(snapshot: Snapshot, marks: pa.Table, panes: Sequence[Bounds]) -> list[str]:
    """List the files of slices that may count: epochs above the least cut, panes within the bounds."""
    if snapshot.slices is None or not snapshot.slices.actions.num_rows:
        return []
    require_slices(snapshot, panes)
    files = snapshot.slices
    least = min([snapshot.floor(""), *marks["_cut"].to_pylist()])
    wanted = [
        pc.greater(files.high("to_epoch").cast(pa.int64()), least),
        pc.less_equal(files.low("from_epoch").cast(pa.int64()), snapshot.until),
    ]
    first, last = (each.cast(INSTANT).cast(pa.int64()) for each in (files.low("pane"), files.high("pane")))
    meets = [pc.and_(pc.less(first, high), pc.greater_equal(last, low)) for low, high in panes]
    if meets:
        wanted.append(reduce(pc.or_, meets))
    return files.keep(reduce(pc.and_, (pc.fill_null(each, True) for each in wanted))).paths


def require_slices(snapshot: Snapshot, panes: Sequence[Bounds]) -> None:
    """Raise BadRange where slices that were counted then may be gone."""
    length = snapshot.grid.length // MICROSECOND
    for id, floor in snapshot.gone.items():
        meets = within(np.array([micros(parse_moment(id))], np.int64), panes, length)[0]
        if meets and snapshot.manifest.cut(snapshot.view.id, id) < min(floor, snapshot.until):
            raise gone(snapshot, f"slices of {id} up to epoch {floor} were taken away since")


def gone(snapshot: Snapshot, why: str) -> BadRange:
    """Say that an answer of the past cannot be given any more."""
    assert snapshot.served_at
    return BadRange(
        f"What {snapshot.view.qualified} answered at {stamp(snapshot.served_at)} cannot be told: {why}.",
        hint="ask for a later instant, or for intervals of which all is kept (seamline history).",
    )
