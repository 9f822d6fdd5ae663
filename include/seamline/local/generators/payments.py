"""Payments of a few merchants; half-way through, their clients change what they send."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator

from seamline.local.generators.record import MINUTE, SECOND, Generator, Load, Record, instant

MERCHANTS = {"bakery": "EUR", "bookshop": "EUR", "diner": "USD", "garage": "USD", "teahouse": "JPY"}
RETYPES = "garage"
"""The merchant whose new client writes the currency behind each amount."""
REMEMBERED = 200


def records(load: Load) -> Iterator[Record]:
    """Yield payments, of which 2 % come again with the same bytes and 1 % are late.

    The second half has a field more, ``channel``, which harms nobody. In it the amounts of one merchant are text
    with the currency behind it, which is no number: those records are refused.
    """
    dice = load.seeded_random("payments")
    sent: deque[Record] = deque(maxlen=REMEMBERED)
    for number, at_ms in load.ticks():
        if sent and dice.random() < 0.02:
            first = dice.choice(sent)
            yield Record(at_ms, first.key, first.value, "duplicate")
            continue
        made = payment(load, dice, number, at_ms)
        if not made.kind.startswith("bad:"):
            sent.append(made)
        yield made


def payment(load: Load, dice: random.Random, number: int, at_ms: int) -> Record:
    """Make one payment as the clients of its half write it."""
    merchant = dice.choice(list(MERCHANTS))
    late = dice.random() < 0.01
    event_ms = load.event_ms(
        at_ms, dice.randrange(2 * MINUTE, 30 * MINUTE) if late else dice.randrange(SECOND)
    )
    currency = MERCHANTS[merchant] if dice.random() < 0.9 else "EUR"
    cents = dice.randrange(1, 50_000) * (100 if currency == "JPY" else 1)
    newer = number >= load.count // 2
    retyped = newer and merchant == RETYPES
    digits = f"{cents // 100}.{cents % 100:02d}"
    amount = f'"{digits} {currency}"' if retyped else digits
    channel = f',"channel":"{dice.choice(("app", "web"))}"' if newer else ""
    # Written by hand: a float would be the end of exact amounts.
    value = (
        f'{{"payment_id":"p-{load.seed}-{load.start_ms}-{number}","merchant":"{merchant}","currency":"{currency}",'
        f'"amount":{amount},"paid_at":"{instant(event_ms)}"{channel}}}'
    )
    kind = "bad:mistyped field amount" if retyped else "late" if at_ms - event_ms > MINUTE else "event"
    return Record(at_ms, merchant.encode(), value.encode(), kind)


GENERATOR = Generator("examples.payments", records)
