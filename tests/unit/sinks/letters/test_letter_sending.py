"""Dead letters from real tables to a topic in memory: each record once, in its order, with why it is there."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.shop import DAY, START
from tests.unit.sinks.letters.logged_shop import HOUR, LoggedShop, MemoryLetters, MemoryTopic, Read

from seamline import DeadLetterSink
from seamline.kafka.row_topic import Letter
from seamline.lake.log.epochs_from import list_epochs_from
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.read.sinks import logged_records
from seamline.lake.status.sink_words import read_sink_words
from seamline.lake.store.locations import Location
from seamline.lake.tables.sinks.recorded_positions import read_copy
from seamline.model.errors import Fenced, OutOfStep
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks import sending
from seamline.sinks.letters import letter_sending
from seamline.sinks.letters.letter_sending import LetterSending
from seamline.sinks.sink_list import format_sinks
from seamline.sinks.sink_runner import SinkRunner
from seamline.sinks.sink_states import read_sink_states

pytestmark = pytest.mark.slow
REJECTED = DeadLetterSink("rejected", topic="sales.rejected")
LATE = DeadLetterSink("late", topic="sales.late")
BIG = DeadLetterSink("big", topic="sales.big")
REFUSED, TAKEN = Read("missing field x"), Read()


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let sinks say how they do in a folder of the test, and let a transaction take two records."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setattr(logged_records, "BATCH", 2)
    monkeypatch.setattr(sending, "MOST_BATCHES", 1)


@pytest.fixture
def shop(warehouse: Location) -> LoggedShop:
    """A shop that has read nothing."""
    return LoggedShop(warehouse)


def send(shop: LoggedShop, topic: MemoryTopic, sink: DeadLetterSink = REJECTED) -> SinkRunner:
    """Send what is new, as a process does that is started for that."""
    runner = SinkRunner(
        shop.compiled,
        shop.layout,
        sink,
        threading.Event(),
        once=True,
        opening=lambda *_: MemoryLetters(topic),
    )
    runner.run()
    return runner


def open_sending(shop: LoggedShop, topic: MemoryTopic, sink: DeadLetterSink = REJECTED) -> LetterSending:
    """Take over a topic."""
    return LetterSending("shop", shop.layout, sink, MemoryLetters(topic), lambda: False)


@pytest.mark.parametrize("seed", range(8))
def test_each_record_is_sent_once_whatever_fails(shop: LoggedShop, seed: int) -> None:
    """Transactions that are lost, and those of which only the reply is; epochs that die, and are read again."""
    dice = random.Random(seed)
    topics = {sink: MemoryTopic() for sink in (REJECTED, LATE, BIG)}
    for step in range(8):
        records = [
            Read(dice.choice(["", "", "missing field x", "null event time"]))
            if dice.random() < 0.5
            else Read(at=START + timedelta(hours=dice.randrange(12)), side=dice.choice([None, "big"]))
            for _ in range(dice.randrange(7))
        ]
        if dice.random() < 0.3:
            shop.epoch(records, dies=True)
        shop.epoch(records, watermark=START + step * HOUR, ledger=dice.random() < 0.8)
        for sink, topic in topics.items():
            topic.fails = [dice.choice(["before", "after", ""]) for _ in range(dice.randrange(4))]
            if dice.random() < 0.7:
                send(shop, topic, sink)
            assert topic.places == shop.letters[sink.of][: len(topic.places)]
    for sink, topic in topics.items():
        topic.fails = []
        assert send(shop, topic, sink).error is None
        assert topic.places == shop.letters[sink.of]
        assert SinkPosition.from_json(topic.position or "").version == shop.number - 1
    assert sum(len(each) for each in shop.letters.values()) > 5


def test_a_letter_is_the_record_with_its_cause(shop: LoggedShop) -> None:
    """Who reads the topic alone can say what was wrong, and produce the record again as it was."""
    shop.epoch([TAKEN], watermark=START + DAY)
    shop.epoch([REFUSED, TAKEN, Read(at=START + 2 * DAY, side="big", value=None, headers=())])
    found = {sink: MemoryTopic() for sink in (REJECTED, LATE, BIG)}
    for sink, topic in found.items():
        send(shop, topic, sink)
    [(key, value, headers)] = found[REJECTED].letters
    assert (key, value, headers[:2]) == (b"k", b"{}", [("trace", b"1"), ("empty", None)])
    assert [(name.removeprefix("__seamline.errors."), text) for name, text in headers[2:]] == [
        ("pipeline", b"shop"),
        ("of", b"rejected"),
        ("reason", b"missing field x"),
        ("message", b"why"),
        ("topic", b"sales"),
        ("topic.id", b"t"),
        ("partition", b"0"),
        ("offset", b"1"),
        ("timestamp", b"1357002000000"),
        ("epoch", b"1"),
        ("record.version", shop.compiled.record_version.encode()),
    ]
    [late] = found[LATE].causes
    assert (late.reason, late.event_time, late.watermark) == (
        "late",
        "2013-01-01T00:00:00Z",
        "2013-01-02T00:00:00Z",
    )
    [big] = found[BIG].causes
    assert (big.of, big.reason, big.event_time) == ("big", "side big", "2013-01-03T00:00:00Z")
    assert found[BIG].letters[0][1:] == (None, found[BIG].letters[0][2])


def test_records_of_an_epoch_that_died_are_not_sent(shop: LoggedShop) -> None:
    """They are read again under another number: whoever counts dead letters would count them twice."""
    shop.epoch([REFUSED])
    shop.epoch([REFUSED, REFUSED], dies=True)
    shop.epoch([REFUSED, REFUSED])
    topic = MemoryTopic()
    send(shop, topic)
    assert [each.epoch for each in topic.causes] == [0, 2, 2]


def test_what_is_sent_is_on_disk_before(shop: LoggedShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the power takes from the log is read again as other epochs, and would be sent a second time."""
    done: list[str] = []
    add = MemoryLetters.add

    def note(self: MemoryLetters, letters: Iterable[Letter], position: SinkPosition) -> None:
        done.append("added")
        add(self, letters, position)

    monkeypatch.setattr(MemoryLetters, "add", note)
    monkeypatch.setattr(letter_sending.durability, "sync_disk", lambda root: done.append(root.name))
    shop.epoch([REFUSED])
    send(shop, MemoryTopic())
    assert done == ["master", "added"]


def test_what_upkeep_has_packed_is_sent_once(shop: LoggedShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that was down for long finds the rows of its epochs in files of many."""
    topic = MemoryTopic()
    for number in range(12):
        shop.epoch([REFUSED, Read(side="big", at=START + number * HOUR)], watermark=START + number * HOUR)
        if number == 4:
            send(shop, topic)
    before = len(logged_files(shop))
    maintain_tables(shop.compiled, shop.layout)
    assert len(logged_files(shop)) < before
    big = MemoryTopic()
    assert send(shop, topic).error is None
    assert send(shop, big, BIG).error is None
    assert (topic.places, big.places) == (shop.letters["rejected"], shop.letters["big"])


def logged_files(shop: LoggedShop) -> list[str]:
    """List the live files of the quarantine."""
    return [*shop.quarantine.refresh().actions()["path"].to_pylist()]


def test_nothing_new_writes_nothing_but_how_far_it_is_now_and_then(
    shop: LoggedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Epochs come each second, and most have no dead letter: a transaction for each would be the topic's load."""
    topic = MemoryTopic()
    shop.epoch([REFUSED])
    current = open_sending(shop, topic)
    assert current.send_next() and not current.send_next()
    for _ in range(3):
        shop.epoch([TAKEN])
        assert not current.send_next()
    assert (topic.transactions, current.shown) == (1, 0)
    monkeypatch.setattr(letter_sending, "TOLD_EVERY", 0.0)
    assert current.send_next() and not current.send_next()
    assert (topic.transactions, current.shown) == (2, 3)
    monkeypatch.setattr(letter_sending, "TOLD_EVERY", 60.0)
    shop.epoch([TAKEN])
    assert not current.send_next()
    shop.epoch([REFUSED])
    assert current.send_next() and not current.send_next()
    assert (current.shown, topic.places) == (5, shop.letters["rejected"])


def test_a_way_ends_where_it_is_long(shop: LoggedShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that is new goes through a long log by bounded ways, also where there is nothing in them."""
    monkeypatch.setattr("seamline.model.protocol.sinks.dead_letters.MOST_ROWS", 2)
    monkeypatch.setattr(letter_sending, "MOST_EPOCHS", 3)
    for number in range(9):
        shop.epoch([TAKEN, TAKEN] if number < 8 else [Read(side="big")])
    topic = MemoryTopic()
    assert send(shop, topic, BIG).error is None
    assert topic.places == shop.letters["big"] != []
    assert topic.transactions >= 4
    assert [each.number for each in list_epochs_from(shop.layout, 3, 4)] == [3, 4, 5, 6]


def restore(shop: LoggedShop, topic: MemoryTopic) -> None:
    """Let the topic have an epoch of the same number, and of another log."""
    shop.epoch([REFUSED])
    send(shop, topic)
    assert topic.position is not None
    found = SinkPosition.from_json(topic.position)
    topic.position = replace(found, fingerprint=found.fingerprint[:-1] + "x").to_json()
    shop.epoch([REFUSED])


def shorten(shop: LoggedShop, topic: MemoryTopic) -> None:
    """Let the topic have more epochs than the log."""
    shop.epoch([REFUSED])
    send(shop, topic)
    assert topic.position is not None
    topic.position = replace(SinkPosition.from_json(topic.position), version=7).to_json()


def edit(shop: LoggedShop, topic: MemoryTopic) -> None:
    """Let the topic have other records."""
    shop.epoch([REFUSED, TAKEN])
    send(shop, topic, replace(LATE, topic=REJECTED.topic))


@pytest.mark.parametrize("spoil", [restore, shorten, edit])
def test_a_log_that_is_another_one_is_not_gone_on_from(
    shop: LoggedShop, spoil: Callable[[LoggedShop, MemoryTopic], None]
) -> None:
    """A backup counts its epochs anew: what is passed over, or sent twice, nobody would find."""
    topic = MemoryTopic()
    spoil(shop, topic)
    held = [*topic.letters]
    error = send(shop, topic).error
    assert isinstance(error, OutOfStep)
    assert "resend shop rejected_dead_letters" in str(error)
    assert topic.letters == held


def test_a_writer_that_was_fenced_off_adds_nothing(shop: LoggedShop) -> None:
    """Two processes are there for a while: the earlier one was frozen."""
    topic = MemoryTopic()
    shop.epoch([REFUSED] * 5)
    early = open_sending(shop, topic)
    assert send(shop, topic).error is None
    with pytest.raises(Fenced, match="another writes"):
        early.send_next()
    assert topic.places == shop.letters["rejected"]


def test_people_see_how_far_it_is(shop: LoggedShop, tmp_path: Path) -> None:
    """In the list, in the figures, and in what its process says of it."""
    made = replace(shop.compiled.definition, sinks=[REJECTED])
    compiled = replace(shop.compiled, definition=made)
    assert list(format_sinks(compiled, shop.layout)) == [
        "rejected_dead_letters: rejected records to topic sales.rejected of kafka_default; nothing is read yet"
    ]
    shop.epoch([REFUSED] * 3)
    assert "nothing sent yet of epochs up to 0" in next(format_sinks(compiled, shop.layout))
    send(shop, MemoryTopic())
    shop.epoch([TAKEN])
    [line] = format_sinks(compiled, shop.layout)
    assert "has those up to epoch 0 of 1 as of" in line
    [state] = read_sink_states(compiled, shop.layout, START).sinks
    assert (state.behind, state.sent, state.up) == (1, 3, False)
    [state] = read_sink_states(compiled, shop.layout, START + timedelta(seconds=5)).sinks
    assert state.behind_seconds == 4.0
    copy, words = read_copy(shop.layout, REJECTED.id), read_sink_words("shop", REJECTED.id)
    assert copy and words
    assert (copy.view, words.state, words.newest) == ("rejected of the log", "ended", 0)
