"""A shop whose log goes on, and which remembers what of it is a dead letter; and the topic that has them."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from tests.faults.sinks.places import TopicPlace
from tests.unit.shop import START
from tests.unit.sinks.letters.logged_shop import SIDED, LoggedShop, Read

from seamline.kafka.row_topic import DELETED, RowTopic
from seamline.kafka.sending.replay_topic import Stored
from seamline.model.protocol.sinks.letter_headers import split_headers
from seamline.model.protocol.sinks.positions import SinkPosition

TOPIC = "drill.dead"
KINDS = ("rejected", "late", "big")
REASONS = ("missing field x", "null event time", "rule r")
HOUR = timedelta(hours=1)
KEYS = (b"k", b"l", b"m", None)
Found = tuple[int, int]
"""Where a record was read: partition and offset."""


@dataclass
class LettersPlace(TopicPlace):
    """A topic of dead letters."""

    of: str = KINDS[0]
    """What is sent."""
    kind = "dead_letters"
    topic = TOPIC

    @property
    def sink(self) -> str:  # type: ignore[override]
        """How a definition declares it."""
        return f'DeadLetterSink("{self.of}", topic="{TOPIC}", name="out")'

    def open(self) -> RowTopic:
        """Open the topic, which is to keep every record."""
        return RowTopic(self.kafka, TOPIC, "shop.out", DELETED)

    def read_letters(self) -> Iterator[tuple[int, bytes | None, Found]]:
        """Read what a consumer of committed records sees: partition, key, and where each was read."""
        with closing(self.open()) as topic:
            for message in topic.read_topic(TOPIC):
                stored = Stored.of(message)
                cause = split_headers(stored.headers)[1]
                yield stored.partition, stored.key, (cause.partition, cause.offset)


class LetterShop:
    """A shop with one sink of dead letters, in a folder."""

    def __init__(self, folder: Path, place: LettersPlace, seed: int) -> None:
        text = SIDED.replace("    batch=", f"    sinks=[{place.sink}],\n    batch=")
        definitions = folder / "definitions"
        definitions.mkdir(parents=True)
        (definitions / "shop.py").write_text(text.replace("import Batch,", "import Batch, DeadLetterSink,"))
        self.of, self.dice, self.hour = place.of, Random(seed), 0
        self.logged = LoggedShop(folder / "w")
        self.ends: dict[int, int] = {}
        """By epoch, how many letters the log has up to it."""
        self.env = {
            "SEAMLINE_PIPELINES": str(definitions),
            "SEAMLINE_WAREHOUSE": str(folder / "w"),
            "SEAMLINE_HOME": str(folder / "home"),
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(place.connection),
        }
        self.read([])

    def move_on(self) -> None:
        """Read records of each kind, by an epoch that may die and be read again, or be late in the ledger."""
        dice = self.dice
        kinds = [Read(dice.choice(REASONS)), Read(at=self.now - 3 * HOUR), Read(at=self.now, side="big")]
        some = [*kinds, *dice.choices([*kinds, Read(at=self.now)], k=dice.randrange(6))]
        dice.shuffle(some)
        records = [Read(each.reason, each.at, each.side, dice.choice(KEYS)) for each in some]
        if dice.random() < 0.2:
            self.logged.epoch(records, dies=True)
        self.read(records)

    def read(self, records: list[Read]) -> None:
        """Read records by an epoch that lives."""
        self.hour += 1
        self.logged.epoch(records, watermark=self.now, ledger=self.dice.random() < 0.8)
        self.ends[self.logged.number - 1] = len(self.logged.letters[self.of])

    @property
    def now(self) -> datetime:
        """The event time that is read now."""
        return START + self.hour * HOUR

    def require_shown(self, place: LettersPlace, position: SinkPosition | None) -> None:
        """Hold the topic to its position: the letters up to its epoch, and so many of those after it."""
        count = 0
        if position is not None:
            known = [*self.ends]
            at = bisect_right(known, position.version)
            count = (self.ends[known[at - 1]] if at else 0) + position.rows
        self.require_first(place, count)

    def require_first(self, place: LettersPlace, count: int) -> None:
        """Require that the topic has the first letters of the log, each once, those of one key in their order."""
        wanted = self.logged.letters[self.of][:count]
        letters = [*place.read_letters()]
        assert sorted(found for _, _, found in letters) == sorted(wanted)
        order = {found: at for at, found in enumerate(wanted)}
        last: dict[bytes, tuple[int, int]] = {}
        for partition, key, found in letters:
            if key is None:
                continue
            before = last.setdefault(key, (partition, -1))
            assert before[0] == partition, (key, before, partition)
            assert before[1] < order[found], (key, found)
            last[key] = (partition, order[found])

    def require_whole(self, place: LettersPlace) -> None:
        """Require that the topic has all letters of the log, each once."""
        self.require_first(place, len(self.logged.letters[self.of]))
