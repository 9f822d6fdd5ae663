"""Versions pinned in the order that misses nothing: E and W(v), slices, manifest, generations (rule 11)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from seamline.lake.closing import Edges, edges_of
from seamline.lake.control import restatements
from seamline.lake.layout import Layout
from seamline.lake.manifest import ManifestTable
from seamline.lake.master import Master, ledger_row
from seamline.lake.pins import Files, look
from seamline.lake.tables import Table
from seamline.model.compiled import CompiledPipeline, CompiledView
from seamline.model.epoch import Epoch
from seamline.model.errors import BadRange, NotFound
from seamline.model.intervals import Grid, stamp
from seamline.model.manifest import Manifest, Statement
from seamline.model.restated import Restatement, about
from seamline.model.seam import NOTHING, Side
from seamline.model.stored import version_of


@dataclass(frozen=True)
class Numbers:
    """The epochs that are held, as runs ``first..last`` (both in): what no master holds is dead (rule 2)."""

    firsts: tuple[int, ...]
    lasts: tuple[int, ...]

    @classmethod
    def of(cls, runs: Iterable[tuple[int, int]]) -> Numbers:
        """Join runs that overlap or touch."""
        joined: list[list[int]] = []
        for first, last in sorted(runs):
            if joined and first <= joined[-1][1] + 1:
                joined[-1][1] = max(joined[-1][1], last)
            else:
                joined.append([first, last])
        return cls(tuple(first for first, _ in joined), tuple(last for _, last in joined))

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.firsts, number) - 1
        return at >= 0 and number <= self.lasts[at]

    def last(self, until: int) -> int:
        """Give the greatest number at or below ``until``; NOTHING where there is none."""
        at = bisect_right(self.firsts, until) - 1
        return min(until, self.lasts[at]) if at >= 0 else NOTHING


@dataclass(frozen=True)
class Log:
    """What one version of the master says: E, the newest edge, W(v), and the newest epoch's row."""

    epoch: int
    edge: int
    frontier: int
    newest: Epoch | None


@dataclass(frozen=True)
class Snapshot:
    """What one read goes by. ``until`` is the last epoch whose slices count; ``epoch`` is E, or as of when."""

    view: CompiledView
    grid: Grid
    has_event_id: bool
    dedup_within: str
    epoch: int
    until: int
    as_of: bool
    watermark: datetime | None
    edges: Edges
    held: Numbers
    slices: Files | None
    manifest: Manifest
    generations: Files | None
    restated: tuple[Restatement, ...]

    @classmethod
    def pin(
        cls,
        pipeline: CompiledPipeline,
        view: CompiledView,
        layout: Layout,
        side: Side = Side.MERGED,
        *,
        as_of: int | datetime | None = None,
        version: str = "",
    ) -> Snapshot:
        """Pin what ``side`` needs of the version that is served under the view's name, or of ``version``.

        NotFound where the stream never ran, BadRange for an unknown ``as_of``, ProtocolError for a version
        that cannot be made from its stored definition.
        """
        known = manifest_of(layout)
        pipeline, view = version_of(pipeline, known, chosen(known, view, version))
        log = look(layout.table("master"), ("log", view.id), lambda table: log_of(table, view))
        if log is None:
            raise NotFound(f"{pipeline.name} has no master yet.", hint="start its stream first.")
        held = held_numbers(layout, log)
        epoch, watermark = log.epoch, log.newest.watermark if log.newest else None
        if as_of is not None:
            epoch, watermark = moment_of(layout, log, held, as_of)
        slices = None if side is Side.BATCH else look(layout.slices(view), "files", Files.of)
        manifest = manifest_of(layout)
        if chosen(manifest, view, version) != view.id:
            return cls.pin(pipeline, view, layout, side, as_of=as_of, version=version)
        generations = None if side is Side.SPEED else look(layout.generations(view), "files", Files.of)
        return cls(
            view=view,
            grid=pipeline.grid,
            has_event_id=bool(pipeline.definition.source.event_id),
            dedup_within=pipeline.definition.source.dedup_within,
            epoch=epoch,
            until=min(epoch, log.frontier),
            as_of=as_of is not None,
            watermark=watermark,
            edges=edges(layout, log),
            held=held,
            slices=slices,
            manifest=manifest,
            generations=generations,
            restated=() if as_of is not None else restatements(layout),
        )

    def generation(self, interval: str) -> Statement | None:
        """Give the generation that answers for an interval: the published one, or the one as of then."""
        place = (self.view.id, interval)
        if not self.as_of:
            return self.manifest.published.get(place)
        known = self.manifest.history.get(place, ())
        return next((each for each in reversed(known) if each.epoch <= self.epoch), None)

    def unmade(self, generation: Statement, interval: str) -> bool:
        """Tell whether an interval was restated since a generation of it was built."""
        return bool(about(self.restated[generation.restated :], self.grid.named(interval)))

    def floor(self, interval: str) -> int:
        """Give the epoch up to which the interval's slices may be gone."""
        return self.manifest.floor(self.view.id, interval)

    def building(self, interval: str, side: Side) -> bool:
        """Tell whether an interval has no answer; BadRange where it had one that is gone by now."""
        if side is Side.SPEED:
            return False
        found, floor = self.generation(interval), self.floor(interval)
        if floor <= NOTHING or (found and (found.epoch >= floor or found.epoch >= self.until)):
            return False
        if self.as_of and not self.manifest.building(self.view.id, interval):
            raise BadRange(
                f"{self.view.qualified} {interval} cannot be answered as of epoch {self.epoch}: slices up to "
                f"{floor} are gone and no generation of then is left.",
                hint=f"ask as of epoch {floor} or later.",
            )
        return True


def log_of(table: Table, view: CompiledView) -> Log:
    """Read the master's word at the version its handle sees."""
    master = Master(table)
    held = master.epoch
    newest = None
    for depth in (1, 20):
        rows = [row for row in map(ledger_row, table.handle.history(depth)) if row and row.number <= held]
        newest = max(rows, key=lambda row: row.number, default=None)
        if newest and newest.number == held:
            break
    return Log(held, master.edge, master.frontier(view.id), newest)


def held_numbers(layout: Layout, log: Log) -> Numbers:
    """List the epochs held up to E, from the ledger and, where it lags, from the master's commits."""
    written = look(layout.table("ledger"), "numbers", written_numbers) or Numbers((), ())
    last = written.last(log.epoch)
    if last == log.epoch:
        return written
    if log.newest and log.newest.number == log.epoch and last == log.epoch - 1:
        late = [log.newest]
    else:
        late = (
            look(layout.table("master"), ("missing", last), lambda table: Master(table).missing(last)) or []
        )
    runs = [*zip(written.firsts, written.lasts, strict=True), *((row.number, row.number) for row in late)]
    return Numbers.of(runs)


def edges(layout: Layout, log: Log) -> Edges:
    """List the edges of the ledger, and the newest epoch's if it is one."""
    found = look(layout.table("ledger"), "edges", edges_of) or Edges()
    newest = log.newest
    return found.plus([(newest.number, newest.edge, newest.watermark)]) if newest else found


def written_numbers(table: Table) -> Numbers:
    """List the epochs of the ledger from its files' statistics; read them only where numbers skip."""
    files = Files.of(table)
    counts = files.actions["num_records"].to_pylist() if files.actions.num_rows else []
    runs = []
    for first, last, rows in zip(
        files.low("epoch").to_pylist(), files.high("epoch").to_pylist(), counts, strict=True
    ):
        if first is None or last - first + 1 != rows:
            return Numbers.of((number, number) for number in table.read(["epoch"])["epoch"].to_pylist())
        runs.append((first, last))
    return Numbers.of(runs)


def moment_of(layout: Layout, log: Log, held: Numbers, as_of: int | datetime) -> tuple[int, datetime | None]:
    """Give the epoch that was the last at ``as_of`` (a number, or an instant) and the watermark at it."""
    rows = look(layout.table("ledger"), "moments", moments) or {}
    rows = {
        **rows,
        **({log.newest.number: (log.newest.committed_at, log.newest.watermark)} if log.newest else {}),
    }
    if isinstance(as_of, datetime):
        found = max((n for n, (at, _) in rows.items() if at <= as_of and n <= log.epoch), default=NOTHING)
        asked = stamp(as_of)
    else:
        found = held.last(as_of) if as_of <= log.epoch else NOTHING
        asked = f"epoch {as_of}"
    if found == NOTHING:
        raise BadRange(
            f"Nothing is known as of {asked}.", hint=f"the master holds epochs up to {log.epoch}; ask within."
        )
    return found, rows[found][1] if found in rows else None


def moments(table: Table) -> dict[int, tuple[datetime, datetime | None]]:
    """Read when each epoch was committed, and the watermark at it."""
    rows: pa.Table = table.read(["epoch", "committed_at", "watermark"])
    return {
        number: (at, mark)
        for number, at, mark in zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True)
    }


def manifest_of(layout: Layout) -> Manifest:
    """Give the newest manifest; an empty one where there is none."""
    found = look(layout.table("manifest"), "state", lambda table: ManifestTable(table).read())
    return found or Manifest()


def chosen(manifest: Manifest, view: CompiledView, version: str) -> str:
    """Give the id of the version asked for, by its fingerprint; without one the served, else the view's own."""
    return f"{view.name}/{version}" if version else manifest.serving.get(view.name, view.id)
