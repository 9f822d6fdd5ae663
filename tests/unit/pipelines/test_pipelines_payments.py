"""The shipped pipeline `payments`, with answers computed by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from tests.unit.examples import declared

from seamline import Tumbling, View, count, sum

PAYMENTS = declared("payments")
BY_CHANNEL = View(
    "by_channel",
    keys=["channel"],
    window=Tumbling("1 hour"),
    measures={"payments": count(), "amount": sum("amount")},
)
WITH_CHANNEL = replace(
    PAYMENTS,
    source=replace(PAYMENTS.source, added=["channel STRING"]),
    views=[*PAYMENTS.views, BY_CHANNEL],
)


def payment(id, amount, at="09:00:00", merchant="bakery", currency="EUR", more=""):
    """Write a payment; the amount as it stands there, since a float would not be exact."""
    return (
        f'{{"payment_id": "{id}", "merchant": "{merchant}", "currency": "{currency}", "amount": {amount}, '
        f'"paid_at": "2026-03-01T{at}Z"{more}}}'
    )


def seen(story, side="merged"):
    return [
        (
            row["merchant"],
            row["currency"],
            row["payments"],
            row["amount"],
            row["batch_part"],
            row["speed_part"],
        )
        for row in story.answer(side=side)
    ]


def closing(id="close"):
    """A payment of the next day, late enough to close the first of March."""
    return payment(id, 1, "09:00:00", "closing").replace("2026-03-01", "2026-03-02")


def test_amounts_are_exact_and_no_currency_is_added_to_another(scenario):
    """0.10 + 0.20 is 0.30, not 0.30000000000000004; ten digits before the point lose none behind it."""
    story = scenario(PAYMENTS, now="2026-03-01T09:05Z")
    story.send(
        payment(1, "0.10"),
        payment(2, "0.20"),
        payment(3, "9999999999.99"),
        payment(4, "5", currency="USD"),
        payment(5, "-0.30", at="09:59:59.999"),
    )
    story.epoch()
    assert seen(story) == [
        ("bakery", "EUR", 4, Decimal("9999999999.99"), 0, 4),
        ("bakery", "USD", 1, Decimal("5.00"), 0, 1),
    ]
    assert story.answer()[0]["largest"] == Decimal("9999999999.99")


def test_a_payment_that_comes_twice_is_counted_once_by_the_batch_layer(scenario):
    """The speed layer shows both until the day is built; then the first one stands, whatever comes later."""
    # speed  10.00 + 10.00 + 2.50 = 22.50  ->  batch  10.00 + 2.50 = 12.50  ->  and once more: 22.50  ->  12.50
    story = scenario(PAYMENTS, now="2026-03-02T09:05Z")
    story.send(payment("a", "10.00"), payment("b", "2.50"), closing())
    story.epoch()
    story.send(payment("a", "10.00", at="09:30:00"))
    story.epoch()
    assert seen(story)[0] == ("bakery", "EUR", 3, Decimal("22.50"), 0, 3)
    assert story.batch("2026-03-01") == ["2026-03-01T00:00:00Z"]
    assert seen(story)[0] == ("bakery", "EUR", 2, Decimal("12.50"), 2, 0)

    story.send(payment("a", "10.00"))
    story.epoch()
    assert seen(story)[0] == ("bakery", "EUR", 3, Decimal("22.50"), 2, 1)
    assert story.batch() == ["2026-03-01T00:00:00Z"]
    assert seen(story)[0] == ("bakery", "EUR", 2, Decimal("12.50"), 2, 0)


def test_a_schema_change_half_way_stops_nothing(scenario):
    """A field more is left alone, one retyped or gone is refused raw, and the payments beside them count."""
    story = scenario(PAYMENTS, now="2026-03-01T09:05Z")
    story.send(payment(1, "1.00"))
    story.epoch()
    story.send(
        payment(2, "2.00", more=', "channel": "app"'),
        payment(3, '"4.00 EUR"', more=', "channel": "app"'),
        payment(4, '{"value": 8.00}'),
        payment(5, "16.00").replace('"currency"', '"ccy"'),
        payment(6, "32.00", currency="GBP"),
        payment(7, "99999999999.99"),
        payment(8, "null"),
        payment(9, "10.005"),
    )
    held = story.epoch()
    assert [(each.offset, each.reason) for each in story.quarantine()] == [
        (2, "mistyped field amount"),
        (3, "mistyped field amount"),
        (4, "missing field currency"),
        (5, "rule known currency"),
        (6, "mistyped field amount"),
        (7, "missing field amount"),
        (8, "mistyped field amount"),
    ]
    assert dict(held.refused) == {
        "mistyped field amount": 4,
        "missing field amount": 1,
        "missing field currency": 1,
        "rule known currency": 1,
    }
    assert seen(story) == [("bakery", "EUR", 2, Decimal("3.00"), 0, 2)]


def channel_declared_half_way(story):
    """Tell of a day in which the column is sent, declared, and the day is built; what each step must show."""
    # epoch      0            1        |  2            3
    # sent     1.00  2.00   4.00       | 8.00  16.00  32.00
    # channel         app    web       |  web          app      what was read before | has NULL
    web, app = (f', "channel": "{each}"' for each in ("web", "app"))
    story.send(payment(1, "1.00"), payment(2, "2.00", more=app), closing())
    story.epoch()
    story.send(payment(3, "4.00", more=web))
    story.crash("slices")
    story.epoch()
    before = story.ledger[-1].record_version

    story.redefine(WITH_CHANNEL)
    assert seen(story)[0] == ("bakery", "EUR", 3, Decimal("7.00"), 0, 3)
    story.send(payment(4, "8.00", more=web), payment(5, "16.00"), payment(6, "5.00", more=', "channel": 7'))
    held = story.epoch()
    assert held.record_version == f"{before}+channel STRING"
    assert dict(held.refused) == {"mistyped field channel": 1}
    assert seen(story)[0] == ("bakery", "EUR", 5, Decimal("31.00"), 0, 5)
    # The day had rows when the new view was born: it answers once it is built, over all of them.
    assert by_channel(story) == []

    assert story.batch("2026-03-01") == ["2026-03-01T00:00:00Z"]
    assert seen(story)[0] == ("bakery", "EUR", 5, Decimal("31.00"), 5, 0)
    assert by_channel(story) == [(None, 4, Decimal("23.00"), 4, 0), ("web", 1, Decimal("8.00"), 1, 0)]
    story.send(payment(7, "32.00", more=app), payment(4, "8.00", more=web))
    story.epoch()
    assert by_channel(story) == [
        (None, 4, Decimal("23.00"), 4, 0),
        ("app", 1, Decimal("32.00"), 0, 1),
        ("web", 2, Decimal("16.00"), 1, 1),
    ]
    assert story.batch() == ["2026-03-01T00:00:00Z"]
    assert seen(story)[0] == ("bakery", "EUR", 6, Decimal("63.00"), 6, 0)
    assert by_channel(story)[1:] == [("app", 1, Decimal("32.00"), 1, 0), ("web", 1, Decimal("8.00"), 1, 0)]


def by_channel(story):
    """The rows of the new view on the first of March."""
    return [
        (row["channel"], row["payments"], row["amount"], row["batch_part"], row["speed_part"])
        for row in story.answer("by_channel")
        if row["window_start"].day == 1
    ]


def test_a_field_more_is_declared_half_way(scenario):
    """Nothing is lost, nothing is built again for it, and the column is there from the restart on."""
    channel_declared_half_way(scenario(PAYMENTS, now="2026-03-02T09:05Z"))
