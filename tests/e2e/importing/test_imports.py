"""Years in files become part of the log: by the command alone, and beside a stream that is killed meanwhile."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.e2e.importing.commands import Commands
from tests.e2e.joined_world import eventually
from tests.faults.rig.processes import end_all

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.epoch_log import each_epoch, read_condensed_log
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.decided import list_imports
from seamline.model.protocol.epoch import EpochKind
from seamline.model.protocol.holes import is_ledger_contiguous, list_open_holes
from seamline.supervisor.outside import stop_stream
from seamline.supervisor.supervisor_heartbeat import Heartbeat

TOPIC = "imported.orders"
DEFINITION = """
from seamline import *

orders = Pipeline(
    name="orders",
    source=KafkaSource(
        topic="imported.orders",
        schema="id STRING, shop STRING, amount DECIMAL(10,2), at TIMESTAMP",
        event_time="at",
        event_id=["id"],
        watermark=Watermark("10 minutes", idle_after="2 seconds"),
    ),
    views=[View("daily", keys=["shop"], window=Tumbling("1 day"), measures={"n": count(), "total": sum("amount")})],
    stream=Stream(trigger="100 milliseconds"),
    batch=Batch("1 day", "2023-01-01"),
)
"""


class History(Commands):
    """A topic, files, and commands."""

    def __init__(self, home: Path, kafka: KafkaConnection) -> None:
        super().__init__(home, kafka, orders=DEFINITION)
        self.kafka = kafka
        self.files, self.layout = home / "history", Layout(home / "warehouse", "orders")
        self.files.mkdir()

    def write(self, name: str, first: int, last: int) -> None:
        """Write rows of a file, ten a minute from 2024 on; their ids are their numbers."""
        with duckdb.connect() as con:
            rows = con.sql(
                f"SELECT CAST(i AS VARCHAR) AS id, 's' || (i % 5) AS shop, CAST(i % 7 AS DECIMAL(10, 2)) AS amount, "
                f"TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_seconds(i * 6) AS \"at\" "
                f"FROM range({first}, {last}) t(i) ORDER BY i"
            ).to_arrow_table()
        pq.write_table(rows, self.files / name, row_group_size=20_000)

    def send(self, *ids: str, at: str = "2026-11-01T00:00:00Z") -> None:
        """Send records of the topic."""
        with RecordWriter(self.kafka) as writer:
            for id in ids:
                value = {"id": id, "shop": "s0", "amount": 1, "at": at}
                writer.send(TOPIC, value=json.dumps(value).encode(), partition=0)

    def rows(self) -> pa.Table:
        """Return the ids of the master's rows, and what each is of."""
        if not Master.exists(self.layout) or not (paths := Files.of(Master.open(self.layout).table).paths):
            return pa.table({"id": pa.array([], pa.string()), "_topic_id": pa.array([], pa.string())})
        return pa.concat_tables([pq.read_table(each, columns=["id", "_topic_id"]) for each in paths])

    def imported(self) -> int:
        """Return how many rows epochs have imported."""
        if not Master.exists(self.layout):
            return 0
        return sum(each.rows for each in each_epoch(self.layout) if each.kind is EpochKind.IMPORT)

    def total(self) -> tuple[int, Decimal]:
        """Return the rows and the amounts that the view counts."""
        out = self.seamline("query", "orders.daily", "--format", "csv", "--limit", "100000")
        cells = [line.split(",") for line in out.splitlines() if line.startswith('"s') and line[2].isdigit()]
        return sum(int(each[3]) for each in cells), sum((Decimal(each[4]) for each in cells), Decimal(0))

    def require_each_once(self, *spans: range) -> None:
        """Assert that the rows of files are in the log, each once."""
        found = self.rows()
        mine = found.filter(pa.compute.starts_with(found["_topic_id"], "import:"))
        assert Counter(map(int, mine["id"].to_pylist())) == Counter(n for span in spans for n in span)
        log = [*each_epoch(self.layout)]
        assert is_ledger_contiguous(log) and is_ledger_contiguous(read_condensed_log(self.layout))


@pytest.fixture
def history(tmp_path: Path, kafka: KafkaConnection) -> Iterator[History]:
    """An empty topic, and no files."""
    made = History(tmp_path, kafka)
    with TopicAdmin(kafka) as admin:
        admin.create_topic(TOPIC, 1)
        yield made
        end_all(made.home)
        admin.delete_topic(TOPIC)


def test_files_are_imported_by_the_command_alone_and_once(history: History) -> None:
    """No stream runs: the command does it under the stream's lease, and nothing is read of the topic."""
    history.write("a.parquet", 0, 3_000)
    history.send("0", "k")
    history.seamline("import", "orders", "--from", str(history.files), "--map", "x=y", code=5)
    assert not Master.exists(history.layout)
    told = history.seamline("import", "orders", "--from", str(history.files), "--dry-run")
    assert "3,000 rows of 1 file" in told and "1,000 are valid, 0 are refused" in told
    assert "deduplicated by event id id: the first copy read counts" in told
    assert list_imports(history.layout) == ()
    history.seamline("import", "orders", "--from", str(history.files), "--reason", "years")
    again = history.seamline("import", "orders", "--from", str(history.files))
    assert "no rows to import" in again
    history.write("b.parquet", 3_000, 3_500)
    more = history.seamline("import", "orders", "--from", str(history.files))
    assert "500 rows of 1 file" in more and "skipped: 3,000 rows that were imported before" in more
    history.require_each_once(range(3_500))
    assert history.total()[0] == 3_500
    assert [each.kind for each in each_epoch(history.layout)].count(EpochKind.HOLE) == 2
    assert list_open_holes(read_condensed_log(history.layout)) == []
    assert "done, 500 of 500 rows" in history.seamline("imports", "list", "orders")
    assert "nothing is wrong" in history.seamline("audit", "orders")


@pytest.mark.faults
def test_an_import_beside_a_stream_that_is_killed_reads_each_row_once(history: History) -> None:
    """Whatever the driver was at; the topic is read on, and copies count once when the days are built."""
    for number in range(6):
        history.write(f"{number}.parquet", number * 100_000, (number + 1) * 100_000)
    history.send(*(f"k{n}" for n in range(10)))
    history.seamline("stream", "start", "orders", "--here")
    eventually("the topic to be read", lambda: history.rows().num_rows == 10)
    history.seamline("import", "orders", "--from", str(history.files), "--no-wait")
    for more in (1, 200_000, 400_000):
        eventually("rows to be imported", lambda more=more: history.imported() >= more)
        history.send(f"live{more}")
        beat = Heartbeat.read(history.home, "orders")
        assert beat and beat.driver
        os.kill(beat.driver.pid, signal.SIGKILL)
    eventually("all to be imported", lambda: history.imported() == 600_000)
    history.send("7", at="2024-01-01T00:00:42Z")
    eventually("the topic to be read on", lambda: history.rows().num_rows == 600_014)
    history.require_each_once(range(600_000))
    assert history.total()[0] == 600_014, "a copy counts until its day is built"
    history.seamline("stream", "stop", "orders")
    assert stop_stream(history.layout, timeout=120)
    assert "nothing is wrong" in history.seamline("audit", "orders")


@pytest.mark.faults
def test_what_is_cancelled_may_be_imported_by_another(history: History) -> None:
    """Rows that were read stay, the others are free; a file that is replaced meanwhile is refused, and said."""
    history.write("a.parquet", 0, 2_500_000)
    asking = history.begin("import", "orders", "--from", str(history.files))
    eventually("a piece to be imported", lambda: history.imported() > 0)
    [asked] = list_imports(history.layout)
    history.seamline("imports", "cancel", "orders", asked.id, "--reason", "wrong year", "--no-wait")
    asking.communicate(timeout=240)
    assert asking.returncode == 0
    read = history.imported()
    assert 0 < read < 2_500_000
    assert f"cancelled, {read} of 2500000 rows" in history.seamline("imports", "list", "orders")
    whole = (history.files / "a.parquet").read_bytes()
    asked_again = history.seamline("import", "orders", "--from", str(history.files), "--dry-run")
    assert (
        f"{2_500_000 - read:,} rows of 1 file" in asked_again
        and f"skipped: {read:,} rows that were imported before" in asked_again
    )
    history.seamline("import", "orders", "--from", str(history.files))
    assert (history.files / "a.parquet").read_bytes() == whole
    history.require_each_once(range(2_500_000))


@pytest.mark.faults
def test_commands_at_once_import_each_row_once(history: History) -> None:
    """One of them has the lease, the others wait for it; who has planned the same rows is told that another came."""
    for number in range(3):
        history.write(f"{number}.parquet", number * 50_000, (number + 1) * 50_000)
    places = [*(str(history.files / f"{number}.parquet") for number in range(3)), str(history.files)]
    asking = [history.begin("import", "orders", "--from", place) for place in places]
    told = [each.communicate(timeout=300)[0] for each in asking]
    for each, said in zip(asking, told, strict=True):
        assert each.returncode == 0 or "Another import was requested" in said, said
    assert 0 in [each.returncode for each in asking]
    history.seamline("import", "orders", "--from", str(history.files))
    history.require_each_once(range(150_000))
    assert list_open_holes(read_condensed_log(history.layout)) == []
    assert "nothing is wrong" in history.seamline("audit", "orders")


@pytest.mark.faults
def test_rows_with_offsets_end_where_the_topic_is_read_from(history: History) -> None:
    """The topic has lost its first records; the stream begins at what is left, and files end there, exactly."""
    history.send(*(str(n) for n in range(30)))
    with TopicAdmin(history.kafka) as admin:
        admin.delete_records(TOPIC, {0: 12})
    rows = {
        "id": [str(n) for n in range(25)],
        "shop": ["s0"] * 25,
        "amount": pa.array([Decimal(1)] * 25, pa.decimal128(10, 2)),
        "at": ["2026-11-01T00:00:00Z"] * 25,
        "p": [0] * 25,
        "o": [*range(25)],
    }
    pq.write_table(pa.table(rows), history.files / "a.parquet")
    asked = ["import", "orders", "--from", str(history.files), "--map", "_partition=p", "--map", "_offset=o"]
    assert "start the stream first" in history.seamline(*asked, code=5)
    history.seamline("stream", "start", "orders", "--here")
    eventually("the rest to be read", lambda: history.rows().num_rows == 18)
    told = history.seamline(*asked)
    assert "rows below the offsets from which the topic is read (0: 12)" in told
    assert "13 are left to the topic" in told
    history.require_each_once(range(12))
    assert sorted(map(int, history.rows()["id"].to_pylist())) == [*range(30)]
    found = history.seamline(
        "explain", "orders.daily", "--key", "shop=s0", "--window", "2026-11-01", "--rows", "30"
    )
    assert "a.parquet" in found
    history.seamline("stream", "stop", "orders")
    assert stop_stream(history.layout, timeout=120)
