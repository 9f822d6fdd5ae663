"""The shipped pipeline `account_balances`, with answers computed by hand."""

from __future__ import annotations

import json
from decimal import Decimal

from tests.unit.examples import declared

from seamline.local.generators import GENERATORS, Load
from seamline.model.time.intervals import format_utc_instant, parse_moment

ACCOUNTS, TOPIC = declared("account_balances"), "bank.public.accounts"


def send(story, id, op, lsn, country="", balance="0.00", key=True):
    row = {"id": id, "country": country, "balance": balance, "opened": 20_000}
    event = {"op": op, "before": row if op == "d" else None, "after": None if op == "d" else row}
    value = json.dumps({**event, "source": {"lsn": lsn, "table": "accounts"}, "ts_ms": 1}).encode()
    story.send(value if op else None, key=json.dumps({"id": id}).encode(), topic=TOPIC)


def countries(story):
    rows = story.answer("by_country")
    return {row["country"]: (row["accounts"], row["balance"]) for row in rows if row["accounts"]}


def test_the_answer_is_the_table_after_all_changes(scenario):
    """A snapshot, an account that moves, one that is closed, and one that is closed and opened again."""
    story = scenario(ACCOUNTS, now="2026-03-01T09:10Z")
    send(story, 1, "r", 100, "de", "10.00")
    send(story, 2, "r", 100, "de", "5.50")
    send(story, 3, "r", 100, "fr", "7.25")
    story.epoch()
    assert countries(story) == {"de": (2, Decimal("15.50")), "fr": (1, Decimal("7.25"))}
    send(story, 1, "u", 101, "fr", "11.00")
    send(story, 2, "d", 102)
    send(story, 2, "", None)
    send(story, 3, "d", 103)
    send(story, 3, "", None)
    send(story, 3, "c", 104, "it", "1.00")
    story.epoch()
    assert countries(story) == {"fr": (1, Decimal("11.00")), "it": (1, Decimal("1.00"))}
    changes = {row["change"]: row["n"] for row in story.answer("by_change")}
    assert changes == {"r": 3, "u": 1, "d": 2, "tombstone": 2, "c": 1}


def test_what_a_connector_sends_again_changes_nothing(scenario):
    """It was killed, and begins again where it had last written down how far it was."""
    story = scenario(ACCOUNTS, now="2026-03-01T09:10Z")

    def sent():
        send(story, 1, "u", 101, "fr", "11.00")
        send(story, 2, "c", 102, "it", "3.00")
        send(story, 2, "d", 103)
        send(story, 2, "", None)
        send(story, 1, "u", 104, "fr", "12.00")

    for _ in range(2):
        sent()
        story.epoch()
        assert countries(story) == {"fr": (1, Decimal("12.00"))}
    send(story, 1, "u", 101, "fr", "11.00")
    story.epoch()
    assert countries(story) == {"fr": (1, Decimal("12.00"))}, "an older change that comes alone is none"


def test_a_tombstone_deletes_what_is_left_of_after_compaction(scenario):
    """The event before it is gone from the topic; the row of its key is taken away all the same."""
    story = scenario(ACCOUNTS, now="2026-03-01T09:10Z")
    send(story, 1, "c", 100, "de", "10.00")
    story.epoch()
    send(story, 1, "", None)
    story.epoch()
    assert countries(story) == {}


def test_the_generator_tells_of_one_table(scenario):
    """What it sends comes to the accounts that are open, whatever was sent again."""
    start = parse_moment("2026-03-01")
    load = Load(seed=7, rate=100, count=2_000, start=start)
    story, rows = scenario(ACCOUNTS, now=format_utc_instant(parse_moment("2026-03-01T00:00:20"))), {}
    for record in GENERATORS["account_balances"].records(load):
        story.send(record.value, key=record.key, topic=record.topic or TOPIC)
        id, (newest, _) = json.loads(record.key)["id"], rows.get(json.loads(record.key)["id"], (0, None))
        if record.value is None:
            rows[id] = (newest, None)
        elif not record.kind.startswith("bad"):
            event = json.loads(record.value)
            if event["source"]["lsn"] >= newest:
                rows[id] = (event["source"]["lsn"], event["after"])
    story.epoch()
    expected: dict[str, list[Decimal]] = {}
    for _, row in rows.values():
        if row:
            expected.setdefault(row["country"], []).append(Decimal(row["balance"]))
    assert countries(story) == {name: (len(each), sum(each)) for name, each in expected.items()}
