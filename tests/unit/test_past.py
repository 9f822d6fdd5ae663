"""What a reader knows of the log when the master has gone on: followed commit by commit, or read from the ledger."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.shop import DAY, START, Sale, Shop

from seamline.lake import logs
from seamline.lake.logs import Numbers, Past, past_of
from seamline.lake.pins import look

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Know nothing, as a new process."""
    logs._known.clear()
    yield
    logs._known.clear()


def past(shop: Shop) -> Past:
    """Look at the master, and give what is known of the log."""
    log = look(
        shop.layout.table("master"), ("log", shop.view.id), lambda table: logs.log_of(table, shop.view)
    )
    assert log is not None
    return past_of(shop.layout, log)


def from_nothing(shop: Shop) -> Past:
    """Give the same as a new process sees it."""
    known = dict(logs._known)
    logs._known.clear()
    found = past(shop)
    logs._known.update(known)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_following_the_master_is_reading_the_ledger(tmp_path: Path, seed: int) -> None:
    """Whatever comes: dead numbers, several epochs between two looks, a ledger that lags, commits without an epoch."""
    dice, shop = random.Random(seed), Shop(tmp_path)
    repaired = shop.epoch([Sale(1)])
    dead: list[int] = []
    for step in range(25):
        for _ in range(dice.choice([1, 1, 1, 2, 3])):
            match dice.randrange(6):
                case 0:
                    dead.append(next(shop.numbers))
                case 1:
                    shop.master.table.append([])
                case 2 if max(shop.events) > repaired:
                    shop.ledger.append(shop.master.missing(repaired))
                    repaired = max(shop.events)
                case _:
                    kept = repaired == max(shop.events) and dice.random() < 0.8
                    held = shop.epoch(
                        [Sale(step)], edge=dice.random() < 0.5, watermark=START + step * DAY, ledger=kept
                    )
                    repaired = held if kept else repaired
        found, plain = past(shop), from_nothing(shop)
        assert (found.epoch, found.held, found.edges) == (plain.epoch, plain.held, plain.edges)
        assert not any(number in found.held for number in dead)
        assert all(number in found.held for number in shop.events)


def test_one_commit_of_the_master_is_followed_without_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is what happens between two reads of a live view, and moving a handle on is half of a read."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1)])
    past(shop)
    monkeypatch.setattr(logs, "read_past", lambda *_: pytest.fail("the ledger was opened"))
    shop.epoch([Sale(1)])
    assert past(shop).held == Numbers((0,), (1,))
    shop.master.table.append([])
    assert past(shop).epoch == 1


def test_another_master_is_another_past(tmp_path: Path) -> None:
    """Tables that were removed and made again begin anew."""
    first, second = Shop(tmp_path / "first"), Shop(tmp_path / "second")
    for shop in (first, second):
        shop.epoch([Sale(1)])
    next(second.numbers)
    second.epoch([Sale(1)])
    assert past(first).held == Numbers((0,), (0,))
    assert past(second).held == Numbers((0, 2), (0, 2))
