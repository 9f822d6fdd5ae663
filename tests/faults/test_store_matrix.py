"""Every trouble of every kind of request, while all that Seamline does is done at once in one bucket."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.faults.rig.store_proxy import StoreProxy
from tests.faults.rig.store_settings import set_store
from tests.faults.rig.store_striker import MATRIX, Striker
from tests.faults.rig.store_world import DELETED, Company, StoreWorld, live_in_a_bucket
from tests.faults.rig.trial import Trial
from tests.lives.definitions import shaped
from tests.services.addresses import Bucket

from seamline.lake.store.locations import parse_location

pytestmark = pytest.mark.faults
TIMES = 20
"""Strikes of each trouble on each kind of request, by each seed."""
EPOCHS = 20
"""A life has so many at least."""
FILES = 3
"""So many are deleted in it by upkeep, at least."""


@pytest.mark.seeds(1, 4)
def test_no_record_is_lost_or_twice_whatever_befalls_requests(
    seed: int,
    trial: Trial,
    bucket: Bucket,
    proxy: StoreProxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No fence is lost to oneself, and no live file is deleted: the plain count is what every view answers."""
    place = parse_location(set_store(monkeypatch, bucket, proxy.url, tmp_path)["SEAMLINE_WAREHOUSE"])
    striker = Striker(proxy, TIMES, trial.chance, pause=1.0)
    with StoreWorld(shaped(Random(f"{seed}"), on=()), place) as world:
        company = Company(world, pause=0.3)
        live_in_a_bucket(world, striker, company, trial.chance, epochs=EPOCHS, deleted=FILES)
    for each in MATRIX:
        trial.prove(f"{each.label}, {striker.struck[each]} times", striker.struck[each] >= TIMES)
    trial.prove(f"{company.done[DELETED]} {DELETED}", company.done[DELETED] >= FILES)
    trial.figures["strikes in all"] = sum(striker.struck.values())
    trial.figures["strikes of what was struck least"] = min(striker.struck[each] for each in MATRIX)
    trial.figures.update(company.done)
    trial.figures.update({f"{who} told that the store is away": count for who, count in world.away.items()})
    trial.figures["epochs"] = len(world.epochs)
    trial.figures["seconds"] = trial.seconds
