"""A table of PostgreSQL through Debezium's own connector: the answer is what the database says, whatever goes wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.changes.changed_world import ACCOUNTS, COMPACTED, NAME, PARTITIONS, TOPIC, Changed
from tests.e2e.joined_world import eventually
from tests.faults.rig.processes import end_all
from tests.services.addresses import Postgres

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.supervisor.outside import stop_stream

COUNTRIES = ("de", "fr", "it")


@pytest.fixture
def world(kafka: KafkaConnection, postgres: Postgres, tmp_path: Path) -> Iterator[Changed]:
    """Have a table with rows, and a compacted topic for its changes."""
    made = Changed(tmp_path, kafka, postgres)
    made.sql(ACCOUNTS)
    made.sql(
        "INSERT INTO accounts SELECT n, (ARRAY['de', 'fr', 'it'])[n % 3 + 1], n * 1.25, DATE '2020-01-01' + n::int "
        "FROM generate_series(1, 300) AS n"
    )
    with TopicAdmin(kafka) as admin:
        admin.create_topic(TOPIC, PARTITIONS, config=COMPACTED)
        yield made
        made.connect.kill()
        made.connect.drop_slot()
        made.connection.close()
        end_all(made.home)
        admin.delete_topic(TOPIC)


def change_everything(world: Changed, first: int) -> None:
    """Insert, update, delete, delete and insert again, move to another key, and change a row twice at once."""
    sql = world.sql
    for n in range(first, first + 20):
        sql("INSERT INTO accounts VALUES (%s, %s, %s, NULL)", n, COUNTRIES[n % 3], n)
    sql("UPDATE accounts SET balance = balance + 0.01, country = 'es' WHERE id %% 7 = %s", first % 7)
    sql("DELETE FROM accounts WHERE id %% 11 = %s", first % 11)
    sql("DELETE FROM accounts WHERE id = %s", first + 1)
    sql("INSERT INTO accounts VALUES (%s, 'pt', 7.50, NULL)", first + 1)
    sql("UPDATE accounts SET id = id + 100000 WHERE id = %s", first + 2)
    with world.connection.transaction():
        sql("UPDATE accounts SET balance = 1 WHERE id = %s", first + 3)
        sql("UPDATE accounts SET balance = 2, country = 'pt' WHERE id = %s", first + 3)


@pytest.mark.faults
def test_the_answer_is_the_table_after_all_changes(world: Changed) -> None:
    """A snapshot, changes of all kinds, a connector that dies and sends again, and a topic that was compacted."""
    world.start_connector()
    world.seamline("stream", "start", NAME, "--here")
    eventually("the snapshot to be counted", world.agrees)
    assert Counter(op for _, op, _ in world.changes()) == {"r": 300}

    # Its offsets are written down, so that the next one goes on from here, and begins there again when it dies.
    world.connect.stop()
    world.start_connector()
    change_everything(world, 1_000)
    eventually("the changes to be counted", world.agrees)
    sent = sum(world.ends().values())
    world.connect.kill()
    change_everything(world, 2_000)
    world.start_connector()
    eventually("all of it to be sent again", lambda: sum(world.ends().values()) > 2 * sent - 300)
    eventually("what was sent again to change nothing", world.agrees)
    places = Counter((row["_partition"], row["_offset"]) for row in world.rows())
    assert set(places.values()) == {1}, "each record is there once"
    assert {(each.partition, each.offset) for each in world.log()} <= {*places}, "and none is left out"
    told = [row["__source_lsn"] for row in world.rows(columns=["__source_lsn", "__op"]) if row["__op"] != "r"]
    assert max(Counter(filter(None, told)).values()) > 1, "changes were sent twice"

    # While nobody reads, rows are deleted, and compaction leaves no more of that than tombstones.
    world.seamline("stream", "stop", NAME)
    assert stop_stream(world.layout, timeout=120)
    gone = {id for [id] in world.sql("DELETE FROM accounts WHERE country = 'fr' RETURNING id")}
    rounds = iter(range(10_000, 20_000))

    def only_tombstones() -> bool:
        # A segment is closed by the record that comes after its time.
        world.sql("INSERT INTO accounts VALUES (%s, 'gr', 1, NULL)", next(rounds))
        left = {op for id, op, _ in world.changes() if id in gone}
        return left == {"tombstone"}

    eventually("the topic to be compacted", only_tombstones)
    world.seamline("stream", "start", NAME, "--here")
    eventually("tombstones to be counted", world.agrees)
    assert "fr" not in world.view()
    assert {row["_reason"] for row in world.rows("quarantine", ["_reason"])} == set()
    assert "nothing is wrong" in world.seamline("audit", NAME)
