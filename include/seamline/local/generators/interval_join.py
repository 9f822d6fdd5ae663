"""Events of two services that share tokens, up to ten seconds out of order; one service is silent for two minutes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from seamline.local.generators.record import MINUTE, SECOND, Generator, Load, Record, instant, text

GATEWAY, BILLING = "examples.gateway", "examples.billing"
SILENT_FROM, SILENT_FOR = 3 * MINUTE, 2 * MINUTE
"""Milliseconds after the start, and for how long, in which billing sends nothing."""
REMEMBERED = 200
BAD_EVERY = 500


def records(load: Load) -> Iterator[Record]:
    """Yield events of the gateway and of billing in turns; every 500th is cut off, 1 % are late by minutes."""
    dice = load.seeded_random("interval_join")
    open_tokens: deque[str] = deque(maxlen=REMEMBERED)
    for number, at_ms in load.ticks():
        lag = dice.randrange(15 * SECOND, 5 * MINUTE) if dice.random() < 0.01 else dice.randrange(10 * SECOND)
        event_ms = load.event_ms(at_ms, lag)
        silent = SILENT_FROM <= at_ms - load.start_ms < SILENT_FROM + SILENT_FOR
        if number % 2 and open_tokens and not silent:
            topic, token = BILLING, dice.choice(open_tokens)
            value = text({"token": token, "charged_cents": dice.randrange(1_000), "at": instant(event_ms)})
        else:
            topic, token = GATEWAY, f"{load.seed}-{number:012d}"
            open_tokens.append(token)
            value = text({"token": token, "route": dice.choice(("/buy", "/gift")), "at": instant(event_ms)})
        if number % BAD_EVERY == BAD_EVERY - 1:
            yield Record(at_ms, token.encode(), value[:-12], "bad:malformed json", topic=topic)
        else:
            late = "late" if at_ms - event_ms > 10 * SECOND else "event"
            yield Record(at_ms, token.encode(), value, late, topic=topic)


GENERATOR = Generator(GATEWAY, records, more=(BILLING,))
