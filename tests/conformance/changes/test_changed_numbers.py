"""What is said of a number of a table: the changes behind it, that slices are what rows make, and the past."""

from __future__ import annotations

import shutil
from itertools import count as count_from

import duckdb
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as f

from seamline import Batch, Changelog, Global, KafkaSource, Pipeline, View, Watermark, count, sum
from seamline.lake.audit.recounted import recount_states
from seamline.lake.audit.volumes import check_published_generations
from seamline.lake.engine import states
from seamline.lake.engine.changed_index import ChangedIndex
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.original_changes import read_change_rows
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.read.originals import seek_key
from seamline.lake.tables.committed_log import CommittedLog
from seamline.model.compile.changes.compiled_changelog import SIGN
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side
from seamline.serve.explain import explain_number
from seamline.serve.explanation import format_explanation, tabulate_rows
from seamline.spark.build import changed_path
from seamline.spark.build.changed_path import contribute, find_contributions, read_image_file
from seamline.spark.stream.catch_up import compute_missing_slices
from seamline.spark.stream.derived import saved_images
from seamline.spark.stream.derived.changed_rows import ChangedRows

DAY = "2026-01-05"
BANK = Pipeline(
    name="bank",
    source=[
        KafkaSource(
            name="accounts",
            topic="accounts",
            schema="id INT, country STRING, balance DECIMAL(12,2), note STRING, op STRING, version INT, at TIMESTAMP",
            event_time="at",
            key=["id"],
            order="version",
            deleted="op = 'd'",
            watermark=Watermark("10 minutes", idle_after="1 minute"),
        )
    ],
    derive=[Changelog("open", of="accounts")],
    views=[
        View(
            "by_country",
            of="open",
            keys=["country"],
            window=Global(),
            measures={"n": count(), "total": sum("balance")},
        )
    ],
    batch=Batch("1 hour", DAY),
)


def change(id: int, country: str, balance: str, version: int, at: str, op: str = "u") -> dict[str, object]:
    """Return the record of a change."""
    return {
        "id": id,
        "country": country,
        "balance": balance,
        "version": version,
        "op": op,
        "at": f"{DAY}T{at}:00Z",
    }


@pytest.fixture
def life(scenario, spark, monkeypatch):
    """Two hours of accounts: one moves to another country, an old change comes late, one is deleted."""
    monkeypatch.setattr(saved_images, "EVERY", 0.0)
    # A scenario's clock stands still, and of snapshots of one moment the newest alone is kept.
    minutes = count_from(1)
    monkeypatch.setattr(
        saved_images, "to_unix_micros", lambda at: to_unix_micros(at) + 60_000_000 * next(minutes)
    )
    made = scenario(BANK, spark=spark, now="2026-01-09")
    made.send(change(1, "se", "10", 1, "10:00"), change(2, "se", "5", 1, "10:10"), topic="accounts")
    made.epoch()
    made.send(change(1, "no", "20", 3, "11:00"), change(3, "no", "1", 1, "11:10"), topic="accounts")
    made.epoch()
    made.send(
        change(1, "dk", "99", 2, "10:30"),
        change(2, "se", "5", 2, "11:20", "d"),
        change(3, "no", "7", 2, "12:30"),
        topic="accounts",
    )
    made.epoch()
    return made


def read(life, **how):
    """Return the answer as country, rows and total."""
    found = read_merged_answer(life.pipeline, life.pipeline.views[0], life.engine.layout, ReadRequest(**how))
    return sorted((row["country"], row["n"], float(row["total"])) for row in found.table.to_pylist())


def test_a_number_of_a_table_is_taken_apart_to_its_changes(life):
    """The reader sees which change added what, and which took it away; audits find the same."""
    pipeline, layout = life.pipeline, life.engine.layout
    [view] = pipeline.views
    now = [("no", 2, 27.0)]
    assert read(life) == now
    assert life.batch() == [f"{DAY}T10:00:00Z", f"{DAY}T11:00:00Z"]
    assert read(life) == now
    found = explain_number(pipeline, view, layout, {"country": "no"}, (None, None))
    assert found.proven, found.proofs
    told = "\n".join(format_explanation(found))
    assert "Changes:" in told
    assert "added by accounts/0@2 at 2026-01-05T11:00:00Z, epoch 1: id=1, country=no, balance=20.00" in told
    assert (
        "taken away by accounts/0@6 at 2026-01-05T12:30:00Z, epoch 2: id=3, country=no, balance=1.00" in told
    )
    assert [row["row"] for row in tabulate_rows(found)] == ["added", "added", "taken away", "added"]
    gone = {"country": "se"}
    left = read_change_rows(pipeline, view, layout, seek_key(view, gone), gone, 2)
    assert sorted((row["id"], row["_epoch"], row[SIGN]) for row in left.to_pylist()) == [
        (1, 0, 1),
        (1, 1, -1),
        (2, 0, 1),
        (2, 2, -1),
    ]
    log = CommittedLog.pin(pipeline, layout)
    assert recount_states(pipeline, view, layout, log).findings == ()
    assert check_published_generations(pipeline, view, layout) == (2, [])
    # As of an epoch of the past, before what was deleted since.
    assert read(life, as_of=0) == [("se", 2, 15.0)]
    assert read(life, as_of=1) == [("no", 2, 21.0), ("se", 1, 5.0)]


@pytest.mark.faults
def test_a_block_of_epochs_is_what_slices_are(life, monkeypatch):
    """A view that is behind gets the same states, wherever its block begins, with or without a snapshot.

    What was read of one is not kept: a driver lives for months.
    """
    read_from: list[int] = []

    def reading(spark, files, changelog):
        read_from.append(files.epoch)
        return read_image_file(spark, files, changelog)

    monkeypatch.setattr(changed_path, "read_image_file", reading)
    writer = life.engine.writer
    [view] = writer.pipeline.views
    slices = writer.slices[view.id]
    kept = states.combine_states(view, [slices.table.read()], by=["from_epoch", "to_epoch"])
    for after in (-1, 0, 1):
        made = compute_missing_slices(life.engine.spark, writer, slices, after=after, until=2)
        own = states.combine_states(view, [made], by=["from_epoch", "to_epoch"])
        wanted = kept.filter(pc.greater(kept["from_epoch"], after))
        assert in_order(own) == in_order(wanted), after
    assert read_from
    assert life.engine.spark._jsparkSession.sharedState().cacheManager().isEmpty()


@pytest.mark.faults
def test_a_build_reads_no_row_behind_its_last_one(life, monkeypatch):
    """Intervals of long ago are built of few rows, however long the log has become since; the latest needs the last."""
    read_up_to: list[int] = []

    def contributing(images, rows, changelog):
        read_up_to.append(rows.agg(f.max("_epoch").alias("last")).toArrow()["last"][0].as_py())
        return contribute(images, rows, changelog)

    monkeypatch.setattr(changed_path, "contribute", contributing)
    engine = life.engine
    [changelog] = engine.derived.changed.changelogs.values()
    for hour, last, booked in (("11:00", 1, {("no", 1), ("se", -1)}), ("11:20", 2, {("se", -1)})):
        at = f.col("_event_time")
        wanted = (at >= f.lit(f"{DAY} {hour}").cast("timestamp")) & (
            at < f.lit(f"{DAY} {hour}").cast("timestamp") + f.expr("INTERVAL 5 MINUTES")
        )
        found = find_contributions(engine.spark, life.pipeline, engine.layout, changelog, wanted, 2)
        assert {(row["country"], row[SIGN]) for row in found.collect()} == booked
        assert read_up_to.pop() == last
    assert read_up_to == []


def in_order(table):
    """Return rows in an order of their own."""
    return sorted(map(str, table.to_pylist()))


def lose_indexes(life):
    """Let the next driver find no index of its predecessor."""
    life.engine.derived.forget()
    shutil.rmtree(life.engine.scratch / "changed")


def test_a_lost_index_is_made_of_a_snapshot_and_the_rows_above_it(life, monkeypatch, caplog):
    """One that is torn is deleted, and an older one, or the whole log, serves as well."""
    [folder] = life.engine.layout.table("snapshots").iterdir()
    caplog.set_level("INFO")
    for number, broken in enumerate((0, 1)):
        before = read(life)
        lose_indexes(life)
        files = sorted(folder.iterdir())
        assert files
        if broken:
            files[-1].write_bytes(files[-1].read_bytes()[:-9])
        life.restart()
        assert read(life) == before
        life.send(change(4 + number, "no", "3", 1, "12:40"), topic="accounts")
        life.epoch()
        assert read(life) == [("no", 3 + number, 30.0 + 3 * number)]
        assert "rows of open are known again" in caplog.text and "above epoch" in caplog.text


@pytest.mark.faults
def test_a_view_that_is_behind_catches_up(life, monkeypatch):
    """An index that fails leaves the view behind; no epoch fails for it, and nothing is lost."""

    def fail(*_):
        raise duckdb.IOException("no index")

    with monkeypatch.context() as broken:
        broken.setattr(ChangedIndex, "derive", fail)
        life.send(change(4, "no", "3", 1, "12:40"), topic="accounts")
        life.epoch()
        assert read(life) == [("no", 2, 27.0)]
    life.engine.catch_up()
    assert read(life) == [("no", 3, 30.0)]
    life.send(change(4, "no", "3", 2, "12:50", "d"), topic="accounts")
    life.epoch()
    assert read(life) == [("no", 2, 27.0)]


def test_columns_that_no_view_uses_are_not_carried(life):
    """The index has the key, the columns that are counted, and what orders changes."""
    changed = life.engine.derived.changed
    assert isinstance(changed, ChangedRows)
    [made] = changed.changelogs.values()
    assert [each.name for each in made.columns] == ["country", "balance"]
    [kept] = changed.kept.values()
    assert [*kept.index.names] == ["id", "country", "balance"]


@pytest.mark.faults
def test_the_batch_layer_alone_says_what_intervals_come_to(life):
    """Cuts that differ leave a part that may take away what another part has not added."""
    life.batch()
    assert read(life, side=Side.BATCH) == [("no", 2, 21.0)]
