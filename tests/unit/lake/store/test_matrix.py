"""Every trouble of every kind of request, once each, while a stream, builds, upkeep and readers are at work."""

from __future__ import annotations

from random import Random

import pytest
from tests.faults.rig.store_proxy import StoreProxy
from tests.faults.rig.store_world import Company, StoreWorld, Striker, live_in_a_bucket
from tests.lives.definitions import shaped

from seamline.lake.store.locations import Location

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("impatient")]


def test_whatever_befalls_requests_no_record_is_lost_or_twice(shaky: Location, proxy: StoreProxy) -> None:
    """And no fence is lost to oneself, and no live file is deleted: the plain count is what every view answers."""
    chance = Random("a bucket")
    striker = Striker(proxy, 1, chance)
    with StoreWorld(shaped(Random("a bucket"), on=()), shaky) as world:
        live_in_a_bucket(world, striker, Company(world), chance)
    assert striker.over
