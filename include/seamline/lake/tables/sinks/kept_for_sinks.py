"""What upkeep leaves of a serving table because a sink has still to compare it (rule 32)."""

from __future__ import annotations

from contextlib import suppress

from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location, list_names
from seamline.lake.tables.sinks.recorded_positions import list_copied_sinks, read_copy
from seamline.lake.tables.sinks.served_versions import ServedVersions
from seamline.model.errors import NotFound, SetupError
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.model.protocol.sinks.steps import find_needed_version

FOLDER = "serving"


def find_version_for_sinks(layout: Layout, view: str) -> int | None:
    """Return the version of a view's serving table from which on sinks need what it has shown; None if none does.

    A copy that cannot be read may need all of them.
    """
    positions = read_positions(layout, view)
    return 0 if positions is None else find_needed_version(positions)


def read_positions(layout: Layout, view: str) -> list[SinkPosition] | None:
    """Read where the sinks of a view stand; None if a copy cannot be read, which may be of any view."""
    positions = []
    for sink in list_copied_sinks(layout):
        try:
            copy = read_copy(layout, sink)
        except SetupError:
            return None
        if copy is not None and copy.view == view:
            positions.append(copy.position)
    return positions


def find_entry_for_sinks(layout: Layout, root: Location) -> int | None:
    """Return the oldest version of a table that sinks need; None where none does, or it is no serving table."""
    return find_version_for_sinks(layout, root.parent.name) if root.name == FOLDER else None


def list_files_for_sinks(layout: Layout, root: Location) -> set[str]:
    """List the files of a serving table that sinks need: all, if a copy cannot be read.

    A version that is gone already is in the way of no sink that needs a later one.
    """
    positions = read_positions(layout, root.parent.name)
    if positions is None:
        return {*list_names(root)}
    versions = ServedVersions(root)
    for needed in sorted({each.needed for each in positions}):
        with suppress(NotFound):
            return versions.list_shown_since(needed)
    return set()
