"""A topic that a sink keeps on a real broker: killed at each commit point, it has each change once."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.sinks.killed_sinks import KILLED, POINTS, KilledSinks, deleting
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, sales_pipeline

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.kafka.row_topic import RowTopic
from seamline.lake.read import serving_table
from seamline.lake.storage.delta_table import Table
from seamline.model.errors import SetupError
from seamline.sinks.kafka_rows import encode_rows

pytestmark = pytest.mark.faults
TOPIC, OWNER = f"shop.sales.{os.environ.get('PYTEST_XDIST_WORKER', 'gw0')}", "shop.sales_kafka"
SINKS = f"""    sinks=[KafkaSink("sales", topic="{TOPIC}", changes=CHANGES)],
    batch="""


class Sinking(KilledSinks):
    """A shop whose sales go to a topic."""

    def __init__(self, folder: Path, kafka: KafkaConnection, *, changes: bool = False) -> None:
        text = DEFINITION.replace("    batch=", SINKS.replace("CHANGES", str(changes)))
        text = text.replace("import Batch,", "import Batch, KafkaSink,")
        super().__init__(folder, kafka, text, TOPIC, OWNER)
        self.shop = Shop(folder / "w", sales_pipeline(text=text))

    def refresh(self) -> None:
        """Bring the serving table up to date."""
        serving_table.refresh_serving_table(self.shop.compiled, self.shop.layout, self.shop.view)

    def read(self) -> list[tuple[str, dict[str, Any] | None]]:
        """Read the topic as a consumer of committed records does."""
        with closing(RowTopic(self.kafka, TOPIC, OWNER)) as topic:
            return [
                (message.key().decode(), json.loads(message.value()) if message.value() else None)
                for message in topic.read_topic(TOPIC)
            ]

    def shown(self) -> dict[str, Any]:
        """Return what the serving table shows, by the keys of records."""
        rows = Table.open(self.shop.layout.serving(self.shop.view)).read()
        keys = encode_rows(rows.select(["customer", "window_start", "window_end"]))
        return {key: unlike(json.loads(row)) for key, row in zip(keys, encode_rows(rows), strict=True)}


def unlike(row: Any) -> Any:
    """Return a row without what says of when it is."""
    return row and {name: each for name, each in row.items() if name not in ("epoch", "manifest_version")}


def replay(records: list[tuple[str, dict[str, Any] | None]]) -> dict[str, Any]:
    """Return what a consumer holds at the end; each record must have changed what it held."""
    held: dict[str, Any] = {}
    for key, row in records:
        assert held.get(key) != unlike(row), (key, row)
        held[key] = unlike(row)
    return {key: row for key, row in held.items() if row is not None}


@pytest.fixture
def topics(kafka: KafkaConnection) -> Iterator[KafkaConnection]:
    """Delete the sink's topics in the end."""
    with deleting(kafka, TOPIC, f"{TOPIC}.position"):
        yield kafka


@pytest.mark.parametrize("seed", range(5))
def test_each_change_is_seen_once_by_who_reads_committed_records(
    tmp_path: Path, topics: KafkaConnection, seed: int
) -> None:
    """SIGKILL before, in and after each transaction while the table moves on, and at last the topic is the table."""
    dice, sinking = random.Random(seed), Sinking(tmp_path, topics)
    shop = sinking.shop
    for step in range(25):
        sales = [
            Sale(dice.randrange(3 * 24 * 60), dice.choice("abcdefg"), dice.randrange(9)) for _ in range(5)
        ]
        shop.epoch(sales, watermark=START + DAY)
        if dice.random() < 0.3:
            shop.build(0, step, f"g{step}")
        sinking.refresh()
        sinking.kill(POINTS[step % len(POINTS)], dice.choice([1, 1, 2]))
    sinking.send()
    assert replay(sinking.read()) == sinking.shown()
    assert sinking.kills >= 20
    with TopicAdmin(topics) as admin:
        assert admin.setting(TOPIC, "cleanup.policy") == "compact"
    print(f"sinks: {sinking.kills} kills of a sink's process, each proven by the position")


def test_a_topic_is_written_anew_and_a_stranger_is_not_overwritten(
    tmp_path: Path, topics: KafkaConnection
) -> None:
    """`resend` may be killed too, and a topic deleted; one with records of somebody else waits for a person."""
    sinking = Sinking(tmp_path, topics)
    with TopicAdmin(topics) as admin:
        admin.create_topic(TOPIC, 2)
    with RecordWriter(topics) as writer:
        writer.send(TOPIC, value=b"{}", key=b"stranger", partition=0)
    sinking.shop.epoch(
        [Sale(minute, "abc"[minute % 3]) for minute in range(0, 3000, 200)], watermark=START + DAY
    )
    sinking.refresh()
    code, said = sinking.seamline("sinks", "run", "shop", "--once")
    assert code == SetupError.exit_code
    assert "resend shop sales_kafka" in said.replace("PIPELINE", "shop")
    assert sinking.seamline("sinks", "resend", "shop", "sales_kafka")[0] == 0
    sinking.send()
    assert {key: row for key, row in sinking.read() if key == "stranger"} == {"stranger": None}
    assert {key: unlike(row) for key, row in sinking.read() if row} == sinking.shown()
    assert sinking.seamline("sinks", "resend", "shop", "sales_kafka", fail="sink_clearing:2")[0] == KILLED
    sinking.send()
    held = {key: unlike(row) for key, row in sinking.read()}
    assert {key: row for key, row in held.items() if row} == sinking.shown()
    with TopicAdmin(topics) as admin:
        admin.delete_topic(TOPIC)
    sinking.send()
    assert replay(sinking.read()) == sinking.shown()
    code, said = sinking.seamline("sinks", "list", "shop")
    assert code == 0
    assert f"topic {TOPIC}" in said
    assert "the newest" in said


def test_changes_say_what_a_row_was(tmp_path: Path, topics: KafkaConnection) -> None:
    """Who adds up what changes needs the old value beside the new one, and the one of a row that is gone."""
    sinking = Sinking(tmp_path, topics, changes=True)
    for amount in (1, 2):
        sinking.shop.epoch([Sale(1, "a", amount), Sale(70, "b")], watermark=START + DAY)
        sinking.refresh()
        sinking.send()
    total = 0
    for _, change in sinking.read():
        assert change is not None
        total += (change["after"] or {"total": 0})["total"] - (change["before"] or {"total": 0})["total"]
    assert total == sum(row["total"] for row in sinking.shown().values())
    assert any(change and change["before"] for _, change in sinking.read())
