"""Every trouble of every kind of request, while all that Seamline does is done at once in one bucket."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.faults.rig.store_proxy import StoreProxy
from tests.faults.rig.store_settings import set_store
from tests.faults.rig.store_world import MATRIX, Company, StoreWorld, Striker, live_in_a_bucket
from tests.faults.rig.trial import Trial
from tests.lives.definitions import shaped
from tests.services.addresses import Bucket

from seamline.lake.store.locations import parse_location

pytestmark = pytest.mark.faults
TIMES = 5
"""Strikes of each kind and trouble by one seed: 20 by all of them."""


@pytest.mark.seeds(4)
def test_no_record_is_lost_or_twice_whatever_befalls_requests(
    seed: int, bucket: Bucket, proxy: StoreProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No fence is lost to oneself, and no live file is deleted: the plain count is what every view answers."""
    trial = Trial(f"store matrix {seed}", seed)
    place = parse_location(set_store(monkeypatch, bucket, proxy.url, tmp_path)["SEAMLINE_WAREHOUSE"])
    striker = Striker(proxy, TIMES, trial.chance)
    with StoreWorld(shaped(Random(f"{seed}"), on=()), place) as world:
        company = Company(world)
        live_in_a_bucket(world, striker, company, trial.chance)
    for each in MATRIX:
        trial.prove(
            f"{each.operation}: {each.trouble}, {striker.struck[each]} times", striker.struck[each] >= TIMES
        )
    trial.figures.update({f"{who} done": count for who, count in company.done.items()})
    trial.figures.update({f"{who} told that the store is away": count for who, count in world.away.items()})
    trial.figures["epochs"] = len(world.epochs)
    trial.close()
    print(trial.figures)
