"""The stream job on a real broker, Spark and Delta: killed, robbed of its checkpoint, and still exact."""

from __future__ import annotations

import json
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.ledger import Ledger
from seamline.local.stack import StreamStack

TOPIC = "shop.orders"
DEFINITION = """
from seamline import *

pipeline = Pipeline(
    name={name!r},
    source=KafkaSource(
        topic="shop.orders",
        schema="id INT NOT NULL, customer STRING, amount DOUBLE, placed_at TIMESTAMP",
        event_time="placed_at",
        event_id=["id"],
        watermark=Watermark("10 minutes", idle_after="2 seconds"),
    ),
    rules=[Rule("positive", "amount > 0")],
    views=[View("by_customer", keys=["customer"], window=Tumbling("1 hour"),
                measures={{"orders": count(), "spent": sum("amount"), "people": distinct("id")}})],
    stream=Stream(trigger="100 milliseconds", max_offsets_per_epoch=400, edge_epochs=5),
    batch=Batch("1 day", "2024-01-01"),
)
"""
RECORDS = 6000
LAST = datetime(2024, 1, 3, 23, 49, tzinfo=UTC)
"""The latest good order less the bound."""
PATIENCE = 300


def order(number: int) -> bytes | None:
    """Make one record; every hundredth is bad in one of several ways."""
    bad = {
        100: b"{not json",
        200: b"",
        300: None,
        400: b"\xff\xfe",
        500: json.dumps({"id": number, "amount": "much", "placed_at": "2024-01-02T00:00:00Z"}).encode(),
        600: json.dumps({"id": number, "amount": -1, "placed_at": "2024-01-02T00:00:00Z"}).encode(),
        700: json.dumps({"amount": 1, "placed_at": "2024-01-02T00:00:00Z"}).encode(),
        800: json.dumps({"id": number, "amount": 1, "placed_at": "2999-01-02T00:00:00Z"}).encode(),
        900: json.dumps({"id": number, "amount": 1, "placed_at": "2023-01-02T00:00:00Z"}).encode(),
        1000: json.dumps({"id": number, "amount": 1, "placed_at": None}).encode(),
    }
    if number % 1100 in bad:
        return bad[number % 1100]
    placed = f"2024-01-{1 + number % 3:02d}T{number % 24:02d}:{number % 60:02d}:00Z"
    customer = ["ada", "bob", "eve"][number % 3]
    return json.dumps(
        {"id": number, "customer": customer, "amount": number % 7 + 1, "placed_at": placed}
    ).encode()


@pytest.fixture(scope="module")
def orders(kafka: KafkaConnection) -> Iterator[KafkaConnection]:
    """Fill the topic once."""
    with TopicAdmin(kafka) as admin:
        admin.create_topic(TOPIC, 3)
        with RecordWriter(kafka) as writer:
            for number in range(RECORDS):
                writer.send(TOPIC, key=str(number).encode(), value=order(number), partition=number % 3)
        yield kafka
        admin.delete_topic(TOPIC)


def stack(home: Path, name: str, connection: KafkaConnection) -> StreamStack:
    return StreamStack(home, DEFINITION.format(name=name), connection, name)


def offsets(stack: StreamStack) -> Counter[tuple[int, int]]:
    """Count every stored coordinate, accepted and refused."""
    found: Counter[tuple[int, int]] = Counter()
    for table in ("master", "quarantine"):
        rows = DeltaTable(str(stack.layout.table(table))).to_pyarrow_table(columns=["_partition", "_offset"])
        found.update(zip(rows["_partition"].to_pylist(), rows["_offset"].to_pylist(), strict=True))
    return found


def answers(stack: StreamStack) -> list[dict[str, object]]:
    """Read the merged answer without the epochs, which differ between two histories."""
    from seamline.serve.read import read

    table = read(
        f"{stack.name}.by_customer", warehouse=stack.layout.warehouse, definitions=stack.home / "pipelines"
    )
    rows = table.drop_columns(["epoch"]).to_pylist()
    return sorted(rows, key=lambda row: (str(row["customer"]), row["window_start"]))


def finish(stack: StreamStack) -> None:
    """Read everything, wait until idle lanes have let the watermark go to its end, and stop."""
    stack.drain(RECORDS, timeout=PATIENCE)
    stack.wait(
        "the last watermark", lambda: Ledger.ensure(stack.layout).epochs()[-1].watermark == LAST, PATIENCE
    )
    assert stack.stop() == 0


def dies(stack: StreamStack, point: str) -> None:
    """Run the driver until it kills itself and its JVM at a point of its third epoch."""
    stack.start(SEAMLINE_FAIL=f"{point}:3")
    assert stack.driver
    code = stack.driver.wait(PATIENCE)
    assert code == -signal.SIGKILL, stack.log.read_text(errors="replace")[-4000:]


def test_killed_and_robbed_of_its_checkpoint_the_answers_are_the_same(
    orders: KafkaConnection, tmp_path: Path
) -> None:
    """The position is the master's: no crash and no checkpoint may lose or repeat an offset."""
    calm = stack(tmp_path / "calm", "calm", orders)
    calm.start()
    finish(calm)

    rough = stack(tmp_path / "rough", "rough", orders)
    checkpoints = tmp_path / "rough" / "streams" / "rough"
    dies(rough, "slices")
    held = rough.offsets_read()
    kept = shutil.copytree(checkpoints, tmp_path / "old")
    # With the checkpoint that the crash left: its last batch is planned and not held.
    dies(rough, "master")
    shutil.rmtree(checkpoints)
    # Without any.
    dies(rough, "files")
    assert held < rough.offsets_read() < RECORDS
    shutil.rmtree(checkpoints)
    shutil.copytree(kept, checkpoints)
    # With the old one.
    rough.start()
    finish(rough)

    expected = Counter({(n % 3, n // 3): 1 for n in range(RECORDS)})
    assert offsets(calm) == expected
    assert offsets(rough) == expected
    assert answers(rough) == answers(calm)
    tokens = {epoch.token for epoch in Ledger.ensure(rough.layout).epochs()}
    assert len(tokens) == 4
