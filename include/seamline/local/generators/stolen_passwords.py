"""Logins of a thousand accounts, some of which somebody guesses the password of."""

from __future__ import annotations

import random
from collections.abc import Iterator

from seamline.local.generators.record import MINUTE, SECOND, Generator, Load, Record, instant, text

COUNTRIES = ("DE", "FR", "JP", "BR")
ACCOUNTS = 1000
ATTACK_EVERY, TRIES = 50, 6
"""Of so many logins the last so many are of one account: wrong ones, and then perhaps a right one."""
BAD_EVERY = 500


def records(load: Load) -> Iterator[Record]:
    """Yield logins; 2 % come late, by up to five minutes, and every 500th is cut off."""
    dice = load.seeded_random("stolen_passwords")
    account, country, succeeds = draw_account(dice), COUNTRIES[0], False
    for number, at_ms in load.ticks():
        left = ATTACK_EVERY - 1 - number % ATTACK_EVERY
        if left == TRIES:
            account, country, succeeds = draw_account(dice), dice.choice(COUNTRIES), dice.random() < 0.5
        attacked = left < TRIES
        lag = dice.randrange(MINUTE, 5 * MINUTE) if dice.random() < 0.02 else dice.randrange(100)
        event_ms = load.event_ms(at_ms, lag)
        who = account if attacked else draw_account(dice)
        value = text(
            {
                "account": who,
                "country": country if attacked else dice.choice(COUNTRIES),
                "ok": left == 0 and succeeds if attacked else dice.random() < 0.9,
                "at": instant(event_ms),
            }
        )
        if number % BAD_EVERY == BAD_EVERY - 12:
            yield Record(at_ms, who.encode(), value[:-20], "bad:malformed json")
        else:
            yield Record(at_ms, who.encode(), value, "late" if at_ms - event_ms > SECOND else "event")


def draw_account(dice: random.Random) -> str:
    """Draw an account."""
    return f"a{dice.randrange(ACCOUNTS):03d}"


GENERATOR = Generator("examples.logins", records)
