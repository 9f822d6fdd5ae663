"""A Delta table that others append to is a source: alone, without any Kafka, and beside a topic."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.e2e.importing.commands import Commands
from tests.e2e.joined_world import eventually
from tests.e2e.world import ROOT
from tests.faults.rig.processes import end_all

from seamline.lake.log.epoch_log import each_epoch, read_condensed_log
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.model.protocol.epoch import EpochKind
from seamline.model.protocol.holes import is_ledger_contiguous
from seamline.model.protocol.imported.table_rows import find_row
from seamline.spark.stream.tables.table_reading import PASSED
from seamline.supervisor.outside import stop_stream
from seamline.supervisor.supervisor_heartbeat import Heartbeat

pytestmark = pytest.mark.faults
BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
DEFINITION = """
from seamline import *

orders = Pipeline(
    name="orders",
    source=DeltaSource(
        table="{table}",
        schema="id BIGINT NOT NULL, shop STRING, amount DECIMAL(10,2), at TIMESTAMP",
        event_time="at",
        columns={{"shop": "store"}},
        watermark=Watermark("10 minutes", idle_after="2 seconds"),
    ),
    rules=[Rule("no negative amount", "amount >= 0")],
    views=[View("daily", keys=["shop"], window=Tumbling("1 day"), measures={{"n": count(), "total": sum("amount")}})],
    stream=Stream(trigger="100 milliseconds"),
    batch=Batch("1 day", "2026-01-01"),
)
"""


class Table(Commands):
    """A table, and a pipeline that reads it."""

    def __init__(self, home: Path) -> None:
        self.table, self.layout = home / "table", Layout(home / "warehouse", "orders")
        super().__init__(home, None, orders=DEFINITION.format(table=self.table))

    def append(self, *ids: int) -> None:
        """Append rows, ten a minute from the beginning on; a file has a thousand of them."""
        rows = {
            "id": [*ids],
            "store": [f"s{n % 3}" for n in ids],
            "amount": pa.array(
                [Decimal(n % 7) if n >= 0 else Decimal(-1) for n in ids], pa.decimal128(10, 2)
            ),
            "at": pa.array([BEGIN + timedelta(seconds=6 * abs(n)) for n in ids], pa.timestamp("us", "UTC")),
        }
        write_deltalake(self.table, pa.table(rows), mode="append")

    def read(self) -> Sequence[int]:
        """Return the ids of the master's rows."""
        if not Master.exists(self.layout):
            return []
        return [
            id
            for path in Files.of(Master.open(self.layout).table).paths
            for id in pq.read_table(path, columns=["id"])["id"].to_pylist()
        ]

    def require_each_once(self, *spans: range) -> None:
        """Assert that rows are in the log, each once."""
        assert Counter(self.read()) == Counter(n for span in spans for n in span)
        assert is_ledger_contiguous([*each_epoch(self.layout)])
        assert is_ledger_contiguous(read_condensed_log(self.layout))

    def stop(self) -> None:
        """Stop the stream."""
        self.seamline("stream", "stop", "orders")
        assert stop_stream(self.layout, timeout=120)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    """A table of three versions, and no Kafka anywhere."""
    made = Table(tmp_path)
    for first in (0, 1_000, 2_000):
        made.append(*range(first, first + 1_000))
    yield made
    end_all(made.home)


def test_a_pipeline_needs_no_kafka(table: Table) -> None:
    """All rows of the table first, then each version once, whatever was compacted, beside a stream that is killed."""
    table.seamline("stream", "start", "orders", "--here")
    eventually("the whole table to be read", lambda: len(table.read()) == 3_000)
    DeltaTable(table.table).optimize.compact()
    table.append(*range(3_000, 4_000), -5)
    eventually("a version to be read", lambda: len(table.read()) == 4_000)
    beat = Heartbeat.read(table.home, "orders")
    assert beat and beat.driver
    os.kill(beat.driver.pid, signal.SIGKILL)
    table.append(*range(4_000, 4_500))
    eventually("the next version to be read", lambda: len(table.read()) == 4_500)
    table.require_each_once(range(4_500))
    reads = [each for each in each_epoch(table.layout) if each.kind is EpochKind.READ and each.ranges]
    assert [each.rows for each in reads] == [3_000, 1_000, 500]
    assert sum(sum(each.refused.values()) for each in reads) == 1
    table.seamline("drain", "orders", "--reason", "nobody appends any more")
    eventually("the last day to be over", lambda: is_over(table))
    table.seamline("run", "orders", "--from", "2026-01-05", "--to", "2026-01-06")
    table.stop()
    assert "nothing is wrong" in table.seamline("audit", "orders")
    out = table.seamline("query", "orders.daily", "--format", "csv")
    cells = [line.split(",") for line in out.splitlines() if line[:2] == '"s' and line[2].isdigit()]
    assert sum(int(each[3]) for each in cells) == 4_500, out


def test_a_version_that_cannot_be_read_stops_the_stream_until_somebody_accepts_it(table: Table) -> None:
    """One that deletes rows, then one whose files were vacuumed: each is a hole then, and what comes after is read."""
    table.seamline("stream", "start", "orders", "--here")
    eventually("the whole table to be read", lambda: len(table.read()) == 3_000)
    DeltaTable(table.table).delete("id < 10")
    table.append(*range(3_000, 3_100))
    eventually(
        "the stream to say why it stands",
        lambda: "rewrites or deletes rows" in table.seamline("stream", "logs", "orders"),
    )
    said = table.seamline("holes", "list", "orders")
    assert "versions from 2, row 3000, to before 4" in said, said
    table.seamline("holes", "accept", "orders", "--reason", "ten rows were wrong, and may stay")
    table.seamline("stream", "start", "orders", "--here")
    eventually("the next version to be read", lambda: len(table.read()) == 3_100)
    table.stop()
    table.append(*range(3_100, 3_200))
    old = DeltaTable(table.table)
    old.optimize.compact()
    old.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    table.append(*range(3_200, 3_300))
    assert "versions from 4, row 100, to before 6" in table.seamline("holes", "list", "orders")
    table.seamline("holes", "accept", "orders", "--reason", "it was vacuumed")
    table.seamline("stream", "start", "orders", "--here")
    eventually("what is left to be read", lambda: len(table.read()) == 3_200)
    table.require_each_once(range(3_100), range(3_200, 3_300))
    table.stop()
    assert "nothing is wrong" in table.seamline("audit", "orders")


def test_a_large_version_is_read_in_pieces_whenever_the_driver_dies(table: Table) -> None:
    """An epoch has no more rows than the stream says; a kill between two of them loses and doubles none."""
    file = table.home / "pipelines" / "orders.py"
    file.write_text(
        file.read_text().replace(
            'trigger="100 milliseconds"', 'trigger="0 seconds", max_offsets_per_epoch=20_000'
        )
    )
    table.append(*range(3_000, 300_000))
    table.seamline("stream", "start", "orders", "--here")
    for least in (1, 100_000, 200_000):
        eventually("rows to be read", lambda least=least: len(table.read()) >= least)
        beat = Heartbeat.read(table.home, "orders")
        assert beat and beat.driver
        os.kill(beat.driver.pid, signal.SIGKILL)
    eventually("all to be read", lambda: len(table.read()) == 300_000)
    table.require_each_once(range(300_000))
    table.stop()
    assert max(each.rows for each in each_epoch(table.layout)) <= 20_000


def test_a_row_that_makes_tasks_fail_is_refused_alone(table: Table) -> None:
    """It is found by halves among offsets of which most stand for no row; epochs are as large as before then."""
    table.append(*range(3_000, 4_999), -7_777, *range(5_000, 6_000))
    file = table.home / "pipelines" / "orders.py"
    breaks = 'transform="tests.unit.steps:deadly_number", transform_schema="twice BIGINT",\n    rules='
    file.write_text(file.read_text().replace("rules=", breaks))
    table.env["PYTHONPATH"] += os.pathsep + str(ROOT)
    table.seamline("stream", "start", "orders", "--here")
    eventually("all other rows to be read", lambda: len(table.read()) == 5_999)
    table.append(*range(6_000, 9_000))
    eventually("the next version to be read", lambda: len(table.read()) == 8_999)
    refused = [each.refused for each in each_epoch(table.layout) if each.refused]
    assert refused == [{"kernel error": 1}]
    assert [*each_epoch(table.layout)][-1].rows > 1, "an epoch has more than one row again"
    table.require_each_once(range(4_999), range(5_000, 9_000))
    table.stop()
    assert "nothing is wrong" in table.seamline("audit", "orders")


def test_versions_without_rows_are_passed_over(table: Table) -> None:
    """Their log entries are cleaned up one day: a start after that must not take them for a loss."""
    table.seamline("stream", "start", "orders", "--here")
    eventually("the whole table to be read", lambda: len(table.read()) == 3_000)
    for days in range(PASSED):
        changed = {"delta.logRetentionDuration": f"interval {days + 1} days"}
        DeltaTable(table.table).alter.set_table_properties(changed)

    def passed() -> bool:
        last = [*each_epoch(table.layout)][-1]
        return any(find_row(part.end).version == 2 + PASSED for part in last.ranges)

    eventually("the log to pass them over", passed)
    table.stop()
    DeltaTable(table.table).create_checkpoint()
    for version in range(2 + PASSED):
        (table.table / "_delta_log" / f"{version:020}.json").unlink()
    table.append(*range(3_000, 3_100))
    table.seamline("stream", "start", "orders", "--here")
    eventually("what comes after them to be read", lambda: len(table.read()) == 3_100)
    table.require_each_once(range(3_100))
    table.stop()
    assert "nothing is wrong" in table.seamline("audit", "orders")


def is_over(table: Table) -> bool:
    """Return whether the watermark is past the first day."""
    [*_, last] = each_epoch(table.layout)
    return bool(last.watermark and last.watermark >= BEGIN + timedelta(days=1))
