"""Ids of what pages show: another one for all that is to be seen, and the same one while only clocks go on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.past import build
from tests.unit.shop import Sale, Shop, opened

from seamline.web.glance import card_halves
from seamline.web.glance.card_halves import ANSWERS, AnswersHalf, StreamHalf, load_half
from seamline.web.glance.overview import Card
from seamline.web.glance.shown_ids import identify_cards, identify_pipeline

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
