"""A move taken back: the old warehouse is used again, where nothing was done in the new one."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import replace

from seamline.lake.move.destination import read_marks
from seamline.lake.move.holding import hold_pipeline, state_away, state_here
from seamline.lake.move.moving import list_warehouse
from seamline.lake.move.table_comparing import read_table_facts
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout, name_warehouse
from seamline.lake.store.file_copies import list_found_files
from seamline.lake.store.locations import Location, parse_location
from seamline.lake.store.moved_warehouses import (
    decide_move,
    delete_moved,
    is_closed_for,
    read_moved,
    read_origin,
    write_moved,
)
from seamline.lake.tables.control_table import Control, ControlTable
from seamline.model.errors import BadRange, NotFound, SetupError
from seamline.model.protocol.moving import Moved
from seamline.plan.maintain.transfers import list_pipelines, list_tables


def undo_move(source: Location, *, lost: bool = False) -> Moved:
    """Take a warehouse's move back, and return its mark; NotFound if it has not moved.

    A new place that was opened is closed first, under the lease of each pipeline. BadRange if something was done there
    since. With ``lost`` nothing is compared: a person says that it is gone.
    """
    mark, named = read_moved(source), name_warehouse(source)
    origin = read_origin(source)
    if mark is None:
        raise NotFound(
            f"The warehouse at {source} has not moved to another place.",
            hint=f"it came from {origin.source}. To take that move back, {named.set_to(origin.source)}, and run "
            f"`{named.migrate('--undo')}`."
            if origin
            else f"there is nothing to take back: {named} must name the place that a warehouse has moved from.",
        )
    if origin is not None and mark.is_back_of(origin):
        raise BadRange(
            f"{source} is a copy that was given up: the warehouse is at {mark.to}.",
            hint=f"{named.set_to(mark.to)}. What is here can be deleted.",
        )
    names = list_pipelines(list_warehouse(source))
    with ExitStack() as leases:
        for name in names:
            leases.enter_context(hold_pipeline(Layout(source, name), mark))
        if lost:
            give_up_if_there(parse_location(mark.to), mark)
        else:
            close_destination(source, parse_location(mark.to), mark)
        for name in names:
            state_here(Layout(source, name), mark)
        # Somebody may have taken it back while this process slept, and have begun another.
        if is_closed_for(source, mark):
            delete_moved(source)
    return mark


def give_up_if_there(to: Location, mark: Moved) -> None:
    """Refuse whoever is about to open a new place that is said to be gone, if it can be read after all."""
    with suppress(OSError, SetupError):
        if (origin := read_origin(to)) is not None and origin.id == mark.id:
            decide_move(to, mark.id, opened=False)


def close_destination(source: Location, to: Location, mark: Moved) -> None:
    """Close a new place that was opened; BadRange if something was done there, SetupError if it cannot be read."""
    named = name_warehouse(source)
    gone = f"if it is gone for good: `{named.migrate('--undo --lost')}`."
    onward, origin = read_marks(to, hint=gone)
    if origin is None or origin.id != mark.id:
        # The new place says that it is one before the old one is closed.
        raise SetupError(f"{to} says nothing of this move: it may not be mounted.", hint=gone)
    # Whoever is about to open it is refused from here on, however long it has slept.
    if not decide_move(to, mark.id, opened=False):
        return
    if onward is not None and onward.to != str(source):
        raise BadRange(
            f"The warehouse has moved on from {to} to {onward.to}.",
            hint=f"{named.set_to(onward.to)}.",
        )
    back = mark.back(str(source))
    with ExitStack() as leases:
        layouts = [Layout(to, name) for name in list_pipelines(list_found_files(to))]
        held = []
        for each in layouts:
            found = ControlTable.ensure(each).read().moved
            # An earlier attempt has closed the others; what was not opened yet has the mark of the move.
            if found is None or found.id == mark.id:
                held.append(leases.enter_context(hold_pipeline(each, back if found is None else mark)))
            if found is None:
                require_unused(Layout(source, each.pipeline), each)
        for kept in held:
            state_away(kept, back)
        write_moved(to, back)


def require_unused(old: Layout, new: Layout) -> None:
    """Raise BadRange if something was decided or written in a pipeline's new place."""
    ways = list_tables(f"{new.pipeline}/{way}" for way in list_found_files(new.warehouse / new.pipeline))
    changed = [way for way in ways if way.split("/")[1] != "control" and is_changed(old, new, way)]
    if not changed and read_decisions(old) == read_decisions(new):
        return
    named = name_warehouse(old.warehouse)
    raise BadRange(
        f"{new.pipeline} was used at {new.warehouse}: {changed[0] if changed else 'control'} has changed there.",
        hint=f"it goes on there. To have it here again, {named.set_to(new.warehouse)}, and run "
        f"`{named.migrate('--to')}` with an empty place. If it is given up, and what was read there may be read again: "
        f"`{named.migrate('--undo --lost')}`.",
    )


def is_changed(old: Layout, new: Layout, way: str) -> bool:
    """Return whether a table is not what it was in the old place; that it was opened is a commit of the manifest."""
    if not Table.exists(old.warehouse / way):
        return True
    before, after = (read_table_facts(each.warehouse, way) for each in (old, new))
    opened = 1 if way.split("/")[1] == "manifest" else 0
    return replace(before, version=before.version + opened) != after


def read_decisions(layout: Layout) -> Control:
    """Read what was decided about a pipeline, without what differs from place to place."""
    return replace(ControlTable.ensure(layout).read(), moved=None, lease=None, token=0)
