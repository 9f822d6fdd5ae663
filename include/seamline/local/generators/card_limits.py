"""Card payments, and the limits of three countries, which their owners change half-way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from seamline.local.generators.record import MINUTE, SECOND, Generator, Load, Record, instant, text

PAYMENTS, LIMITS = "examples.card_payments", "examples.card_limits"
COUNTRIES, CHANNELS = ("DE", "NO", "PT"), ("atm", "shop", "web")
Limit = tuple[str, str, str]
"""The country, the amount above which it is exceeded, and the payments that it is about; its name is its key's."""
FIRST: Mapping[str, Limit] = {
    **{f"{country} large": (country, "400.00", "true") for country in COUNTRIES},
    **{f"{country} web": (country, "100.00", "channel = 'web'") for country in COUNTRIES},
}
THEN: Mapping[str, Limit | None] = {
    "DE large": ("DE", "200.00", "true"),
    "NO web": None,
    "PT cash": ("PT", "50.00", "channel = 'atm' AND amount < 400"),
    "PT web": ("PT", "100.00", "channel ="),
}
"""One is lowered, one is taken out, one is new, and one is no condition: its last one stays in force."""


def records(load: Load) -> Iterator[Record]:
    """Yield the first limits, then payments, 2 % of which are late by minutes; the changes come half-way."""
    dice = load.seeded_random("card_limits")
    waiting: list[tuple[str, Limit | None]] = [*FIRST.items()]
    for number, at_ms in load.ticks():
        if number == load.count // 2:
            waiting += THEN.items()
        if waiting:
            yield limit(at_ms, *waiting.pop(0))
            continue
        lag = dice.randrange(2 * MINUTE, 9 * MINUTE) if dice.random() < 0.02 else dice.randrange(SECOND)
        event_ms = load.event_ms(at_ms, lag)
        card = f"card-{dice.randrange(500):03d}"
        value = text(
            {
                "card": card,
                "country": dice.choice(COUNTRIES),
                "channel": dice.choice(CHANNELS),
                "amount": f"{dice.randrange(100, 50_000) / 100:.2f}",
                "paid_at": instant(event_ms),
            }
        )
        late = "late" if at_ms - event_ms > MINUTE else "event"
        yield Record(at_ms, card.encode(), value, late, topic=PAYMENTS)


def limit(at_ms: int, key: str, said: Limit | None) -> Record:
    """Make the record of a limit, or the tombstone that takes it out."""
    if said is None:
        return Record(at_ms, key.encode(), None, "bad:tombstone", topic=LIMITS)
    country, above, when = said
    value = text({"country": country, "name": key.partition(" ")[2], "above": above, "when": when})
    kind = "bad:error in lookup limits" if when.endswith("=") else "event"
    return Record(at_ms, key.encode(), value, kind, topic=LIMITS)


GENERATOR = Generator(PAYMENTS, records, more=(LIMITS,))
