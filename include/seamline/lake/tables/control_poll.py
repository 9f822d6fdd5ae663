"""The control table, as those read it who look again and again: in a bucket each look is paid."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime

from seamline.lake.storage.layout import Layout
from seamline.lake.storage.log_follower import since_boot
from seamline.lake.store.locations import Location
from seamline.lake.store.promises import is_asking_free
from seamline.lake.store.seconds_setting import read_seconds_setting
from seamline.lake.tables.control_table import TTL, ControlTable
from seamline.model.protocol.control import Control, Lease
from seamline.model.recent import Recent
from seamline.runtime.sightings import Sighting, Standing

SETTING = "SEAMLINE_STORE_POLL"
EVERY = 5.0
"""Seconds: as often as a lease is renewed, which reads the table, too."""


class ControlPoll:
    """Looks at the control table: on disk at the newest version, in a bucket every so many seconds."""

    def __init__(
        self, control: ControlTable, *, every: float | None = None, clock: Callable[[], float] = since_boot
    ) -> None:
        self.control, self.clock = control, clock
        self.every = find_poll_seconds(control.table.root) if every is None else every

    def look(self) -> Control:
        """Return the state as of a moment ago; whatever else has read the table meanwhile counts, too."""
        if self.clock() - self.control.looked < self.every:
            return self.control.see()
        return self.control.read()


def find_poll_seconds(place: Location) -> float:
    """Return how many seconds may be between two looks at a table: none on disk, in a bucket by setting."""
    return read_seconds_setting(os.environ, SETTING, EVERY) if not is_asking_free(place) else 0.0


_watched: Recent[Location, Sighting] = Recent(1_024)


def find_shown_lease(layout: Layout, control: Control, *, now: datetime) -> Lease | None:
    """Find the lease to show without waiting for certainty; None if there is none.

    A process that looks more than once goes by beats; at its first look by the holder's clock, which may be wrong.
    """
    lease = control.lease
    place = layout.table("control")
    watched = _watched.get(place) or Sighting(TTL.total_seconds())
    _watched[place] = watched
    standing = watched.look(lambda: lease)
    late = lease is not None and lease.renewed is not None and lease.renewed + TTL <= now
    return None if standing is Standing.FREE or (standing is Standing.UNSURE and late) else lease
