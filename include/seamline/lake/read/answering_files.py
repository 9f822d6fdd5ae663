"""The files that answer: generations that the manifest names, and slices above the cut of their interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.engine.pane_ranges import is_within_bounds, to_unix_micros
from seamline.lake.engine.windowing import read_numpy_column
from seamline.lake.read.snapshot import Snapshot
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.table_cache import Files
from seamline.lake.store.locations import Location
from seamline.lake.tables.lapsed import lapsed_answer_error
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.seam import Side
from seamline.model.recent import Recent
from seamline.model.time.intervals import parse_moment
from seamline.model.time.window_arithmetic import Bounds
from seamline.model.time.zone_clock import MICROSECOND
from seamline.runtime.deadline import in_time


class Unsettled(Exception):
    """What was pinned does not fit together: something was replaced meanwhile. Pin again."""


@dataclass(frozen=True)
class GenerationFiles:
    """The files of generations, indexed by their intervals."""

    files: Files
    """In no particular order."""
    order: np.ndarray
    """Places in ``files``, sorted by interval id."""
    intervals: np.ndarray
    """The interval id of each place in ``order``: ascending, repeated where an interval has several files."""

    @classmethod
    def of(cls, files: Files) -> GenerationFiles:
        """Sort the files by interval."""
        names = np.array(files.partition("interval").cast(pa.string()).to_pylist(), np.str_)
        order = np.argsort(names, kind="stable")
        return cls(files, order, names[order])

    def named(self, intervals: Sequence[str]) -> Files:
        """Keep the files of some intervals."""
        low, high = (np.searchsorted(self.intervals, intervals, side) for side in ("left", "right"))
        places = [self.order[first:last] for first, last in zip(low, high, strict=True) if first < last]
        taken = np.sort(np.concatenate(places)) if places else np.array([], np.int64)
        return Files(self.files.root, self.files.version, self.files.actions.take(taken))


_marks: Recent[tuple[str, Side], tuple[Manifest, pa.Table]] = Recent(256)
"""By view and side: the newest manifest that was asked for, and what it marks."""
_placed: Recent[Location, GenerationFiles] = Recent(256)


def marks_of(snapshot: Snapshot, side: Side) -> pa.Table:
    """List the intervals with a cut of their own: ``_at`` (start in microseconds), ``_cut``, ``_generation``.

    They are listed once for each manifest; as of an epoch it depends on that too.
    """
    if snapshot.as_of:
        return list_manifest_marks(snapshot, side)
    place = (snapshot.view.id, side)
    known = _marks.get(place)
    if known is None or known[0] is not snapshot.manifest:
        known = snapshot.manifest, list_manifest_marks(snapshot, side)
        _marks[place] = known
    return known[1]


def sort_generation_files(files: Files) -> GenerationFiles:
    """Sort the files of generations, once for each version of their table."""
    known = _placed.get(files.root)
    if known is None or known.files is not files:
        known = GenerationFiles.of(files)
        _placed[files.root] = known
    return known


def list_manifest_marks(snapshot: Snapshot, side: Side) -> pa.Table:
    """List what the manifest marks."""
    manifest, view = snapshot.manifest, snapshot.view.id
    ids = {interval for name, interval in [*manifest.published, *manifest.floors] if name == view}
    rows = []
    for id in in_time(sorted(ids)):
        found = None if side is Side.SPEED else snapshot.generation(id)
        cut = found.epoch if found else snapshot.floor(id)
        rows.append(
            (
                to_unix_micros(parse_moment(id)),
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


def generation_files(snapshot: Snapshot, marks: pa.Table, panes: Sequence[Bounds]) -> Files | None:
    """Choose the files of the generations that answer, None if there are none; Unsettled if one is absent or short."""
    length = snapshot.grid.length // MICROSECOND
    inside = pa.array(is_within_bounds(read_numpy_column(marks, "_at"), panes, length))
    named = marks.filter(pc.and_(inside, pc.is_valid(marks["_generation"])))
    if not named.num_rows:
        return None
    if snapshot.generations is None:
        if pc.sum(named["_stated"]).as_py():
            raise Unsettled("generations are named, but their table does not exist")
        return None
    found = sort_generation_files(snapshot.generations).named(named["_interval"].to_pylist())
    place = pc.index_in(found.partition("interval").cast(pa.string()), named["_interval"])
    wanted = pc.take(named["_generation"], place)
    lowest, highest = (each.cast(pa.string()) for each in (found.low("generation"), found.high("generation")))
    own = pc.and_(
        pc.is_valid(place),
        pc.fill_null(pc.and_(pc.less_equal(lowest, wanted), pc.greater_equal(highest, wanted)), True),
    )
    files = Files(found.root, found.version, found.actions.filter(own))
    sure = pc.all(pc.fill_null(pc.equal(lowest, highest), False).filter(own)).as_py()
    held = files.rows if sure else count_generation_rows(files, named)
    if held != (stated := pc.sum(named["_stated"]).as_py()):
        if snapshot.served_at:
            raise lapsed_answer_error(
                snapshot.view,
                snapshot.served_at,
                f"{stated - held} rows of its generations have been removed since",
            )
        raise Unsettled(f"generations contain {held} of the {stated} rows that the manifest states")
    return files


def count_generation_rows(files: Files, named: pa.Table) -> int:
    """Count the rows of the named generations in files whose statistics do not distinguish them."""
    if not (paths := files.paths):
        return 0
    rows = 0
    by_interval: dict[str, list[str]] = {}
    for path, interval in zip(paths, files.partition("interval").to_pylist(), strict=True):
        by_interval.setdefault(interval, []).append(path)
    with register_tables(named=named.select(["_generation", "_interval"])) as con:
        for interval, some in in_time(by_interval.items()):
            # A result that is not read to its end keeps the connection from the next query.
            [(count,)] = con.execute(
                f"SELECT count(*) FROM {read_parquet_sql(some)} WHERE generation IN "
                "(SELECT _generation FROM named WHERE _interval = ?)",
                [interval],
            ).fetchall()
            rows += count
    return rows


def slice_files(snapshot: Snapshot, marks: pa.Table, panes: Sequence[Bounds]) -> Files | None:
    """Choose the files of slices that may count: epochs above the least cut, panes within the bounds."""
    if snapshot.slices is None or not snapshot.slices.actions.num_rows:
        return None
    require_slices(snapshot, panes)
    files = snapshot.slices
    least = (
        snapshot.floor("") if not marks.num_rows else min(snapshot.floor(""), pc.min(marks["_cut"]).as_py())
    )
    wanted = [
        pc.greater(files.high("to_epoch").cast(pa.int64()), least),
        pc.less_equal(files.low("from_epoch").cast(pa.int64()), snapshot.until),
    ]
    first, last = (each.cast(INSTANT).cast(pa.int64()) for each in (files.low("pane"), files.high("pane")))
    meets = [pc.and_(pc.less(first, high), pc.greater_equal(last, low)) for low, high in panes]
    if meets:
        wanted.append(reduce(pc.or_, meets))
    return files.keep(reduce(pc.and_, (pc.fill_null(each, True) for each in wanted)))


def require_slices(snapshot: Snapshot, panes: Sequence[Bounds]) -> None:
    """Raise BadRange if slices that were counted then may be gone."""
    if snapshot.served_at is None:
        return
    length = snapshot.grid.length // MICROSECOND
    for id, floor in snapshot.gone.items():
        meets = is_within_bounds(np.array([to_unix_micros(parse_moment(id))], np.int64), panes, length)[0]
        if meets and snapshot.manifest.cut(snapshot.view.id, id) < min(floor, snapshot.until):
            raise lapsed_answer_error(
                snapshot.view,
                snapshot.served_at,
                f"slices of {id} up to epoch {floor} have been removed since",
            )
