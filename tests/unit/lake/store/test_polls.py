"""What those ask of a store who look all the time: the supervisor, and its driver."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from seamline.lake.storage.layout import Layout
from seamline.lake.store.bucket import requests
from seamline.lake.store.locations import Location
from seamline.lake.tables.control_poll import ControlPoll
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.runtime.processes import boot_clock_seconds

pytestmark = pytest.mark.slow
NOW = datetime(2026, 1, 6, tzinfo=UTC)


def want_stop(layout: Layout) -> None:
    """Ask, as another process does, for the stream to stop."""
    ControlTable.ensure(layout).want(Desired.STOPPED, actor="ann", reason="", now=NOW)


def test_a_look_at_a_bucket_is_seldom_a_request(lake: Location) -> None:
    """Two looks a second by each process were fifteen requests a second, of a stream that does nothing."""
    layout, later = Layout(lake, "shop"), 0.0
    control = ControlTable.ensure(layout)
    lease = control.take("host:1:1", now=NOW)
    poll = ControlPoll(control, clock=lambda: boot_clock_seconds() + later)
    want_stop(layout)
    before = Counter(requests)
    assert {poll.look().desired for _ in range(20)} == {Desired.UNSET}
    assert requests == before
    later = poll.every
    assert poll.look().desired is Desired.STOPPED
    assert Counter(requests) - before == {"get": 2}
    # What a renewal reads need not be looked at again.
    before, later = Counter(requests), 0.0
    control.renew(lease, now=NOW)
    assert Counter(requests) - before == {"get": 1, "create": 1}
    assert poll.look().lease == control.see().lease
    assert Counter(requests) - before == {"get": 1, "create": 1}


def test_how_often_is_a_setting(lake: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever pays for it may have a stream that obeys at once."""
    layout = Layout(lake, "shop")
    monkeypatch.setenv("SEAMLINE_STORE_POLL", "0")
    poll = ControlPoll(ControlTable.ensure(layout))
    assert poll.look().desired is Desired.UNSET
    want_stop(layout)
    assert poll.look().desired is Desired.STOPPED


def test_on_disk_each_look_is_at_the_newest(tmp_path: Path) -> None:
    """To look there costs nothing."""
    layout = Layout(tmp_path, "shop")
    poll = ControlPoll(ControlTable.ensure(layout))
    assert poll.look().desired is Desired.UNSET
    want_stop(layout)
    assert poll.look().desired is Desired.STOPPED
