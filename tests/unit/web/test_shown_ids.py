"""Ids of what pages show: another one for all that is to be seen, and the same one while only clocks go on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.past import build
from tests.unit.shop import START, Sale, Shop, opened

from seamline.lake.imports.import_plans import save_hindrances
from seamline.lake.tables.claims_table import Claims, claim_intervals
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.stream.ask_counts import AskCount
from seamline.runtime.processes import own_process_name
from seamline.supervisor.observe import observe
from seamline.web.glance import card_halves
from seamline.web.glance.card_halves import ANSWERS, AnswersHalf, StreamHalf, load_half
from seamline.web.glance.overview import Card
from seamline.web.glance.shown_ids import digest, identify_cards, identify_pipeline, list_questions

KEY = (ANSWERS, "here", "shop")


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Shop:
    """Two days of sales, the first of them built."""
    made = opened(tmp_path, monkeypatch)
    made.epoch([Sale(1, "a", 10), Sale(1500, "a", 1)])
    build(made, "g", cut=0)
    return made


def test_what_tables_say_anew_is_another_id(shop) -> None:
    """A published generation changes nothing of what the stream says, and each page that shows it."""
    first = identify_pipeline(shop.compiled, shop.layout)
    assert identify_pipeline(shop.compiled, shop.layout) == first
    build(shop, "h", cut=0)
    assert identify_pipeline(shop.compiled, shop.layout) != first


def test_what_the_process_that_asks_says_every_second_is_no_news(shop) -> None:
    """How long rows have waited is a clock; that it is silent, or that something was answered, is news."""
    seen = observe("shop", shop.layout, shop.compiled, broker=False)
    count = AskCount(answered=1, waiting=1, oldest=1.0, at=format_utc_instant(seen.at))

    def identify(count: AskCount, later: timedelta = timedelta(0)) -> str:
        asked = replace(seen, asks={"scored": count}, at=seen.at + later)
        return digest(list_questions(shop.compiled, shop.layout, asked))

    second = timedelta(seconds=1)
    same = replace(count, oldest=2.0, at=format_utc_instant(seen.at + second))
    assert identify(same, second) == identify(count)
    assert identify(count, timedelta(minutes=2)) != identify(count)
    assert identify(replace(count, answered=2)) != identify(count)
    away = replace(count, away=1.0)
    assert identify(replace(away, away=2.0)) == identify(away) != identify(count)


def test_a_claim_and_an_import_that_is_blocked_are_news(shop) -> None:
    """Pages of plans and imports show them; that a claim is still held is none."""
    first = identify_pipeline(shop.compiled, shop.layout)
    day = shop.compiled.grid.of(START)
    with claim_intervals(shop.layout, "run", "ada", [day]):
        claimed = identify_pipeline(shop.compiled, shop.layout)
        assert Claims.ensure(shop.layout).renew("run", own_process_name())
        assert identify_pipeline(shop.compiled, shop.layout) == claimed != first
    assert identify_pipeline(shop.compiled, shop.layout) != claimed
    save_hindrances(shop.layout, {"i": "A file is gone."})
    assert identify_pipeline(shop.compiled, shop.layout) != first


def test_a_line_is_not_another_by_its_age() -> None:
    """It gets older with each look: a page would be fetched again and again although nothing has changed."""
    card = Card("shop", StreamHalf(epoch=1), AnswersHalf(debts=1), 1.0)
    first = identify_cards([card])
    assert identify_cards([replace(card, age=2.0)]) == first
    assert identify_cards([replace(card, stream=StreamHalf(epoch=2))]) != first
    assert identify_cards([replace(card, answers=AnswersHalf(debts=2))]) != first


def test_what_comes_while_answers_are_read_is_read_the_next_time(shop, monkeypatch) -> None:
    """Of which version a table was is asked before it is read, or nobody would look at it until the next commit."""
    read = card_halves.read_answers

    def read_and_write(*of) -> AnswersHalf:
        found = read(*of)
        shop.epoch([Sale(2, "a", 1)])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(card_halves, "read_answers", read_and_write)
        first = load_half(KEY, None)
    second = load_half(KEY, first)
    assert (first.debts, second.debts) == (0, 1)
    assert load_half(KEY, second) is second
