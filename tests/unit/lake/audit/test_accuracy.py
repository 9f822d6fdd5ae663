"""How far first answers were from the final ones, by age, computed by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.shop import DAY, START, Sale, Shop

from seamline.lake.audit.answer_accuracy import last_intervals, measure_answer_accuracy
from seamline.lake.store.locations import Location
from seamline.lake.tables import audits_table
from seamline.lake.tables.audits_table import Audits, audits_of
from seamline.model.protocol.audit import Audit
from seamline.model.time.intervals import Interval
from seamline.plan.wording.audit_text import audit_of
from seamline.serve.trust.published_answers import read_trust
from seamline.supervisor.auditing import measure_served_accuracy

HOUR = 3600
FIRST = Interval(START, START + DAY)


@pytest.fixture
def shop(warehouse: Location) -> Shop:
    """One window of an hour: a in time, more of a an hour after it, b seven hours after it.

    An epoch is held as many seconds after the start of all as its number says.
    """
    made = Shop(warehouse)
    made.epoch([Sale(1, "a", 10)], number=0)
    made.epoch([Sale(2, "a", 5)], number=2 * HOUR)
    made.epoch([Sale(3, "b", 1)], number=8 * HOUR)
    return made


def test_answers_grow_until_they_are_final(shop: Shop) -> None:
    """What is not there yet is told apart from what moves."""
    found = measure_answer_accuracy(shop.compiled, shop.view, shop.layout, FIRST)
    minutes = timedelta(minutes=1)
    total = {each.age // minutes: (each.there, each.typical) for each in found if each.measure == "total"}
    assert total == {
        0: (0.5, 0.5),
        1: (0.5, 0.5),
        10: (0.5, 0.5),
        60: (0.5, 0.0),
        360: (0.5, 0.0),
        1440: (1.0, 0.0),
    }
    largest = [each.typical for each in found if each.measure == "largest"]
    assert largest == [0.0] * 6
    assert {each.places for each in found} == {2}


def test_what_is_looked_at_is_what_has_rows(shop: Shop) -> None:
    """An empty warehouse has nothing to say, and neither has a span without rows."""
    assert last_intervals(shop.compiled, shop.layout) == FIRST
    later = Interval(START + 9 * DAY, START + 10 * DAY)
    assert measure_answer_accuracy(shop.compiled, shop.view, shop.layout, later) == []


def test_an_audit_records_what_its_views_were_like(shop: Shop) -> None:
    """As the command shows it; a view that has nothing to compare is left out, and the table gives it back."""
    found = measure_served_accuracy(shop.compiled, shop.layout, None)
    assert found == {"sales": tuple(measure_answer_accuracy(shop.compiled, shop.view, shop.layout, FIRST))}
    later = Interval(START + 9 * DAY, START + 10 * DAY)
    assert measure_served_accuracy(shop.compiled, shop.layout, later) == {}
    audit = Audit("shop", START, 0.1, "ada", 0, (), {}, {}, (), (), accuracy=found)
    Audits.ensure(shop.layout).append(audit)
    assert audits_of(shop.layout) == [audit]


def test_metrics_show_the_newest_intervals_whatever_was_audited_last(shop: Shop) -> None:
    """An audit of an old span, and one that found nothing to compare, came later: metrics showed the old span."""
    now = START + 30 * DAY
    ages = measure_answer_accuracy(shop.compiled, shop.view, shop.layout, FIRST)
    old, new, later = ({"sales": (replace(ages[0], places=places),)} for places in (1, 2, 3))
    whole = Audit("shop", now, 0.1, "ada", 0, (), {}, {}, (), (), accuracy=new)
    of_old = replace(whole, at=now + DAY, span=str(FIRST), accuracy=old)
    of_nothing = replace(whole, at=now + 2 * DAY, accuracy={})
    table = Audits.ensure(shop.layout)
    for each in (whole, of_old, of_nothing, replace(of_old, at=now + 3 * DAY)):
        table.append(each)
    assert read_trust(shop.compiled, shop.layout).accuracy == new
    span = str(Interval(now + 3 * DAY, now + 4 * DAY))
    table.append(replace(whole, at=now + 5 * DAY, span=span, accuracy=later))
    assert read_trust(shop.compiled, shop.layout).accuracy == later


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_the_newest_audits_are_read_alone(shop: Shop, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by itself, and merged by upkeep; files state instants to the millisecond, rounded outward."""
    table = Audits.ensure(shop.layout)
    odd = timedelta(microseconds=123_456)
    made = [Audit("shop", START + n * DAY + odd, 0.1, "ada", n, (), {}, {}, (), ()) for n in (2, 0, 4, 1, 3)]
    for each in made:
        table.append(each)
    newest = sorted(made, key=lambda each: each.at, reverse=True)
    with monkeypatch.context() as patch:
        parsed = list[str]()
        patch.setattr(audits_table, "audit_of", lambda said: parsed.append(said["at"]) or audit_of(said))
        assert audits_of(shop.layout, count) == newest[:count]
        assert len(parsed) == min(count, 5)
    table.table.handle.optimize.compact()
    assert audits_of(shop.layout, count) == newest[:count]
