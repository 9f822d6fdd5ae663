"""Lines of a web server's log: a crowd of visitors who come and go, robots, and one page that fails."""

from __future__ import annotations

import random
from collections.abc import Iterator

from seamline.local.generators.record import MINUTE, Generator, Load, Record, instant

HOSTS = 500
CROWD = 40
"""So many are on the site at a time."""
PAGES = {"/": 40, "/shop": 25, "/shop/cart": 15, "/shop/pay": 8, "/blog": 10, "/about": 2}
FAILING = "/shop/pay"
BROWSERS = ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (iPhone)", "Mozilla/5.0 (Windows NT 10.0)")
ROBOT = "examplebot/2.1 (+https://bot.example)"
BAD_EVERY = 400


def records(load: Load) -> Iterator[Record]:
    """Yield lines; 3 % are of robots, 1 % late, and every 400th is of a client that does not speak HTTP."""
    dice = load.seeded_random("web_sessions")
    crowd = [dice.randrange(HOSTS) for _ in range(CROWD)]
    for number, at_ms in load.ticks():
        place = dice.randrange(CROWD)
        host = f"192.0.2.{crowd[place] % 250}" if crowd[place] < 250 else f"203.0.113.{crowd[place] % 250}"
        if dice.random() < 0.1:
            crowd[place] = dice.randrange(HOSTS)
        event_ms = load.event_ms(
            at_ms, dice.randrange(2 * MINUTE, 20 * MINUTE) if dice.random() < 0.01 else 0
        )
        bad = number % BAD_EVERY == BAD_EVERY - 1
        kind = "bad:malformed text" if bad else "late" if event_ms < at_ms else "event"
        yield Record(at_ms, host.encode(), line(dice, host, event_ms, bad=bad).encode(), kind)


def line(dice: random.Random, host: str, event_ms: int, *, bad: bool) -> str:
    """Write one line: nginx's combined format with an ISO time."""
    path = dice.choices(list(PAGES), list(PAGES.values()))[0]
    status = 502 if path == FAILING and dice.random() < 0.2 else 404 if dice.random() < 0.02 else 200
    request = f"GET {path}{dice.choice(('', '', '?ref=mail'))} HTTP/1.1"
    agent = ROBOT if dice.random() < 0.03 else dice.choice(BROWSERS)
    if bad:
        request, status = r"\x16\x03\x01\x02", 400
    return (
        f'{host} - - [{instant(event_ms)}] "{request}" {status} {dice.randrange(200, 20_000)} "-" "{agent}"'
    )


GENERATOR = Generator("examples.access_log", records)
