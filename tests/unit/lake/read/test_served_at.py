"""What we answered then, in contrast to what today's publications say of then."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.past import DAYS, build
from tests.unit.shop import DAY, START, Sale, Shop, opened

from seamline.cli import main
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.read.answers import Answer
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.fenced_commits import build_commit_properties
from seamline.model.errors import BadRange
from seamline.model.protocol.manifest import Act, Statement, as_of
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side, Status

pytestmark = pytest.mark.slow


def told(shop: Shop, served_at: datetime | None = None, side: Side = Side.MERGED) -> Answer:
    return read_merged_answer(
        shop.compiled, shop.view, shop.layout, ReadRequest(served_at=served_at, side=side)
    )


def second(number: float) -> datetime:
    return START + timedelta(seconds=number)


@pytest.mark.parametrize("seed", range(2))
def test_every_answer_of_the_past_is_given_again(tmp_path: Path, seed: int) -> None:
    """Whatever is built, late, lagging or rolled back afterwards: then is then, to the last column."""
    dice = random.Random(seed)
    shop = Shop(tmp_path)
    then: dict[datetime, dict[Side, Answer]] = {}
    for number in range(8):
        sales = [
            Sale(dice.randrange(2 * 24 * 60), dice.choice("ab"), dice.randrange(50))
            for _ in range(dice.randrange(5))
        ]
        held = shop.epoch(sales, watermark=START + dice.randrange(3) * DAY)
        if dice.random() < 0.5:
            day = dice.randrange(2)
            shop.build(day, dice.randint(0, held), f"g{number}", at=second(number + 0.5))
        then[second(number + 0.9)] = {side: told(shop, side=side) for side in Side}
    for at, answers in then.items():
        for side, before in answers.items():
            again = told(shop, at, side)
            assert again.table.equals(before.table)
            assert (again.intervals, again.until) == (before.intervals, before.until)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """One sale and its generation at second 0.5; a correction at 1, built at second 1.5."""
    shop = opened(tmp_path, monkeypatch)
    shop.epoch([Sale(1, "a", 4)], watermark=START + DAY)
    build(shop, "one", cut=0, at=second(0.5))
    shop.epoch([Sale(2, "a", 6)], watermark=START + DAY)
    build(shop, "two", cut=1, at=second(1.5))
    return shop


def test_as_of_and_served_at_are_two_questions(shop: Shop) -> None:
    """Today's publications up to an epoch are not what a reader saw when that epoch was the last."""
    early = told(shop, second(0.2))
    assert [(row["total"], row["speed_part"]) for row in early.table.to_pylist()] == [(4, 1)]
    assert early.intervals[DAYS[0]].status is Status.OPEN
    now = read_merged_answer(shop.compiled, shop.view, shop.layout, ReadRequest(as_of=0))
    assert [(row["total"], row["batch_part"]) for row in now.table.to_pylist()] == [(4, 1)]
    assert "As served at 2013-01-01T00:00:00.200000Z: " in early.summary()
    assert "As of epoch 0, by what is published now: " in now.summary()
    with pytest.raises(BadRange, match="cannot be combined"):
        read_merged_answer(shop.compiled, shop.view, shop.layout, ReadRequest(as_of=0, served_at=second(0)))
    with pytest.raises(BadRange, match="No epoch is known as of 2012"):
        told(shop, START - DAY)


def test_a_generation_that_was_taken_away_is_a_clear_refusal(shop: Shop) -> None:
    """A number that is nearly the one of then would be believed."""
    Table.open(shop.layout.generations(shop.view)).handle.delete(
        "generation = 'one'", commit_properties=build_commit_properties({})
    )
    assert told(shop).table.num_rows == 1
    with pytest.raises(
        BadRange, match=r"at 2013-01-01T00:00:00.700000Z can no longer be read: 1 rows of its gen"
    ):
        told(shop, second(0.7))


def test_slices_that_were_taken_away_are_a_clear_refusal(shop: Shop) -> None:
    """An interval of which nothing is left must not look like no sales."""
    shop.state(Act.FLOOR, epoch=1, interval=DAYS[0], at=second(3))
    assert told(shop).table.num_rows == 1
    with pytest.raises(BadRange, match="slices of 2013-01-01T00:00:00Z up to epoch 1 have been removed"):
        told(shop, second(1.2))
    later = read_merged_answer(
        shop.compiled, shop.view, shop.layout, ReadRequest(served_at=second(1.2), start=START + DAY)
    )
    assert later.table.num_rows == 0


def test_between_edges_is_refused_once_slices_are_joined_and_the_edge_is_named(shop: Shop) -> None:
    """Whoever asks for nine o'clock is told the nearest instant that can still be answered."""
    shop.epoch([Sale(3, "a", 1)], watermark=START + DAY)
    for _ in range(2):
        shop.epoch([Sale(3, "a", 1)], edge=False, watermark=START + DAY)
    shop.epoch([Sale(3, "a", 1)], watermark=START + DAY)
    assert int(told(shop, second(4)).table["total"][0].as_py()) == 13
    maintain_tables(shop.compiled, shop.layout)
    with pytest.raises(BadRange) as refused:
        told(shop, second(4))
    assert "epoch 2, of 2013-01-01T00:00:02Z" in refused.value.hint
    assert int(told(shop, second(2)).table["total"][0].as_py()) == 11


def test_what_is_stated_without_an_instant_goes_with_what_came_before() -> None:
    """Clocks of several machines differ: nothing is told that says of itself that it was later."""
    said = [
        Statement(Act.PUBLISH, "v/1", seq=seq, at=at)
        for seq, at in ((1, None), (2, second(2)), (3, second(9)), (4, second(5)))
    ]
    assert [each.seq for each in as_of(said, second(5))] == [1, 2]
    assert [each.seq for each in as_of(said, second(1))] == [1]
    assert [each.seq for each in as_of(said, second(9))] == [1, 2, 3, 4]


def test_the_command_line_answers_as_then(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """The question comes by mail: what did the dashboard show at half past?"""
    at = "2013-01-01T00:00:00.700"
    assert main(["query", "shop.sales", "--served-at", at, "--format", "csv"]) == 0
    printed = capsys.readouterr()
    assert '"a",2013-01-01 00:00:00.000000Z' in printed.out and ",4," in printed.out
    assert "As served at 2013-01-01T00:00:00.700000Z" in printed.err
    assert main(["query", "shop.sales", "--served-at", at, "--as-of", "1"]) == 5
