"""Tails go on from snapshots: the same answers, and no more is read for them than what came since."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conformance.processes.saving import save_each_epoch
from tests.unit.process_functions import Abandoned, Remembers

from seamline import Batch, KafkaSource, Pipeline, Process, Stream, Tumbling, View, Watermark, count, sum
from seamline.lake.joins import past_rows, snapshot_files
from seamline.lake.joins.snapshot_files import SnapshotFolders
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import list_all_files
from seamline.spark.stream.derived import folded_rows
from seamline.spark.stream.derived.saved_tails import SavedTails

DAY = "2026-01-05"
HOUR = Tumbling("1 hour")
CARTS = Pipeline(
    name="carts",
    source=[
        KafkaSource(
            name="clicks",
            topic="clicks",
            schema="user STRING, total DECIMAL(10,2), name STRING, n INT, at TIMESTAMP",
            event_time="at",
            watermark=Watermark("10 minutes", idle_after="1 minute"),
        ),
    ],
    derive=[
        Process("pasts", of="clicks", by=Remembers, keys=["user"], begin="1 day"),
        Process("carts", of="clicks", by=Abandoned, keys=["user"], begin="1 day"),
    ],
    views=[
        View(
            "said", of="pasts", keys=["said"], window=HOUR, measures={"n": count(), "deep": sum("size(past)")}
        ),
        View("left", of="carts", keys=["user", "kind"], window=HOUR, measures={"lost": sum("amount")}),
    ],
    batch=Batch("1 hour", DAY),
    stream=Stream(fold_processes=2),
)


def click(user: str, at: str) -> dict[str, object]:
    """Make a click."""
    return {"user": user, "total": "2", "name": "x", "n": 1, "at": f"{DAY}T{at}:00Z"}


def tell(life: Any) -> list[tuple[object, ...]]:
    """Return what both views say."""
    said = [(row["said"], row["window_start"], row["n"], int(row["deep"])) for row in life.answer("said")]
    left = [(row["user"], row["kind"], row["window_start"], row["lost"]) for row in life.answer("left")]
    return [*sorted(said), *sorted(left)]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Return how many rows are read for tails, and why: at a start, for the past of a key, or for what it missed."""
    found: list[tuple[str, int]] = []
    by_key, of_keys, span = (
        folded_rows.read_rows_by_key,
        past_rows.read_rows_of_keys,
        past_rows.read_span_rows,
    )

    def at_start(*given: Any) -> Iterator[Any]:
        batches = [*by_key(*given)]
        found.append(("start", builtins_sum(each.num_rows for each in batches)))
        yield from batches

    def of_past(*given: Any, **named: Any) -> Any:
        rows = of_keys(*given, **named)
        found.append(("missed" if "above" in named else "past", rows.num_rows))
        return rows

    def of_span(*given: Any) -> Any:
        rows = span(*given)
        found.append(("doubt", rows.num_rows))
        return rows

    monkeypatch.setattr(folded_rows, "read_rows_by_key", at_start)
    monkeypatch.setattr(past_rows, "read_rows_of_keys", of_past)
    monkeypatch.setattr(past_rows, "read_span_rows", of_span)
    return found


def builtins_sum(counts: Iterator[int]) -> int:
    """Add up; ``sum`` is a measure here."""
    total = 0
    for each in counts:
        total += each
    return total


def test_a_stream_goes_on_from_its_snapshots(
    scenario: Any, spark: Any, reads: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a start, for a late row, and where a row came late behind a snapshot: it has the rows before that alone."""
    save_each_epoch(monkeypatch)
    life = scenario(CARTS, spark=spark, now=f"{DAY}T23:00")
    plain = scenario(CARTS, spark=None, now=f"{DAY}T23:00")

    def live(*clicks: dict[str, object]) -> list[tuple[str, int]]:
        reads.clear()
        for each in (life, plain):
            each.send(*clicks, topic="clicks")
            each.epoch()
            each.restart() if not clicks else None
        assert tell(life) == tell(plain)
        return [*reads]

    for hour in range(8, 14):
        live(*(click(user, f"{hour:02}:{minute:02}") for user in ("ada", "bob") for minute in (10, 40)))
    # The tails are there, so nothing is read at all.
    assert live(click("ada", "14:00")) == []
    live()
    # Two folds start: each reads the rows behind the watermark of the newest snapshot alone.
    assert live(click("bob", "14:05")) == [("doubt", 0), ("start", 1)] * 2
    # A late row: its key's rows since the snapshot before it, of which none came later.
    assert live(click("ada", "12:20")) == [("missed", 0), ("past", 6)] * 2
    live()
    # The newest snapshot has the late row, those before it do not: another one goes on from before both.
    start, first, second = (
        [("doubt", 0), ("start", 2)],
        [("missed", 1)],
        [("missed", 0), ("past", 7)],
    )
    assert live(click("ada", "12:50")) == [*start, *first, *second] * 2
    # Of two keys that are late, each goes on from a snapshot of its own.
    found = live(click("bob", "09:35"), click("ada", "13:35"))
    assert found == [("missed", 2), ("missed", 0), ("past", 10), ("missed", 0), ("past", 8)] * 2
    # There is no snapshot of before all rows.
    assert live(click("ada", "00:10")) == [("past", 16)] * 2
    # A late row that came behind the newest snapshot, at a start: its key goes on from before it, the other does not.
    monkeypatch.setattr(SavedTails, "save", lambda *_: None)
    live(click("bob", "13:40"))
    life.restart()
    assert (
        live(click("bob", "14:06"))
        == [("doubt", 1), ("missed", 1), ("missed", 0), ("past", 12), ("start", 1)] * 2
    )


def test_a_file_that_cannot_be_read_is_none(
    scenario: Any, spark: Any, reads: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows of the span are read, and it is deleted."""
    save_each_epoch(monkeypatch)
    life = scenario(CARTS, spark=spark, now=f"{DAY}T23:00")
    for hour in (9, 10, 11):
        life.send(click("ada", f"{hour:02}:00"), topic="clicks")
        life.epoch()
    folder = life.engine.layout.table("snapshots")
    files = sorted(folder.glob("*/*.parquet"))
    assert len(files) == 12

    def tear() -> None:
        for each in folder.glob("*/*.parquet"):
            each.write_bytes(each.read_bytes()[:-20] + b"x" * 20)

    tear()
    reads.clear()
    # A late row has its key read from the beginning, and no view is behind.
    life.send(click("ada", "10:10"), topic="clicks")
    life.epoch()
    assert not life.engine.writer.behind
    assert reads == [("missed", 0), ("missed", 0), ("past", 3)] * 2
    tear()
    other = folder / "of-another-0"
    other.mkdir()
    (other / "1-1-00.parquet").write_bytes(b"")
    life.restart()
    reads.clear()
    assert not [*other.iterdir()]
    life.send(click("ada", "12:00"), topic="clicks")
    life.epoch()
    assert reads == [("start", 4)] * 2
    assert not {*files} & {*folder.glob("*/*.parquet")}


def test_a_log_that_was_brought_back_has_no_snapshots(
    scenario: Any, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have rows of epochs that it may have no longer, or has others of the same number for."""
    save_each_epoch(monkeypatch)
    life = scenario(CARTS, spark=spark, now=f"{DAY}T23:00")
    for hour in (9, 10):
        life.send(click("ada", f"{hour:02}:00"), topic="clicks")
        life.epoch()
    saved = life.engine.derived.folded.saved
    [process, _] = life.engine.derived.folded.processes.values()
    saved.files.tidy(process)
    newest, oldest = saved.files.found[process.id]
    assert len(newest.places) == len(oldest.places) == 2
    # One of two processes has not written its keys yet, or never will.
    newest.places[1].unlink()
    saved.files.tidy(process)
    assert saved.files.found[process.id] == [oldest]
    assert newest.places[0].exists()
    # The next ones are whole: nobody waits for the others any more.
    life.send(click("ada", "11:00"), topic="clicks")
    life.epoch()
    saved.files.tidy(process)
    assert len(saved.files.found[process.id]) == 2
    assert not newest.places[0].exists()
    for changed in ({"restated": 1}, {}):
        monkeypatch.setattr(life.engine.writer, "restated", changed.get("restated", 0))
        if not changed:
            monkeypatch.setattr(type(saved.files.stamps), "find_rows", lambda *_: {})
        before = [*saved.files.found[process.id]]
        saved.files.found.clear()
        saved.files.tidy(process)
        assert saved.files.found[process.id] == [], changed
        assert not any(place.exists() for each in before for place in each.places)


def test_files_of_functions_that_are_gone_go_too(tmp_path: Path) -> None:
    """Also where a definition has no function any more; what is not written to its end goes of those that stay."""
    layout = Layout(tmp_path, "carts")
    writer: Any = SimpleNamespace(restated=0)
    for id, name in (("carts-1", "7-8-ab-0-1.parquet"), ("carts-1", "7-9-ab-0-1.parquet.17"), ("old-2", "1")):
        layout.snapshots(id).mkdir(parents=True, exist_ok=True)
        (layout.snapshots(id) / name).touch()
    SnapshotFolders(writer, layout, ["carts-1"]).clear()
    assert [each.name for each in list_all_files(layout.table("snapshots"))] == ["7-8-ab-0-1.parquet"]
    SnapshotFolders(writer, layout, []).clear()
    assert list_all_files(layout.table("snapshots")) == []


def test_no_epoch_fails_for_a_snapshot(
    scenario: Any, spark: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is committed by then: whoever cannot write a cache says so, and goes on."""
    save_each_epoch(monkeypatch)
    life = scenario(CARTS, spark=spark, now=f"{DAY}T23:00")

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    for hour in (7, 8):
        life.send(click("ada", f"{hour:02}:00"), topic="clicks")
        life.epoch()
    # There are files that cannot be read, others that are to go, and nobody may delete them.
    for each in life.engine.layout.table("snapshots").glob("*/*.parquet"):
        each.write_bytes(b"torn")
        each.with_name(each.name.replace("0-2", "0-3")).write_bytes(b"of other parts")
        (each.parent / "0-1-00-0-1.parquet").write_bytes(b"of another log")
    monkeypatch.setattr(snapshot_files, "delete_files", refuse)
    life.restart()
    assert "Old snapshots could not be deleted: [Errno 13] Permission denied" in caplog.text
    for hour in (9, 10):
        life.send(click("ada", f"{hour:02}:00"), topic="clicks")
        life.epoch()
    assert "Snapshots of pasts could not be written: [Errno 13] Permission denied" in caplog.text
    assert "Snapshots of pasts could not be deleted: [Errno 13] Permission denied" in caplog.text
    assert {*life.engine.derived.folded.kept} and not life.engine.writer.behind
