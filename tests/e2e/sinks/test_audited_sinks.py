"""Targets on real servers in which somebody has changed, deleted and added a row: all is named, and mended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from tests.e2e.sinks.served_rows import ServedRows, make_view
from tests.e2e.sinks.test_postgres_target import connect as connect_postgres
from tests.e2e.sinks.test_redis_target import connect as connect_redis
from tests.services.addresses import Postgres, Valkey
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, sales_pipeline
from valkey import Valkey as Client

from seamline import Global, PostgresSink, RedisSink
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.read import serving_table
from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.model.errors import AuditFailed
from seamline.sinks.postgres.target import PostgresTarget
from seamline.sinks.readable_target import ReadableTarget
from seamline.sinks.redis.target import RedisTarget

pytestmark = pytest.mark.faults
ROOT = Path(__file__).parents[3]
TOPIC = "shop.audited"
CHANGED, DELETED = ("a", "2013-01-01T00:00:00Z"), ("b", "2013-01-01T01:00:00Z")
AGAIN = ("sinks", "resend", "shop", "out", "--from", "2013-01-01T00:00Z")


@dataclass
class Audited:
    """A shop whose sales go to a target, by commands."""

    folder: Path
    sink: str
    """The sink in the definition."""
    connection: dict[str, str]
    """Airflow's connection, as an environment variable."""

    def __post_init__(self) -> None:
        text = DEFINITION.replace("    batch=", f"    sinks=[{self.sink}],\n    batch=")
        text = text.replace("import Batch,", "import Batch, KafkaSink, PostgresSink, RedisSink,")
        definitions = self.folder / "definitions"
        definitions.mkdir()
        (definitions / "shop.py").write_text(text)
        self.shop = Shop(self.folder / "w", sales_pipeline(text=text))
        self.env = {
            **os.environ,
            "SEAMLINE_PIPELINES": str(definitions),
            "SEAMLINE_WAREHOUSE": str(self.folder / "w"),
            "SEAMLINE_HOME": str(self.folder / "home"),
            **self.connection,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "include"), str(ROOT)]),
        }
        sales = [Sale(1), Sale(2, None, 5), Sale(25 * 60), Sale(70, "b"), Sale(49 * 60)]
        self.shop.epoch(sales, watermark=START + DAY)
        serving_table.refresh_serving_table(self.shop.compiled, self.shop.layout, self.shop.view)

    def seamline(self, *words: str) -> tuple[int, str]:
        """Run a command, in small steps."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.e2e.sinks.small_steps", *words],
            env=self.env,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def do(self, *words: str) -> str:
        """Run a command that must not fail."""
        code, said = self.seamline(*words)
        assert code == 0, said
        return said

    def require_named_and_mended(self, harm: Callable[[], None]) -> None:
        """Send, let somebody harm what was sent, and require that an audit names it and sending again mends it."""
        self.do("sinks", "run", "shop", "--once")
        assert "nothing is wrong" in self.do("sinks", "audit", "shop", "out")
        harm()
        code, said = self.seamline("sinks", "audit", "shop", "out", "--format", "json")
        assert code == AuditFailed.exit_code, said
        told = json.loads(said)
        assert told["found"] == {"missing": 1, "extra": 1, "different": 1}
        places = {each["kind"]: each["place"] for each in told["examples"]}
        assert all(part in places["different"] for part in CHANGED)
        assert all(part in places["missing"] for part in DELETED)
        assert "zoe" in places["extra"]
        [different] = [each["columns"] for each in told["examples"] if each["kind"] == "different"]
        assert different["total"] == {"held": -7, "served": 1}
        assert "2013-01-01T00:00:00Z to the newest is sent again" in self.do(*AGAIN)
        assert "is sent again" in self.do("sinks", "list", "shop")
        self.do("sinks", "run", "shop", "--once")
        said = self.do("sinks", "audit", "shop")
        assert "5 rows held, 5 to be there" in said
        assert "nothing is wrong" in said


def name_connection(name: str, kind: str, server: Any, schema: str, login: str = "") -> dict[str, str]:
    """Return the variable of a connection to a server."""
    parts = {
        "conn_type": kind,
        "host": server.host,
        "port": server.port,
        "password": server.password,
        "schema": schema,
    }
    return {f"AIRFLOW_CONN_{name.upper()}": json.dumps(parts | ({"login": login} if login else {}))}


def test_a_table_of_postgresql_that_somebody_has_changed(tmp_path: Path, postgres: Postgres) -> None:
    """Three statements of somebody who may write the table."""
    connection = name_connection(
        "postgres_default", "postgres", postgres, postgres.database, login=postgres.user
    )
    audited = Audited(tmp_path, 'PostgresSink("sales", table="sales", name="out")', connection)

    def harm() -> None:
        with psycopg.connect(postgres.url, autocommit=True) as session:
            for statement in (
                "UPDATE sales SET total = -7 WHERE customer = 'a' AND window_start = '2013-01-01 00:00Z'",
                "DELETE FROM sales WHERE customer = 'b'",
                "INSERT INTO sales (customer, window_start) VALUES ('zoe', '2013-01-01 00:00Z')",
            ):
                assert session.execute(statement).rowcount == 1

    audited.require_named_and_mended(harm)


def test_keys_of_valkey_that_somebody_has_changed(tmp_path: Path, valkey: Valkey) -> None:
    """Three commands of somebody who may write keys."""
    connection = name_connection("redis_default", "redis", valkey, str(valkey.database))
    audited = Audited(tmp_path, 'RedisSink("sales", name="out")', connection)
    head = "{shop.out}"

    def harm() -> None:
        with Client.from_url(valkey.url, decode_responses=True) as held:
            changed, deleted = (":".join((head, *each)) for each in (CHANGED, DELETED))
            row = json.loads(held.get(changed))
            held.set(changed, json.dumps({**row, "total": -7}))
            held.set(f"{head}:zoe:{CHANGED[1]}", json.dumps(row))
            assert held.delete(deleted) == 1

    audited.require_named_and_mended(harm)


@pytest.fixture
def topics(kafka: KafkaConnection) -> Iterator[KafkaConnection]:
    """Delete the sink's topics in the end."""
    yield kafka
    with TopicAdmin(kafka) as admin:
        for name in {TOPIC, f"{TOPIC}.position"} & {*admin.topics()}:
            admin.delete_topic(name)


@pytest.mark.parametrize("changes", [False, True])
def test_a_topic_that_somebody_has_written(tmp_path: Path, topics: KafkaConnection, changes: bool) -> None:
    """Records of somebody who may write the topic: another value, a tombstone, a key that no view has."""
    told = {"conn_type": "kafka", "extra": {"bootstrap.servers": topics.brokers}}
    sink = f'KafkaSink("sales", topic="{TOPIC}", name="out", changes={changes})'
    audited = Audited(tmp_path, sink, {"AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(told)})

    def harm() -> None:
        row = {"orders": 1, "total": -7}
        value = {"before": None, "after": row} if changes else row
        with RecordWriter(topics) as writer:
            for (customer, start), record in (
                (CHANGED, value),
                (DELETED, None),
                (("zoe", CHANGED[1]), value),
            ):
                end = (
                    start.replace("00:00:00Z", "01:00:00Z") if "T00" in start else start.replace("T01", "T02")
                )
                key = json.dumps({"customer": customer, "window_start": start, "window_end": end})
                sent = None if record is None else json.dumps(record).encode()
                writer.send(TOPIC, value=sent, key=key.encode(), partition=0)

    with TopicAdmin(topics) as admin:
        admin.create_topic(TOPIC, 1, config={"cleanup.policy": "compact"})
    audited.require_named_and_mended(harm)


def require_read_back(target: ReadableTarget, served: ServedRows) -> None:
    """Require that each row that is read back is, to the letter, what is spelled of the view's."""
    rows = served.as_table()
    with target.open_reading() as reading:
        assert reading.find_position() == served.position
        held = pa.concat_tables(reading.read_rows(StartRange()))
        [first] = pa.concat_tables([reading.read_row(rows.slice(0, 1))]).to_pylist()
    found = dict(zip(held["place"].to_pylist(), held["value"].to_pylist(), strict=True))
    places = target.spell_places(rows).to_pylist()
    wanted = dict(zip(places, target.spell_values(rows).to_pylist(), strict=True))
    assert found == wanted
    assert (first["place"], first["value"]) == (places[0], wanted[places[0]])
    assert held["start"].null_count == 0


def test_ugly_rows_are_read_back_from_postgresql(postgres: Postgres) -> None:
    """A finding that is none would be looked for in vain: numbers that are none, U+0000, NULL keys, sketches."""
    grouped = make_view(window=Global(), grouping_sets=[["shop"], ["shop", "day", "till"]])
    for seed, view in enumerate((make_view(), grouped)):
        served = ServedRows(view, seed, 300)
        sink = PostgresSink("by_till", table=f"by_till_{seed}", schema="shop", name=f"s{seed}")
        with closing(PostgresTarget(sink, view, connect_postgres(postgres))) as target:
            target.take_over()
            target.write(served.whole(100), served.position)
            require_read_back(target, served)


def test_ugly_rows_are_read_back_from_valkey(valkey: Valkey) -> None:
    """Texts with colons, quotes and line breaks in them."""
    served = ServedRows(make_view(), 3, 300)
    sink = RedisSink("by_till", prefix="live:[x]*")
    with closing(RedisTarget(sink, served.view, connect_redis(valkey))) as target:
        target.take_over()
        target.write(served.whole(100), served.position)
        require_read_back(target, served)
