"""Offsets that Kafka lost before they were read bound the answers that they may belong to."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.past import DAYS
from tests.unit.shop import DAY, START, Sale, Shop

from seamline.lake.log import epoch_log, pinned_log
from seamline.lake.read.answers import Answer
from seamline.lake.read.merged_read import read_merged_answer
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.time.intervals import Interval


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Two days of sales."""
    made = Shop(tmp_path)
    made.epoch([Sale(1, "a", 10), Sale(1500, "a", 1)])
    return made


def asked(shop: Shop, **more: int) -> Answer:
    """Read everything."""
    return read_merged_answer(shop.compiled, shop.view, shop.layout, ReadRequest(**more))  # type: ignore[arg-type]


def lacks(found: Answer) -> dict[str, int]:
    """Return the bound of each interval."""
    return {id: each.missing for id, each in found.intervals.items()}


def forget() -> None:
    """Be a process that has read nothing yet."""
    pinned_log._known.clear()
    epoch_log._folded.clear()


def test_an_answer_without_holes_has_no_bound(shop: Shop) -> None:
    """And says nothing of it."""
    assert lacks(asked(shop)) == {DAYS[0]: 0, DAYS[1]: 0}
    assert "lost" not in asked(shop).summary()


@pytest.mark.parametrize("how", ["each commit", "several at once", "anew"])
def test_holes_bound_what_they_may_have_touched(shop: Shop, how: str) -> None:
    """One of the first day alone, one of any: followed commit by commit, some commits later, or read anew."""
    first = Interval(START, START + DAY)
    asked(shop)
    for step in (lambda: shop.hole(7, bounds=first), lambda: shop.hole(3), lambda: shop.epoch([Sale(2)])):
        step()
        if how == "each commit":
            asked(shop)
    if how == "anew":
        forget()
    found = asked(shop)
    assert lacks(found) == {DAYS[0]: 10, DAYS[1]: 3}
    assert "A number may lack up to 10 records that Kafka had lost" in found.summary()
    assert lacks(asked(shop, as_of=1)) == {DAYS[0]: 7, DAYS[1]: 0}


@pytest.mark.parametrize("cold", [True, False])
def test_what_was_read_after_all_is_not_missing(shop: Shop, cold: bool) -> None:
    """A part of a hole, and then the rest."""
    shop.hole(5)
    assert lacks(asked(shop)) == {DAYS[0]: 5, DAYS[1]: 5}
    shop.hole(0, fills=2)
    if cold:
        forget()
    assert lacks(asked(shop)) == {DAYS[0]: 3, DAYS[1]: 3}


@pytest.mark.parametrize("cold", [True, False])
def test_an_import_is_lacking_until_it_is_done_and_says_its_border(shop: Shop, cold: bool) -> None:
    """Of the days that its rows may be of; where time alone tells its rows from the topic's, answers of them say so."""
    first = Interval(START, START + DAY)
    asked(shop)
    shop.import_rows([Sale(3, "b", 5)], bounds=first, until=START + DAY, whole=4)
    if cold:
        forget()
    found = asked(shop)
    assert lacks(found) == {DAYS[0]: 3, DAYS[1]: 0}
    assert "still to be imported" in found.summary()
    assert found.borders == (START + DAY,)
    assert "Rows of before 2013-01-02T00:00:00Z were imported" in found.summary()
    later = ReadRequest(start=START + DAY)
    assert read_merged_answer(shop.compiled, shop.view, shop.layout, later).borders == ()
    shop.import_rows([Sale(4, "b", 5)], bounds=first)
    assert lacks(asked(shop)) == {DAYS[0]: 3, DAYS[1]: 0}
    assert sum(asked(shop).table["orders"].to_pylist()) == 4
