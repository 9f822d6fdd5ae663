"""A warehouse moved to another place: copied while it is kept still, closed, copied to the end, verified, and opened.

Until the marks are written in the old place nothing has changed for it: whoever is killed leaves a lease that runs
out, and copies. From the marks on nothing is decided, claimed or published there, and only the same move goes on, or
is taken back. The new place cannot be used before its control tables are there, which bear the mark too, until it has
said that all has arrived. So at no time do both places take writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace

from seamline.lake.move.destination import (
    begin_destination,
    find_begun_move,
    require_same_move,
    require_space,
)
from seamline.lake.move.holding import (
    Held,
    hold_pipeline,
    read_left_mark,
    state_away,
    state_finished,
    state_here,
    still_pipeline,
)
from seamline.lake.move.table_comparing import TableFacts, compare_tables
from seamline.lake.move.transferring import Tally, run_transfer
from seamline.lake.storage import durability
from seamline.lake.storage.layout import Layout, name_warehouse
from seamline.lake.store import bucket
from seamline.lake.store.file_copies import count_requests, list_found_files
from seamline.lake.store.locations import Location, delete_folder
from seamline.lake.store.moved_warehouses import (
    decide_move,
    is_closed_for,
    read_moved,
    read_origin,
    write_moved,
)
from seamline.model.errors import BadRange, Conflict, NotFound
from seamline.model.protocol.moving import Moved, MoveOrigin, MovePlan, MoveReport
from seamline.plan.maintain.transfers import (
    FoundFile,
    Transfer,
    list_pipelines,
    list_tables,
    plan_transfer,
    select_files,
)

PASSES = 10
"""So often is looked for what has changed since the last look, once nobody may write any more."""
MOVING = ("control", "claims")
"""Tables of our own lease and claims, which are written to while the others are copied."""
LAST = ("control",)
"""The table that is copied last: without it a pipeline cannot be started."""


def plan_move(source: Location, to: Location) -> MovePlan:
    """Say what a move would do; nothing is written anywhere."""
    origin = find_begun_move(source, to, require_same_move(source, to))
    found = list_warehouse(source)
    there = list_destination(to) if origin else {}
    left = Transfer() if origin and origin.arrived else plan_transfer(found, there, {})
    copied = sum(each.size for each in left.copied)
    if left.copied:
        require_space(to, copied)
    asked = sum(
        count_requests(source, each.size, writes=False) + count_requests(to, each.size, writes=False)
        for each in (*left.copied, *left.compared)
    )
    asked += sum(count_requests(to, each.size, writes=True) for each in left.copied)
    return MovePlan(
        str(source),
        str(to),
        {name: len(list_tables(found, below=name)) for name in list_pipelines(found)},
        len(found),
        sum(each.size for each in found.values()),
        len(left.copied),
        copied,
        len(left.compared),
        len(left.deleted),
        asked,
        origin is not None and not origin.given_up,
    )


def move_warehouse(
    source: Location, to: Location, *, actor: str, say: Callable[[str], object] = lambda line: None
) -> MoveReport:
    """Move a warehouse; done again after it was interrupted, it goes on.

    LeaseHeld or IntervalRunning while a stream or a build runs, OutOfStep if tables have to be repaired first,
    MovedAway if it has moved elsewhere; BadRange, SetupError or DiskFull if it cannot go to that place.
    """
    before = Counter(bucket.requests)
    moved = require_same_move(source, to)
    origin = find_begun_move(source, to, moved)
    done = origin is not None and origin.arrived
    there = list_destination(to) if origin else {}
    if not done:
        missing = plan_transfer(list_warehouse(source), there, {}).copied
        require_space(to, sum(each.size for each in missing))
    if origin is None or origin.given_up:
        origin = begin_destination(source, to, actor=actor, anew=origin is not None)
    move = Move(source, to, origin, say)
    facts = {} if done else move.copy_all(begun=moved is not None)
    open_destination(source, to, move.mark, list_pipelines(list_warehouse(source)))
    return report_move(move, facts, before, done=done)


class Move:
    """One attempt at a move, and what it has verified so far."""

    def __init__(
        self, source: Location, to: Location, origin: MoveOrigin, say: Callable[[str], object]
    ) -> None:
        self.source, self.to, self.origin, self.say = source, to, origin, say
        self.mark = origin.mark(str(to))
        self.tally = Tally()
        self.verified: dict[str, FoundFile] = {}

    def copy_all(self, *, begun: bool) -> dict[str, TableFacts]:
        """Copy and verify everything; ``begun``: an earlier attempt has left the marks. Return the tables' facts."""
        with ExitStack() as leases, ExitStack() as claims:
            held = self.hold(list_pipelines(list_warehouse(self.source)), leases, claims)
            if not begun:
                self.forget_control(each.layout.pipeline for each in held)
                self.copy(MOVING)
            write_moved(self.source, self.mark)
            names = {each.layout.pipeline for each in held}
            newer = [name for name in list_pipelines(list_warehouse(self.source)) if name not in names]
            held += self.hold(newer, leases, claims)
            for each in held:
                state_away(each, self.mark)
            claims.close()
            self.copy_until_same(LAST)
            facts = self.compare(last=False)
        self.copy_until_same(())
        return {**facts, **self.compare(last=True)}

    def hold(self, names: Iterable[str], leases: ExitStack, claims: ExitStack) -> list[Held]:
        """Keep pipelines still."""
        held = []
        for name in names:
            self.say(f"{name}: kept still while it is copied")
            each = leases.enter_context(hold_pipeline(Layout(self.source, name), self.mark))
            still_pipeline(each, self.mark, claims)
            held.append(each)
        return held

    def forget_control(self, names: Iterable[str]) -> None:
        """Delete what an earlier move, which was taken back, has left of the tables that open a pipeline.

        A table that is open, or has a mark of this move's, is of somebody who was faster: it stays.
        """
        for name in names:
            left = read_left_mark(layout := Layout(self.to, name))
            if left is not None and left.id != self.mark.id and not left.is_back_of(self.origin):
                delete_folder(layout.table("control"))

    def copy(self, without: Collection[str]) -> Transfer:
        """Copy and verify what is new or different since the last time; return what there was to do.

        Files are listed at the destination before it is asked whether it was opened: who opened it may write there.
        """
        found, there = list_warehouse(self.source, without), list_destination(self.to, without)
        origin = read_origin(self.to)
        if origin is None or origin.arrived or origin.given_up or origin.id != self.origin.id:
            raise Conflict(
                f"Another process has finished this move, or changed {self.to}.",
                hint="run this again: it says what is done.",
            )
        transfer = plan_transfer(found, there, self.verified)
        if not transfer.is_nothing:
            progress = Progress(len(transfer.copied) + len(transfer.compared), transfer.size, self.say)
            self.verified |= run_transfer(self.source, self.to, transfer, self.tally, progress.add)
        self.verified = {way: each for way, each in self.verified.items() if way in found}
        return transfer

    def copy_until_same(self, without: Collection[str]) -> None:
        """Copy until nothing is new; Conflict if files go on to change."""
        for _ in range(PASSES):
            if self.copy(without).is_nothing:
                return
        raise Conflict(
            f"Files of {self.source} are still being changed.",
            hint="end what writes there, an upkeep or another program, then run this again.",
        )

    def compare(self, *, last: bool) -> dict[str, TableFacts]:
        """Open the tables in both places, those that are copied ``last`` or all others, and compare them."""
        ours = list_pipelines(self.verified)
        tables = [
            way
            for name in ours
            for way in list_tables(self.verified, below=name)
            if (way.partition("/")[2] in LAST) is last
        ]
        return compare_tables(self.source, self.to, tables, self.verified.keys())


class Progress:
    """Says after each tenth of a pass how much of it is done."""

    def __init__(self, files: int, size: int, say: Callable[[str], object]) -> None:
        self.files, self.size, self.say = files, size, say
        self.done, self.bytes, self.tenths = 0, 0, 0

    def add(self, size: int) -> None:
        """Count a file of so many bytes."""
        self.done, self.bytes = self.done + 1, self.bytes + size
        tenths = 10 * (self.done + self.bytes) // (self.files + self.size)
        if tenths > self.tenths:
            self.tenths = tenths
            self.say(
                f"{self.done} of {self.files} files, {self.bytes / 1e6:,.1f} of {self.size / 1e6:,.1f} MB"
            )


def list_warehouse(source: Location, without: Collection[str] = ()) -> dict[str, FoundFile]:
    """List the files of a warehouse; NotFound if there is none."""
    there = list_found_files(source)
    found = select_files(there, tables=without)
    if not list_pipelines(there):
        raise NotFound(
            f"There is no warehouse at {source}.", hint=f"set {name_warehouse(source)} to where it is."
        )
    return found


def list_destination(to: Location, without: Collection[str] = ()) -> dict[str, FoundFile]:
    """List what was brought to a place so far, with what killed copies have left there."""
    return select_files(list_found_files(to), tables=without, drafts=True)


def open_destination(source: Location, to: Location, mark: Moved, pipelines: Iterable[str]) -> None:
    """Open the new place once all has arrived there; BadRange if the old one was not closed for this move.

    First it says that all has arrived, in one step. From then on nothing is copied or deleted there any more.
    LeaseHeld while somebody takes the move back.
    """
    if require_closed(source, to, mark).arrived:
        return
    names = [*pipelines]
    durability.sync_disk(to)
    with ExitStack() as leases:
        for name in names:
            leases.enter_context(hold_pipeline(Layout(source, name), mark))
        # Whoever takes the move back has the same leases: the mark is there until we are done.
        require_closed(source, to, mark)
        if not decide_move(to, mark.id, opened=True):
            raise Conflict(f"The move to {to} was taken back.", hint="run this again: it begins anew.")
        durability.sync_disk(to)
        for name in names:
            state_here(Layout(to, name), mark)
        for name in names:
            state_finished(Layout(source, name), mark)
        # Somebody may have taken it back while this process slept, and have begun another.
        if is_closed_for(source, mark):
            write_moved(source, replace(mark, arrived=True))


def require_closed(source: Location, to: Location, mark: Moved) -> Moved:
    """Return the mark by which the old place is closed; BadRange if this move has none there."""
    closed = read_moved(source)
    if closed is None or closed.id != mark.id:
        raise BadRange(
            f"{to} is a warehouse of its own by now, and {source} was used since.",
            hint="name another place; nothing was changed.",
        )
    return closed


def report_move(
    move: Move, facts: Mapping[str, TableFacts], before: Counter[str], *, done: bool
) -> MoveReport:
    """Sum up what was done; ``done``: all of it before this attempt."""
    rows = {way.split("/")[0]: each.rows for way, each in facts.items() if way.split("/")[1:] == ["master"]}
    return MoveReport(
        str(move.source),
        str(move.to),
        move.origin.id,
        rows,
        len(facts),
        len(move.verified),
        sum(each.size for each in move.verified.values()),
        move.tally.copied,
        move.tally.compared,
        move.tally.deleted,
        dict(Counter(bucket.requests) - before),
        done,
    )
