"""Dead letters on a real broker: killed at each commit point, each record is in the topic once, and goes back once."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.e2e.sinks.killed_sinks import KILLED, POINTS, KilledSinks, deleting
from tests.unit.shop import START
from tests.unit.sinks.letters.logged_shop import HOUR, SIDED, LoggedShop, Read

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.kafka.sending.committed_records import read_topic
from seamline.kafka.sending.replay_topic import Stored
from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.letter_headers import split_headers

pytestmark = pytest.mark.faults
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
TOPIC, MENDED, SINK, SOURCE = f"shop.dead.{WORKER}", f"mended.{WORKER}", "rejected_dead_letters", "sales"
REASONS = ("missing field x", "null event time", "rule r")


class Lettering(KilledSinks):
    """A shop whose refused records, or others, go to a topic."""

    def __init__(self, folder: Path, kafka: KafkaConnection, of: str = "rejected") -> None:
        sinks = f'    sinks=[DeadLetterSink("{of}", topic="{TOPIC}")],\n    batch='
        text = SIDED.replace("    batch=", sinks).replace("import Batch,", "import Batch, DeadLetterSink,")
        super().__init__(folder, kafka, text, TOPIC, f"shop.{of}_dead_letters")
        self.logged = LoggedShop(folder / "w")

    def read(self, topic: str = TOPIC) -> list[Stored]:
        """Read a topic as a consumer of committed records does."""
        return [Stored.of(each) for each in read_topic(self.kafka, topic)]

    def places(self) -> list[tuple[int, int]]:
        """Return where the records of the topic were read, in order."""
        causes = [split_headers(each.headers)[1] for each in self.read()]
        return sorted((each.partition, each.offset) for each in causes)


@pytest.fixture
def topics(kafka: KafkaConnection) -> Iterator[KafkaConnection]:
    """Delete the topics in the end."""
    with deleting(kafka, TOPIC, f"{TOPIC}.position", MENDED):
        yield kafka


@pytest.fixture
def source(kafka: KafkaConnection) -> Iterator[str]:
    """Make the topic that the shop reads."""
    with TopicAdmin(kafka) as admin:
        admin.create_topic(SOURCE, 2)
    with deleting(kafka, SOURCE):
        yield SOURCE


@pytest.mark.parametrize(("of", "steps"), [("rejected", 20), ("late", 6), ("big", 6)])
def test_each_record_is_there_once_for_who_reads_committed_records(
    tmp_path: Path, topics: KafkaConnection, of: str, steps: int
) -> None:
    """SIGKILL before, in and after each transaction, while epochs come, and some of them die."""
    dice, sinking = random.Random(of), Lettering(tmp_path, topics, of)
    for step in range(steps):
        records = [
            Read(dice.choice(REASONS))
            if dice.random() < 0.5
            else Read(at=START + timedelta(hours=step - 1 - step % 3), side="big")
            for _ in range(9)
        ]
        sinking.logged.epoch(records, dies=dice.random() < 0.2)
        sinking.logged.epoch(records, watermark=START + step * HOUR)
        sinking.kill(POINTS[step % len(POINTS)], dice.choice([1, 1, 2]))
    sinking.send()
    assert sinking.places() == sinking.logged.letters[of] != []
    assert sinking.kills >= steps * 3 // 4
    code, said = sinking.seamline("sinks", "list", "shop")
    assert code == 0
    assert f"has those up to epoch {sinking.logged.number - 1}, the newest" in said
    with TopicAdmin(topics) as admin:
        assert admin.setting(TOPIC, "cleanup.policy") == "delete"
    print(f"dead letters: {sinking.kills} kills of a sink's process, each proven by the position")


def test_records_go_back_once_as_they_were(tmp_path: Path, topics: KafkaConnection, source: str) -> None:
    """A replay that is killed goes on; its records have the bytes, the headers and the time that they had."""
    sinking = Lettering(tmp_path, topics)
    reads = [Read(REASONS[at % 3], value=None if at == 4 else b"%d" % at) for at in range(12)]
    sinking.logged.epoch(reads)
    code, said = sinking.seamline("sinks", "replay", "shop", SINK)
    assert code, said
    assert "has been sent yet" in said
    sinking.send()
    for fail in ("letters_read:1", "letters_replayed:2", "letters_read:2", "letters_replayed:1"):
        sinking.logged.epoch([Read("rule r", value=fail.encode())] * 2)
        sinking.send()
        assert sinking.seamline("sinks", "replay", "shop", SINK, fail=fail)[0] in (KILLED, 0)
    assert sinking.seamline("sinks", "replay", "shop", SINK)[0] == 0
    assert "nothing new" in sinking.seamline("sinks", "replay", "shop", SINK)[1]
    found = sinking.read(source)
    wanted = [each.value for each in reads] + [
        fail
        for fail in (b"letters_read:1", b"letters_replayed:2", b"letters_read:2", b"letters_replayed:1")
        for _ in range(2)
    ]
    assert sorted(map(str, (each.value for each in found))) == sorted(map(str, wanted))
    assert {(each.key, each.partition, tuple(each.headers)) for each in found} == {(b"k", 0, Read().headers)}
    assert {each.timestamp()[1] for each in read_topic(topics, source)} == {
        int((START + HOUR).timestamp() * 1000)
    }
    with TopicAdmin(topics) as admin:
        admin.create_topic(MENDED, 1)
    words = ("sinks", "replay", "shop", SINK, "--again", "--reason", REASONS[0], "--to", MENDED)
    assert "4 produced again" in sinking.seamline(*words)[1]
    sinking.send()
    assert len(sinking.read()) == len(wanted)


def test_a_topic_is_emptied_and_written_anew(tmp_path: Path, topics: KafkaConnection) -> None:
    """`resend` may be killed too, and a topic deleted; a compacted one, or a stranger's, waits for a person."""
    sinking = Lettering(tmp_path, topics)
    sinking.logged.epoch([Read(REASONS[0])] * 7)
    with TopicAdmin(topics) as admin:
        admin.create_topic(TOPIC, 2, config={"cleanup.policy": "compact"})
    code, said = sinking.seamline("sinks", "run", "shop", "--once")
    assert (code, "is compacted" in said) == (SetupError.exit_code, True)
    with TopicAdmin(topics) as admin:
        admin.delete_topic(TOPIC)
        admin.create_topic(TOPIC, 2)
    with RecordWriter(topics) as writer:
        writer.send(TOPIC, value=b"{}", key=b"stranger", partition=0)
    code, said = sinking.seamline("sinks", "run", "shop", "--once")
    assert code == SetupError.exit_code
    assert "no sink's position beside them" in said
    assert sinking.seamline("sinks", "resend", "shop", SINK)[0] == 0
    sinking.send()
    assert sinking.places() == sinking.logged.letters["rejected"]
    assert sinking.seamline("sinks", "resend", "shop", SINK, fail="sink_clearing:1")[0] == KILLED
    sinking.send()
    assert sinking.places() == sinking.logged.letters["rejected"]
    with TopicAdmin(topics) as admin:
        admin.delete_topic(TOPIC)
    sinking.send()
    assert sinking.places() == sinking.logged.letters["rejected"]
