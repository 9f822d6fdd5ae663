"""What machines write in turns: nothing of it is lost to another, or done twice, whatever becomes of replies."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from tests.faults.rig.store_proxy import StoreProxy, Trouble

from seamline.lake.store import bucket as buckets
from seamline.lake.store import shared_objects
from seamline.lake.store.locations import Location
from seamline.lake.store.shared_objects import Row, SharedObject, claim_place, find_shared_object
from seamline.model.errors import StoreUnavailable

pytestmark = pytest.mark.slow


def count_up(row: Row | None) -> Row:
    return {"n": (row or {}).get("n", 0) + 1}


def shared_at(place: Location) -> SharedObject:
    found = find_shared_object(place)
    assert found is not None
    return found


def test_on_disk_there_are_none(tmp_path: Path) -> None:
    """What is not in a table is one machine's there."""
    assert find_shared_object(tmp_path / "x.json") is None
    assert [claim_place(tmp_path / "late" / "x") for _ in range(2)] == [True, False]


def test_nobody_replaces_what_he_has_not_read(lake: Location) -> None:
    """Of two that go by the same content one is told that the other was first."""
    shared = shared_at(lake / "x.json")
    assert shared.read() == (None, "")
    first = shared.replace({"n": 1}, "")
    assert first
    assert shared.replace({"n": 2}, "") is None
    second = shared.replace({"n": 3}, first)
    assert second and second != first
    assert shared.replace({"n": 4}, first) is None
    assert shared.read() == ({"n": 3}, second)
    (lake / "x.json").write_bytes(b"[1, 2")
    found, tag = shared.read()
    assert (found, bool(tag)) == (None, True)
    shared.change(count_up)
    assert (shared.read()[0] or {})["n"] == 1
    # What stays as it is is not put again: requests are billed.
    before = shared.read()
    shared.change(lambda row: {"n": (row or {})["n"]})
    assert shared.read() == before


def test_what_eight_add_at_once_is_all_there(lake: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """An alert that one machine has told is not forgotten by another that looked a moment before."""
    monkeypatch.setattr(shared_objects, "ATTEMPTS", 100)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: shared_at(lake / "x.json").change(count_up), range(8)))
        assert (shared_at(lake / "x.json").read()[0] or {})["n"] == 8
        assert sum(threads.map(lambda _: claim_place(lake / "late"), range(8))) == 1


@pytest.mark.parametrize("trouble", [each for each in Trouble if each is not Trouble.TRUNCATED])
def test_a_change_is_made_once(
    shaky: Location, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch, trouble: Trouble
) -> None:
    """A reply that is lost, and a request that is done late, are found by reading."""
    monkeypatch.setattr(buckets, "UNKNOWN_AFTER", timedelta(seconds=0.5))
    shared = shared_at(shaky / "x.json")
    shared.change(count_up)
    proxy.strike(trouble, "x.json$", method="PUT", times=2, seconds=1.0)
    shared.change(count_up)
    proxy.strike(trouble, "late$", method="PUT", times=1, seconds=1.0)
    assert claim_place(shaky / "late")
    proxy.clear()
    assert proxy.struck[trouble] >= 2
    assert (shared.read()[0] or {})["n"] == 2
    assert not claim_place(shaky / "late")


def test_a_store_that_stays_away_is_an_error(
    shaky: Location, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wanted the change knows that it may not be made."""
    monkeypatch.setattr(shared_objects, "ATTEMPTS", 2)
    proxy.strike(Trouble.REFUSED, "/(x.json|late)$", method="PUT", times=99)
    with pytest.raises(StoreUnavailable):
        shared_at(shaky / "x.json").change(count_up)
    with pytest.raises(StoreUnavailable):
        claim_place(shaky / "late")
