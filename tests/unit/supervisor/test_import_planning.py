"""What an import would do is known before anything is asked for, and what it must not do is refused."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.shop import ROOT_EXAMPLES, sales_pipeline

from seamline import Batch, Csv, KafkaSource, Pipeline, Tumbling, View, count
from seamline.lake.imports import found_history
from seamline.lake.imports.import_plans import load_plan, require_planned_files, staging_folder
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import decide_failover, decide_to_cancel, list_imports, take_back_failover
from seamline.lineage import import_lineage
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.errors import BadRange, Conflict, NotFound
from seamline.model.protocol.clusters.failovers import By, Failover
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.plan.lineage.lineage_events import RunState
from seamline.supervisor.imports import earlier_imports, import_planning
from seamline.supervisor.imports.earlier_imports import list_plan_notes
from seamline.supervisor.imports.import_planning import DraftedImport, ask, draft_import, find_border
from seamline.supervisor.imports.import_requests import ImportRequest
from seamline.supervisor.imports.import_wording import describe_draft

AT = datetime(2013, 1, 1, 5, tzinfo=UTC)
FAILOVER = Failover(
    "kafka_b",
    "kafka_default",
    By.OFFSETS,
    {Lane("id", 0): 20},
    {Lane("n", 0): 4},
    False,
    None,
    "",
    "ada",
    "",
    AT,
)


def write_sales(place: Path, *ids: int, **more: pa.Array) -> Path:
    """Write sales as files have them."""
    rows = {
        "id": [*ids],
        "customer": ["ada"] * len(ids),
        "amount": [5] * len(ids),
        "sold_at": pa.array([AT] * len(ids), pa.timestamp("us", "UTC")),
        **more,
    }
    pq.write_table(pa.table(rows), place)
    return place


def draft(home: Path, place: Path, pipeline: CompiledPipeline | None = None, **more: Any) -> DraftedImport:
    """Plan an import of files."""
    made = pipeline or sales_pipeline()
    return draft_import(made, Layout(home / "warehouse", made.name), ImportRequest(str(place), "ada", **more))


def declare(**source: Any) -> CompiledPipeline:
    """Declare a pipeline whose source is like that."""
    columns = {"topic": "t", "schema": "n BIGINT, at TIMESTAMP", "event_time": "at", **source}
    view = View("v", keys=[], window=Tumbling("1 hour"), measures={"c": count()})
    return compile_pipeline(
        Pipeline("p", source=KafkaSource(**columns), views=[view], batch=Batch("1 day", "2013-01-01"))
    )


def test_a_draft_says_rows_bytes_times_and_what_becomes_of_some(tmp_path: Path) -> None:
    """Nothing is asked for by it."""
    place = write_sales(tmp_path / "a.parquet", 1, 2)
    found = draft(tmp_path, place)
    assert (found.plan.rows, found.plan.size) == (2, place.stat().st_size)
    assert found.decision.bounds and AT in found.decision.bounds
    assert found.sample and (found.sample.accepted, found.sample.refused) == (2, {})
    lines = "\n".join(describe_draft(found))
    assert "2 rows of 1 file" in lines and "2 are valid, 0 are refused" in lines
    assert list_imports(Layout(tmp_path / "warehouse", "shop")) == ()


def test_look_ups_are_joined_to_the_sample(tmp_path: Path) -> None:
    """As the stream would: the shipped example of ads has a table of campaigns."""
    pipeline = load_pipeline(ROOT_EXAMPLES, "ad_campaigns")
    text = {name: ["x"] for name in ("user_id", "page_id", "ad_type", "event_type", "ip_address")}
    at = pa.array([datetime(2026, 1, 5, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({**text, "ad_id": [7], "event_time": at}), tmp_path / "ads.parquet")
    found = draft(tmp_path, tmp_path / "ads.parquet", pipeline, disjoint=True)
    assert found.sample and found.sample.accepted + sum(found.sample.refused.values()) == 1


def test_rows_are_tried_where_the_stream_looks_for_copies(tmp_path: Path) -> None:
    """Of a sample nothing came before, and none is in a window of so many events yet."""
    pipeline = declare(event_id=["n"], dedup_within="1 hour")
    pq.write_table(
        pa.table({"n": [1], "at": pa.array([AT], pa.timestamp("us", "UTC"))}), tmp_path / "a.parquet"
    )
    found = draft(tmp_path, tmp_path / "a.parquet", pipeline)
    assert found.sample and found.sample.accepted == 1


@pytest.mark.parametrize(
    ("source", "asked", "words"),
    [
        ({}, {}, "may be in 't' too, and would count twice"),
        ({"event_time": "processing_time()"}, {"disjoint": True}, "uses processing_time"),
        ({"event_time": "_kafka_timestamp"}, {"disjoint": True}, "cannot stand in for Kafka's timestamp"),
        ({"format": Csv()}, {"disjoint": True}, "rows of files are written as JSON"),
        (
            {},
            {"disjoint": True, "columns": {"_headers": "n"}},
            "'_headers' is neither a field of 't' nor a part",
        ),
        ({}, {"columns": {"_offset": "n"}}, "must be given together"),
        ({}, {"disjoint": True, "columns": {"n": "gone"}}, "has no column 'gone'"),
        ({}, {"disjoint": True, "columns": {"n": "id"}}, "has a column 'n' already"),
        ({}, {"disjoint": True, "source": "other"}, "has no source 'other'"),
        ({"topic": ["t", "u"]}, {"disjoint": True}, "say which one the rows belong to"),
    ],
)
def test_what_cannot_be_imported_is_refused(
    tmp_path: Path, source: dict[str, Any], asked: dict[str, Any], words: str
) -> None:
    """Before anything is asked for, and with the way out."""
    rows = {"n": [1], "id": [2], "at": pa.array([AT], pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    with pytest.raises(BadRange, match=words) as refused:
        draft(tmp_path, tmp_path / "a.parquet", declare(**source), **asked)
    assert refused.value.hint


def test_files_of_after_the_border_are_left_out_whole(tmp_path: Path) -> None:
    """Their footers say so; of the others the rows are."""
    folder = tmp_path / "files"
    folder.mkdir()
    write_sales(folder / "a.parquet", 1)
    write_sales(folder / "b.parquet", 2, sold_at=pa.array([AT.replace(day=3)], pa.timestamp("us", "UTC")))
    found = draft(tmp_path, folder, until=AT.replace(day=2))
    assert [each.file.name for each in found.plan.files] == ["a.parquet"]
    assert found.decision.until is None, "an event id tells copies exactly"
    plain = declare(schema="id BIGINT, sold_at TIMESTAMP", event_time="sold_at")
    assert draft(tmp_path, folder, plain, until=AT.replace(day=2)).decision.until == AT.replace(day=2)


def test_a_plan_is_asked_for_only_if_no_other_was(tmp_path: Path) -> None:
    """Both would have planned the same rows; and none is made while a cancelled one is not closed."""
    place, layout = write_sales(tmp_path / "a.parquet", 1), Layout(tmp_path / "warehouse", "shop")
    one, two = draft(tmp_path, place), draft(tmp_path, place, disjoint=True)
    assert one.plan.id == two.plan.id
    ask(one, layout)
    with pytest.raises(Conflict, match="Another import was requested"):
        ask(two, layout)
    assert draft(tmp_path, place).plan.rows == 0
    decide_to_cancel(ControlTable.ensure(layout), one.plan.id, [], actor="ada", reason="no", now=AT)
    with pytest.raises(BadRange, match="is being cancelled"):
        draft(tmp_path, place)
    with pytest.raises(Conflict):
        ask(replace(two, earlier=replace(two.earlier, known=(one.decision,))), layout)


def test_the_lineage_of_what_was_asked_for_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of nothing that was only drafted, and where a server is configured."""
    told: list[tuple[str, RunState]] = []
    monkeypatch.setattr(
        import_lineage, "tell_import", lambda layout, decision, state: told.append((decision.id, state))
    )
    one = draft(tmp_path, write_sales(tmp_path / "a.parquet", 1))
    monkeypatch.setattr(import_planning, "is_configured", lambda: True)
    ask(one, Layout(tmp_path / "warehouse", "shop"))
    assert told == [(one.decision.id, RunState.START)]
    monkeypatch.setattr(import_planning, "is_configured", lambda: False)
    ask(draft(tmp_path, write_sales(tmp_path / "b.parquet", 2)), Layout(tmp_path / "warehouse", "shop"))
    assert len(told) == 1


def test_what_was_cancelled_before_its_first_row_is_another_import_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lane is closed: under the same id nothing would ever be read."""
    place = write_sales(tmp_path / "a.parquet", 1)
    one = draft(tmp_path, place)
    ask(one, Layout(tmp_path / "warehouse", "shop"))
    lane = one.decision.range
    log = [
        Epoch(0, 1, AT, "v", kind=EpochKind.HOLE, ranges=(lane,)),
        Epoch(1, 1, AT, "v", kind=EpochKind.AMEND, ranges=(lane,)),
    ]
    monkeypatch.setattr(earlier_imports, "read_condensed_log", lambda _: log)
    control = ControlTable.ensure(Layout(tmp_path / "warehouse", "shop"))
    decide_to_cancel(control, one.plan.id, [], actor="ada", reason="no", now=AT)
    again = draft(tmp_path, place)
    assert again.plan.rows == 1
    assert again.plan.id != one.plan.id


def test_a_plan_warns_of_rows_under_another_name_and_of_an_earlier_border(tmp_path: Path) -> None:
    """Nothing is refused for it: exports are copied, and borders are moved."""
    folder = tmp_path / "files" / "2013"
    folder.mkdir(parents=True)
    write_sales(folder / "a.parquet", 1)
    ask(draft(tmp_path, folder.parent, until=AT.replace(day=2)), Layout(tmp_path / "warehouse", "shop"))
    lines = "\n".join(describe_draft(draft(tmp_path, folder)))
    assert "has read the same content as 2013/a.parquet" in lines
    assert "rows of 2013-01-02T05:00:00Z and later, which import" in lines


def test_columns_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    """SQL takes n and N for one."""
    pq.write_table(pa.table({"id": [1], "ID": [2]}), tmp_path / "a.parquet")
    with pytest.raises(BadRange, match="whose names differ only in case"):
        draft(tmp_path, tmp_path / "a.parquet")


def test_a_place_that_cannot_be_read_is_the_files_fault(tmp_path: Path) -> None:
    """Whatever the system says of it: the stream goes on, and the import waits."""
    folder = tmp_path / "files"
    folder.mkdir()
    place = write_sales(folder / "a.parquet", 1)
    plan = draft(tmp_path, place).plan
    place.unlink()
    folder.rmdir()
    folder.write_text("a file now")
    with pytest.raises(BadRange, match="cannot be read"):
        require_planned_files(plan, 0, 1)


def test_a_time_far_ahead_is_refused_as_it_is_in_a_record(tmp_path: Path) -> None:
    """It must not reach the watermark."""
    ahead = pa.array([datetime(2999, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    found = draft(tmp_path, write_sales(tmp_path / "a.parquet", 1, sold_at=ahead))
    assert found.sample and (found.sample.accepted, found.sample.refused) == (
        0,
        {"event time in the future": 1},
    )


def test_staged_rows_are_found_where_the_warehouse_was_moved(tmp_path: Path) -> None:
    """A plan names them from its own folder; files of others are where they are."""
    (tmp_path / "a.csv").write_text("id,customer,amount,sold_at\n1,ada,5,2013-01-01T05:00:00Z\n")
    found, layout = draft(tmp_path, tmp_path / "a.csv"), Layout(tmp_path / "warehouse", "shop")
    ask(found, layout)
    moved = Layout(tmp_path / "elsewhere", "shop")
    layout.warehouse.rename(moved.warehouse)
    plan = load_plan(moved, found.plan.id)
    require_planned_files(plan, 0, 1)
    assert plan.files[0].file.path.startswith(str(moved.warehouse))


def test_an_import_of_which_every_tried_row_is_refused_is_not_requested(tmp_path: Path) -> None:
    """A wrong delimiter or column would fill the quarantine, from where nothing is imported again."""
    (tmp_path / "a.csv").write_text("id;customer;amount;sold_at\n1;ada;5;2013-01-01T05:00:00Z\n")
    layout = Layout(tmp_path / "warehouse", "shop")
    with pytest.raises(BadRange, match="None of the first 1 rows is valid") as refused:
        ask(draft(tmp_path, tmp_path / "a.csv"), layout)
    assert "--csv-delimiter" in refused.value.hint and "id;customer;amount;sold_at" in refused.value.hint
    assert list_imports(layout) == ()
    assert [each for each in staging_folder(layout).rglob("*") if each.is_file()] == []


def test_what_is_done_or_cancelled_cannot_be_cancelled(tmp_path: Path) -> None:
    """And what is no import is said to be none."""
    layout = Layout(tmp_path / "warehouse", "shop")
    found = draft(tmp_path, write_sales(tmp_path / "a.parquet", 1))
    ask(found, layout)
    control, lane = ControlTable.ensure(layout), found.decision.range
    log = [
        Epoch(0, 1, AT, "v", kind=EpochKind.HOLE, ranges=(lane,)),
        Epoch(1, 1, AT, "v", kind=EpochKind.IMPORT, ranges=(lane,)),
    ]
    stated = {"actor": "ada", "reason": "no", "now": AT}
    with pytest.raises(NotFound, match="no import 'other'"):
        decide_to_cancel(control, "other", log, **stated)
    with pytest.raises(Conflict, match="is done"):
        decide_to_cancel(control, found.plan.id, log, **stated)
    decide_to_cancel(control, found.plan.id, [], **stated)
    with pytest.raises(Conflict, match="already cancelled by ada: no"):
        decide_to_cancel(control, found.plan.id, [], **stated)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_that_were_imported_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A command that is run every night reads what is new: neither bytes are hashed nor text is staged."""
    folder = tmp_path / "files"
    folder.mkdir()
    if kind == "csv":
        (folder / "a.csv").write_text("id,customer,amount,sold_at\n1,ada,5,2013-01-01T05:00:00Z\n")
    else:
        write_sales(folder / "a.parquet", 1)
    ask(draft(tmp_path, folder), Layout(tmp_path / "warehouse", "shop"))
    hashed: list[str] = []
    monkeypatch.setattr(found_history, "hash_file", lambda file: hashed.append(file.name) or "f" * 64)
    monkeypatch.setattr(found_history, "stage_text", lambda *_: pytest.fail("it was staged again"))
    again = draft(tmp_path, folder)
    assert (again.plan.rows, again.skipped, hashed) == (0, 1, [])
    os.utime(folder / f"a.{kind}", (1, 1))
    monkeypatch.undo()
    assert draft(tmp_path, folder).plan.rows == 0, "its content is what it was"


def test_a_file_that_a_cancelled_import_has_left_and_that_is_gone_is_said(tmp_path: Path) -> None:
    """The others are imported; of a Delta table it was compacted or vacuumed away."""
    gone = draft(tmp_path, write_sales(tmp_path / "a.parquet", 1))
    history = replace(gone.history, gone=gone.history.files)
    [note] = list_plan_notes(history, (), None)
    assert note.startswith(f"{tmp_path / 'a.parquet'} was deleted")


def test_where_a_topic_is_read_from_is_known_of_partitions_that_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until a stream has read of one, Kafka may delete records that neither the files nor the topic would have.

    Once a failover is decided on, rows of files have offsets that are not those of the topic that is read.
    """
    layout = Layout(tmp_path / "warehouse", "p")

    class Admin:
        def __init__(self, _: object) -> None: ...
        def __enter__(self) -> Admin:
            return self

        def __exit__(self, *_: object) -> None: ...
        def topic_id(self, _: str) -> str:
            return "id"

        def beginning_offsets(self, _: str) -> dict[int, int]:
            return {0: 12, 1: 0}

        def end_offsets(self, _: str) -> dict[int, int]:
            return {0: 30, 1: 0}

    monkeypatch.setattr(import_planning, "TopicAdmin", Admin)
    monkeypatch.setattr(import_planning, "read_airflow_connection", lambda *_: None)
    with pytest.raises(BadRange, match="No record of partition 0"):
        find_border(declare(), layout, "t", [], {})
    read = Epoch(0, 1, AT, "v", ranges=(OffsetRange(Lane("id", 0), 14, 20),))
    assert find_border(declare(), layout, "t", [read], {}) == ((0, 14), (1, 0))
    control = ControlTable.ensure(layout)
    lease = control.take("ada", now=AT)
    decide_failover(control, lease, FAILOVER, ())
    with pytest.raises(BadRange, match="before a failover"):
        find_border(declare(), layout, "t", [read], {})
    take_back_failover(control, lease, (), actor="ada", reason="it is back", now=AT)
    assert find_border(declare(), layout, "t", [read], {}) == ((0, 14), (1, 0))
