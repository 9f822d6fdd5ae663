"""What a reader knows of the log when the master has gone on: followed commit by commit, or read from the ledger."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.shop import DAY, START, Sale, Shop

from seamline.lake.log import log_edges, pinned_log
from seamline.lake.log.epoch_log import known_epochs
from seamline.lake.log.master import Master
from seamline.lake.log.pinned_log import CommittedPast, past_of
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.storage import set_aside
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.table_cache import read_cached_table
from seamline.model.protocol.committed_epochs import EpochNumbers
from seamline.model.time.intervals import EPOCH
from seamline.model.time.zone_clock import MICROSECOND

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Know nothing, as a new process."""
    pinned_log._known.clear()
    yield
    pinned_log._known.clear()


def past(shop: Shop) -> CommittedPast:
    """Look at the master, and give what is known of the log."""
    log = read_cached_table(
        shop.layout.table("master"), ("log", shop.view.id), lambda table: pinned_log.log_of(table, shop.view)
    )
    assert log is not None
    return past_of(shop.layout, log)


def from_nothing(shop: Shop) -> CommittedPast:
    """Return the same as a new process sees it."""
    known = {each: pinned_log._known.get(each) for each in pinned_log._known}
    pinned_log._known.clear()
    found = past(shop)
    for each, value in known.items():
        assert value is not None
        pinned_log._known[each] = value
    return found


def told(past: CommittedPast) -> list[object]:
    """Ask for every edge in every way."""
    numbers = range(past.epoch + 2)
    return [
        *(past.edges.newest_up_to(number) for number in numbers),
        *(past.edges.mark_before(number) for number in numbers),
    ]


def test_the_edges_are_those_of_the_log(tmp_path: Path) -> None:
    """Asked of packed files, of single ones and of what is only in the master: the dull way over all rows."""
    shop, dice = Shop(tmp_path), random.Random(7)
    mark = START
    for step in range(40):
        mark += dice.choice([0, 0, 1]) * DAY
        shop.epoch(
            [Sale(step)], edge=dice.random() < 0.4, watermark=mark if step > 3 else None, ledger=step < 37
        )
        if step in (15, 25):
            maintain_tables(shop.compiled, shop.layout)
    found = past(shop)
    edges = [each for each in known_epochs(shop.layout) if each.edge and each.watermark]
    for number in range(41):
        before = [each for each in edges if each.number <= number]
        last = (before[-1].number, before[-1].committed_at) if before else None
        assert found.edges.newest_up_to(number) == last
        below = [each for each in edges if each.number < number]
        mark_before = (below[-1].watermark - EPOCH) // MICROSECOND if below else None
        assert found.edges.mark_before(number) == mark_before


def test_a_question_opens_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is before it, or after it: the ledger of years has many."""
    shop = Shop(tmp_path)
    for step in range(12):
        shop.epoch([Sale(step)], watermark=START + step * DAY)
    edges = past(shop).edges
    opened: list[int] = []
    read = log_edges.read_edge_columns
    monkeypatch.setattr(
        log_edges, "read_edge_columns", lambda group: opened.append(group.first) or read(group)
    )
    assert edges.mark_before(9) == (START + 8 * DAY - EPOCH) // MICROSECOND
    assert edges.newest_up_to(6) == (6, START + timedelta(seconds=6))
    assert opened == [8, 6]


def test_a_watermark_is_of_a_run_of_its_own_clock(tmp_path: Path) -> None:
    """Between two runs of a column another one told the time; what the first had reached is where the next goes on."""
    shop = Shop(tmp_path)
    for step in range(9):
        shop.epoch([Sale(step)], watermark=START + step * DAY)
    edges = past(shop).edges.within([(1, 3), (6, 2**62)])
    marks = [edges.mark_before(number) for number in range(10)]
    assert [mark and (EPOCH + mark * MICROSECOND - START) // DAY for mark in marks] == [
        None, None, 1, 2, 3, 3, 3, 6, 7, 8,
    ]  # fmt: skip
    assert past(shop).edges.within([]).mark_before(9) is None


def test_the_past_is_found_by_its_instant(tmp_path: Path) -> None:
    """By the files' own bounds, whichever they are in; clocks may have gone back."""
    shop, dice = Shop(tmp_path), random.Random(3)
    for step in range(30):
        shop.epoch([Sale(step)], watermark=START + step * DAY)
        if step in (10, 20):
            maintain_tables(shop.compiled, shop.layout)
    rows = list(known_epochs(shop.layout))
    table = Table.open(shop.layout.table("ledger"))
    for _ in range(40):
        instant, until = START + timedelta(seconds=dice.randrange(-2, 35)), dice.randrange(30)
        wanted = [each for each in rows if each.committed_at <= instant and each.number <= until]
        last = wanted[-1].number if wanted else None
        assert pinned_log.last_at(table, instant, until) == last
    assert [pinned_log.read_ledger_row(table, number) for number in range(30)] == rows
    assert pinned_log.read_ledger_row(table, 30) is None


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
        assert (found.epoch, found.held, told(found)) == (plain.epoch, plain.held, told(plain))
        assert not any(number in found.held for number in dead)
        assert all(number in found.held for number in shop.events)


def test_one_commit_of_the_master_is_followed_without_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is what happens between two reads of a live view, and moving a handle on is half of a read."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1)])
    past(shop)
    monkeypatch.setattr(pinned_log, "read_past", lambda *_: pytest.fail("the ledger was opened"))
    shop.epoch([Sale(1)])
    assert past(shop).held == EpochNumbers((0,), (1,))
    shop.master.table.append([])
    assert past(shop).epoch == 1


@pytest.mark.parametrize("more", [0, 1, 2])
def test_a_master_whose_end_was_set_aside_is_not_followed(tmp_path: Path, more: int) -> None:
    """A start has taken epochs out, and commits under their versions again: of what they held nothing is known."""
    shop = Shop(tmp_path)
    for _ in range(3):
        shop.epoch([Sale(1)], ledger=False)
    assert past(shop).held == EpochNumbers((0,), (2,))
    root = shop.layout.table("master")
    set_aside.set_aside(
        root, shop.master.table.version - 1, "refused records are lost", now=datetime.now(UTC)
    )
    shop.master, shop.offset = Master.open(shop.layout), 1
    shop.master.table.append([])
    for _ in range(more):
        shop.epoch([Sale(1)], ledger=False)
    assert past(shop).held == from_nothing(shop).held
    assert past(shop).epoch == (2 + more if more else 0)


def test_another_master_is_another_past(tmp_path: Path) -> None:
    """Tables that were removed and made again begin anew."""
    first, second = Shop(tmp_path / "first"), Shop(tmp_path / "second")
    for shop in (first, second):
        shop.epoch([Sale(1)])
    next(second.numbers)
    second.epoch([Sale(1)])
    assert past(first).held == EpochNumbers((0,), (0,))
    assert past(second).held == EpochNumbers((0, 2), (0, 2))
