"""Payments whose risk is asked for: four in five are above a hundred, some come late, some are of nothing."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.local.generators.record import MINUTE, SECOND, Generator, Load, Record, instant, text

PAYMENTS = "examples.scored_payments"
COUNTRIES = ("DE", "NO", "PT")
USERS = 2_000
BAD_EVERY = 500


def records(load: Load) -> Iterator[Record]:
    """Yield payments, 2 % of which are late by minutes; every 500th is of nothing, which its rule refuses."""
    dice = load.seeded_random("scored_payments")
    for number, at_ms in load.ticks():
        lag = dice.randrange(2 * MINUTE, 9 * MINUTE) if dice.random() < 0.02 else dice.randrange(SECOND)
        event_ms = load.event_ms(at_ms, lag)
        user, cents = f"user-{dice.randrange(USERS):04d}", dice.randrange(100, 50_000)
        bad = number % BAD_EVERY == BAD_EVERY - 2
        payment = {
            "user": user,
            "country": dice.choice(COUNTRIES),
            "amount": "0.00" if bad else f"{cents / 100:.2f}",
            "paid_at": instant(event_ms),
        }
        late = "late" if at_ms - event_ms > MINUTE else "event"
        yield Record(at_ms, user.encode(), text(payment), "bad:rule positive amount" if bad else late)


GENERATOR = Generator(PAYMENTS, records)
