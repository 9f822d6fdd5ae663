"""Accounts of a bank, as Debezium tells of their table: opened, moved, changed and closed, some of it sent again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seamline.local.generators.record import Generator, Load, Record, text

TOPIC = "bank.public.accounts"
COUNTRIES = ("de", "fr", "it", "pt")
OPEN = 500
"""Accounts that are open at any time, once there are so many."""
AGAIN, AGAIN_EVERY, BAD_EVERY = 5, 300, 400
"""So many events are sent again, each time that a connector was killed; and every so many an event is cut off."""


def records(load: Load) -> Iterator[Record]:
    """Yield changes, a tombstone behind each deletion, and now and then the last few of them again."""
    dice = load.seeded_random("account_balances")
    accounts: dict[int, dict[str, Any]] = {}
    sent: list[tuple[bytes, bytes | None]] = []
    waiting: list[tuple[bytes, bytes | None, str]] = []
    for number, at_ms in load.ticks():
        if not waiting and number % AGAIN_EVERY == AGAIN_EVERY - 1:
            waiting = [(*each, "late") for each in sent[-AGAIN:]]
        if not waiting:
            id, event = change_account(dice, accounts, number)
            key = text({"id": id})
            event |= {"source": {"table": "accounts", "lsn": 1000 + number, "ts_ms": at_ms}, "ts_ms": at_ms}
            made: list[tuple[bytes, bytes | None]] = [(key, text(event))]
            made += [(key, None)] if event["op"] == "d" else []
            sent = [*sent, *made][-AGAIN:]
            waiting = [(*each, "event") for each in made]
        key, value, kind = waiting.pop(0)
        if value and number % BAD_EVERY == BAD_EVERY - 1:
            yield Record(at_ms, key, value[:-15], "bad:malformed debezium", partition=0)
        else:
            yield Record(at_ms, key, value, kind, partition=0)


def change_account(dice: Any, accounts: dict[int, dict[str, Any]], number: int) -> tuple[int, dict[str, Any]]:
    """Open, change or close an account, and return its number and what the database's log says of it."""
    if len(accounts) < OPEN or dice.random() < 0.1:
        id = number
        accounts[id] = {"id": id, "country": dice.choice(COUNTRIES), "balance": "0.00", "opened": 20_000}
        return id, {"op": "c", "before": None, "after": dict(accounts[id])}
    id = dice.choice(list(accounts))
    if dice.random() < 0.1:
        del accounts[id]
        # What the log does not tell of a deleted row is filled up.
        return id, {
            "op": "d",
            "before": {"id": id, "country": "", "balance": "0", "opened": None},
            "after": None,
        }
    accounts[id] |= {"balance": f"{dice.randrange(1_000_000) / 100:.2f}"}
    if dice.random() < 0.05:
        accounts[id] |= {"country": dice.choice(COUNTRIES)}
    return id, {"op": "u", "before": None, "after": dict(accounts[id])}


GENERATOR = Generator(TOPIC, records)
