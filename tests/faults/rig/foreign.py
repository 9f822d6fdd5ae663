"""What other people's engines do to our tables, by deltalake and by Spark, and how a pipeline fares after it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

import deltalake
import pytest
from deltalake import DeltaTable
from tests.lives.checks import check, check_log
from tests.lives.definitions import Shape
from tests.lives.events.batching import Build, Publish
from tests.lives.events.sending import Close, Send
from tests.lives.events.streaming import Epoch, Idle, Rules, Serve
from tests.lives.records import Column
from tests.lives.world import Entry, World

from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, count
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.storage import log_store
from seamline.lake.storage.delta_table import Table
from seamline.lake.tables.audits_table import Audits
from seamline.lake.tables.claims_table import claim_intervals
from seamline.lake.tables.comparisons_table import Comparisons
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import ChangedByOthers
from seamline.model.protocol.audit import Audit
from seamline.model.protocol.comparison import Comparison
from seamline.model.protocol.condensed import LEAP
from seamline.model.time.intervals import Interval

HARMLESS, ANEW, REFUSED = "harmless", "the stream starts anew", "refused"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
LONG_AGO = timedelta(days=60)
VECTORS = "deletion vectors"
TABLES: Mapping[str, str] = {
    "master": "_epoch",
    "quarantine": "_epoch",
    "ledger": "epoch",
    "slices": "from_epoch",
    "serving": "epoch",
    "generations": "generation",
    "manifest": "view",
    "control": "state",
    "claims": "run",
    "builds": "run",
    "certificates": "run",
    "comparisons": "view",
    "audits": "actor",
    "rows reprocessed": "_epoch",
    "verdicts": "epoch",
}
"""Each with a column by which it may be ordered."""
OF_STREAM = ("master", "quarantine", "ledger", "slices", "manifest")
"""What a start opens."""
OF_UPKEEP = (
    "master",
    "quarantine",
    "ledger",
    "slices",
    "generations",
    "manifest",
    "control",
    "claims",
    "builds",
)
"""What upkeep looks after."""
OF_BATCH = ("generations", "manifest", "claims", "builds", "certificates", "comparisons", "verdicts")
"""What runs read or write."""
DEEDS = (
    "OPTIMIZE",
    "RESTORE",
    "DELETE",
    "INSERT",
    "ADD COLUMN",
    "ZORDER",
    "checkpoint",
    "log clean-up",
    "VACUUM",
    VECTORS,
)
"""In the order in which they are done: RESTORE needs the files and the log that later ones take."""


class Hand(Protocol):
    """An engine by which people do it."""

    def can(self, deed: str) -> bool:
        """Return whether it knows how to."""

    def does(self, deed: str, root: Path, column: str) -> None:
        """Do it to a table."""

    def bring_back(self, root: Path, version: int) -> None:
        """RESTORE a table to a version."""


class Deltalake:
    """deltalake, as people use it; it writes no deletion vectors."""

    def can(self, deed: str) -> bool:
        return deed != VECTORS

    def does(self, deed: str, root: Path, column: str) -> None:
        table = DeltaTable(str(root))
        deeds: Mapping[str, Callable[[], object]] = {
            "OPTIMIZE": table.optimize.compact,
            "RESTORE": lambda: table.restore(0),
            "DELETE": table.delete,
            "INSERT": lambda: deltalake.write_deltalake(
                table, table.to_pyarrow_table().slice(0, 1), mode="append"
            ),
            "ADD COLUMN": lambda: table.alter.add_columns(
                [deltalake.Field("theirs", deltalake.schema.PrimitiveType("string"))]
            ),
            "ZORDER": lambda: table.optimize.z_order([column]),
            "checkpoint": table.create_checkpoint,
            "log clean-up": lambda: cleaned(table, root),
            "VACUUM": lambda: table.vacuum(0, dry_run=False, enforce_retention_duration=False),
        }
        deeds[deed]()

    def bring_back(self, root: Path, version: int) -> None:
        DeltaTable(str(root)).restore(version)


class Spark:
    """Spark with delta-spark, as people use it; ``session`` is one for all."""

    def __init__(self, session: Any) -> None:
        self.session = session
        session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")

    def can(self, deed: str) -> bool:
        return True

    def does(self, deed: str, root: Path, column: str) -> None:
        name = f"delta.`{root}`"
        match deed:
            case "OPTIMIZE":
                self.sql(f"OPTIMIZE {name}")
            case "RESTORE":
                self.sql(f"RESTORE TABLE {name} TO VERSION AS OF 0")
            case "DELETE":
                self.sql(f"DELETE FROM {name}")
            case "INSERT":
                self.sql(f"INSERT INTO {name} SELECT * FROM {name} LIMIT 1")
            case "ADD COLUMN":
                self.sql(f"ALTER TABLE {name} ADD COLUMNS (theirs_too STRING)")
            case "ZORDER":
                self.sql(f"OPTIMIZE {name} ZORDER BY ({column})")
            case "checkpoint":
                self.log(root).checkpoint()
            case "log clean-up":
                # Spark lets go of old commits after each checkpoint, but of a table that says it should not.
                aged(root)
                self.log(root).checkpoint()
                assert log_store.entry_path(root, 0).exists()
            case "VACUUM":
                self.sql(f"VACUUM {name} RETAIN 0 HOURS")
            case _:
                self.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
                self.sql(f"OPTIMIZE {name}")
                [[most]] = self.session.sql(f"SELECT CAST(max({column}) AS STRING) FROM {name}").collect()
                self.sql(f"DELETE FROM {name} WHERE {column} = '{most}'")
                self.sql(f"REORG TABLE {name} APPLY (PURGE)")

    def bring_back(self, root: Path, version: int) -> None:
        self.sql(f"RESTORE TABLE delta.`{root}` TO VERSION AS OF {version}")

    def sql(self, text: str) -> None:
        self.session.sql(text).collect()

    def log(self, root: Path) -> Any:
        found = self.session._jvm.org.apache.spark.sql.delta.DeltaLog
        return found.forTable(self.session._jsparkSession, str(root))


def aged(root: Path) -> None:
    """Let all that is in a log be of long ago."""
    then = time.time() - LONG_AGO.total_seconds()
    for file in (root / "_delta_log").glob("*"):
        os.utime(file, (then, then))


def cleaned(table: DeltaTable, root: Path) -> None:
    """Let go of old commits after a checkpoint."""
    aged(root)
    table.create_checkpoint()
    table.cleanup_metadata()
    assert not log_store.entry_path(root, 0).exists()


def shape() -> Shape:
    """Declare a count by customer, with an id."""
    view = View("v", keys=["customer"], window=Tumbling("1 hour"), measures={"n": count()})
    source = KafkaSource(
        topic="events",
        schema="number BIGINT NOT NULL, customer STRING, at TIMESTAMP",
        event_time="at",
        event_id=["number"],
    )
    pipeline = Pipeline(name="life", source=source, views=[view], batch=Batch("1 day", "2024-01-01"))
    columns = (Column("customer", "STRING", ("a", "b")),)
    return Shape(columns, "at", "number", unique=True, lanes=1, pipeline=compile_pipeline(pipeline))


@contextmanager
def lived() -> Iterator[World]:
    """Live with every table: epochs, refused records, two runs, records judged again, decisions, an audit.

    A master's log that others clean up has lost nothing that the plain count goes by.
    """
    with World(shape()) as world, patch.object(Entry, "stands", lambda *_: True):
        for number in range(4):
            Send(7 + number, 12, number % 2).run(world)
            Epoch(100).run(world)
        Close(3, 3).run(world)
        Epoch(100).run(world)
        batch(world)
        Rules().run(world)
        batch(world)
        Serve().run(world)
        Serve().run(world)
        for number in range(3):
            decide(world, number)
        yield world


def batch(world: World) -> None:
    """Build what is dirty, and publish it, twice over: an older run is replaced."""
    Build(-1, "").run(world)
    Publish(0, "").run(world)


def decide(world: World, number: int) -> None:
    """Leave a decision, a claim, an audit and a comparison."""
    control, now = ControlTable.ensure(world.layout), datetime.now(UTC)
    world.wanted = f"person {number}"
    control.want(Desired.RUNNING, actor=world.wanted, reason="so", now=now)
    day = Interval(NOW, NOW + timedelta(days=1))
    with claim_intervals(world.layout, f"run {number}", "ada", [day]):
        pass
    Audits.ensure(world.layout).append(Audit("life", now, 1.0, "ada", number, (), {}, {}, (), ()))
    made = Comparison("v", f"{number}", "g", 0, "", 0, now, 1, 0, 0, 0, {}, {})
    Comparisons.ensure(world.layout).append([made])


def place(world: World, table: str) -> Path:
    """Find a table."""
    view, layout = world.pipeline.views[0], world.layout
    match table:
        case "slices":
            return layout.slices(view)
        case "generations":
            return layout.generations(view)
        case "serving":
            return layout.serving(view)
        case "rows reprocessed":
            return next(layout.table("records").glob("*/rows"))
        case "verdicts":
            return next(layout.table("records").glob("*/verdicts"))
    return layout.table(table)


def fares(world: World, hand: Hand, table: str, deed: str) -> str:
    """Do it, and tell how the pipeline fares; what is refused is undone, as the refusal says, and all is well again."""
    root = place(world, table)
    version = Table.open(root).version
    with kept(root) if deed == VECTORS else nullcontext():
        hand.does(deed, root, TABLES[table])
        try:
            return goes_on(world, table)
        except ChangedByOthers as refused:
            world.gone()
            require_refused(world, table)
            hand.bring_back(root, undone(root, version, refused))
        if deed == VECTORS:
            # The rows are there again, and a reader must still know how others would be hidden.
            with pytest.raises(ChangedByOthers, match="now requires deletionVectors"):
                Table.open(root)
    goes_on(world, table)
    return REFUSED


@contextmanager
def kept(root: Path) -> Iterator[None]:
    """Bring a table's folder back from a backup in the end."""
    backup = root.with_name(f"{root.name}.backup")
    shutil.copytree(root, backup)
    try:
        yield
    finally:
        shutil.rmtree(root)
        backup.rename(root)


def require_refused(world: World, table: str) -> None:
    """See that a start and upkeep say so too."""
    if table in OF_STREAM:
        with pytest.raises(ChangedByOthers):
            world.start()
        world.gone()
    if table in OF_UPKEEP:
        with pytest.raises(ChangedByOthers):
            maintain_tables(world.pipeline, world.layout)


def goes_on(world: World, table: str) -> str:
    """Answer, hold an epoch, and do what else touches the table, each beside the plain count."""
    found = HARMLESS
    Table.open(place(world, table)).read()
    check(world)
    before = world.driver
    world.widened = True
    Send(100 + world.newest % LEAP, 3, 1).run(world)
    Epoch(100).run(world)
    if world.driver is not before:
        found = ANEW
        Epoch(100).run(world)
    if table == "slices":
        Idle(10**6).run(world)
        assert not world.running().writer.behind
    if table == "serving":
        Serve().run(world)
    if table in OF_BATCH:
        batch(world)
    decide(world, world.newest)
    check(world)
    check_log(world)
    return found


def undone(root: Path, version: int, refused: ChangedByOthers) -> int:
    """Return the version that a refusal says to bring the table back to; it names the table, and what was done."""
    said = f"{root} has been changed by another writer: its version "
    assert refused.message.startswith(said), refused.message
    first = int(refused.message.removeprefix(said).partition(" ")[0])
    assert version < first <= version + 3, refused.message
    assert f"restore({first - 1})" in refused.hint
    return first - 1
