"""Every trouble of every kind of request, once each, while a stream, builds, upkeep and readers are at work."""

from __future__ import annotations

from random import Random

import pytest
from tests.faults.rig.store_proxy import StoreProxy
from tests.faults.rig.store_striker import Striker
from tests.faults.rig.store_world import Company, StoreWorld, live_in_a_bucket
from tests.lives.definitions import shaped

from seamline.lake.store.locations import Location

DELAYS = (0.7,)
"""Longer than an impatient client waits for a commit."""
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("impatient")]


def test_whatever_befalls_requests_no_record_is_lost_or_twice(shaky: Location, proxy: StoreProxy) -> None:
    """And no fence is lost to oneself, and no live file is deleted: the plain count is what every view answers."""
    chance = Random("a bucket")
    striker = Striker(proxy, 1, chance, DELAYS, pause=0.1)
    with StoreWorld(shaped(Random("3"), on=()), shaky) as world:
        world.start()
        live_in_a_bucket(world, striker, Company(world, pause=1.0), chance, epochs=3)
    assert striker.over
