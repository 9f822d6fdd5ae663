"""How far first answers were from the final ones, by age, computed by hand."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.shop import DAY, START, Sale, Shop

from seamline.kafka.topic_ends import TopicEnds
from seamline.lake.audit.answer_accuracy import last_intervals, measure_answer_accuracy
from seamline.lake.store.locations import Location
from seamline.lake.tables.audits_table import Audits, audits_of
from seamline.model.protocol.audit import Audit
from seamline.model.time.intervals import Interval
from seamline.supervisor import auditing
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
    """As the command shows it; the table gives it back."""
    found = measure_served_accuracy(shop.compiled, shop.layout)
    assert found == {"sales": tuple(measure_answer_accuracy(shop.compiled, shop.view, shop.layout, FIRST))}
    audit = Audit("shop", START, 0.1, "ada", 0, (), {}, {}, (), (), accuracy=found)
    Audits.ensure(shop.layout).append(audit)
    assert audits_of(shop.layout) == [audit]


def test_a_view_that_has_nothing_to_compare_is_left_out(warehouse: Location) -> None:
    """There are no rows yet."""
    made = Shop(warehouse)
    made.epoch([], number=0)
    assert measure_served_accuracy(made.compiled, made.layout) == {}


def test_an_audit_of_an_old_span_records_the_newest_intervals_all_the_same(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metrics show what the newest audit has recorded: they showed how answers were years ago."""
    monkeypatch.setattr(auditing, "ask_source_ends", lambda *_: TopicEnds(START, {}, {}, {}))
    shop.epoch([Sale(10 * 1440, "a", 1)], number=10 * 24 * HOUR)
    newest = measure_served_accuracy(shop.compiled, shop.layout)
    assert {each.places for each in newest["sales"]} == {3}
    env = {"AIRFLOW_CONN_KAFKA_DEFAULT": "kafka://localhost:9"}
    assert auditing.audit(shop.compiled, shop.layout, span=FIRST, env=env).accuracy == newest
