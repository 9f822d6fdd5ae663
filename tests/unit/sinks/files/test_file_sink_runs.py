"""A sink into files on real tables, as a process runs it: sent, waiting, edited, and sent anew."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, sales_pipeline
from tests.unit.sinks.files.file_rows import read_changes, read_rows, spell

from seamline import FileSink
from seamline.lake.log.log_lines import VIEW_VERSION
from seamline.lake.read import serving_table
from seamline.lake.storage import data_files
from seamline.lake.storage.delta_table import Table
from seamline.lake.store.locations import Location
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.sinks import feeds, sending
from seamline.sinks.audit import opened_target
from seamline.sinks.audit.sink_audit import audit_sink
from seamline.sinks.sink_list import clear_target, format_sink
from seamline.sinks.sink_runner import SinkRunner

pytestmark = pytest.mark.slow
IDENTITY = ["customer", "window_start", "window_end"]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let sinks say how they do in a folder of the test."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture
def shop(warehouse: Location) -> Shop:
    """A shop with some rows that are shown."""
    shop = Shop(warehouse)
    sell(shop, Sale(1), Sale(2, None, 5), Sale(25 * 60), Sale(70, "b"))
    return shop


def sell(shop: Shop, *sales: Sale) -> None:
    """Show one more epoch."""
    shop.epoch(list(sales), watermark=START + DAY)
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)


def make_runner(shop: Shop, sink: FileSink, *, once: bool = True) -> SinkRunner:
    """Make what runs a sink."""
    return SinkRunner(shop.compiled, shop.layout, sink, threading.Event(), once=once)


def require_rows(shop: Shop, place: Path) -> None:
    """Require that files have what the serving table shows; of when a row is, they may say an earlier time."""
    found = {key: unlike(row) for key, row in read_rows(place, IDENTITY).items()}
    rows = Table.open(shop.layout.serving(shop.view)).read().to_pylist()
    assert found == {spell([row[name] for name in IDENTITY]): unlike(row) for row in rows}


def unlike(row: dict[str, Any]) -> str:
    """Write a row without what says of when it is."""
    return spell({name: value for name, value in row.items() if name not in ("epoch", "manifest_version")})


def test_files_follow_the_serving_table(shop: Shop, tmp_path: Path) -> None:
    """Late rows and new ones, and another form, which is written anew."""
    sink = FileSink("sales", path=str(tmp_path / "out"))
    make_runner(shop, sink).run()
    require_rows(shop, tmp_path)
    sell(shop, Sale(1), Sale(71, "b", 9), Sale(3, "c"))
    make_runner(shop, sink).run()
    require_rows(shop, tmp_path)
    assert len(read_changes(tmp_path)) == 7, "rows that have not changed are not written again"
    other = replace(sink, format="json", buckets=["1 hour", "customer"])
    make_runner(shop, other).run()
    assert len(read_changes(tmp_path)) == 5
    assert f"to files below {tmp_path / 'out'}; shows version 2, the newest" in format_sink(
        shop.compiled, shop.layout, other
    )


def test_a_column_of_another_type_is_written_anew(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parquet of two types would be read as text, or not at all, by its readers, by upkeep and by the audit."""
    sink = FileSink("sales", path=str(tmp_path / "out"))
    make_runner(shop, sink).run()
    flip(shop, monkeypatch, LARGEST, 'max("customer")')
    runner = make_runner(shop, sink)
    runner.run()
    assert runner.error is None
    assert [each["largest"] for each in read_changes(tmp_path)] == ["zoe"]
    found = audit_sink(shop.compiled, shop.layout, sink, clock=lambda: START)
    assert (found.passed, found.held) == (True, 1)


@pytest.mark.parametrize("history", [False, True])
def test_a_column_that_was_away_comes_back_with_another_type(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, history: bool
) -> None:
    """Files of two versions ago have it with the type that it had; what was away alone is no reason to begin anew."""
    sink = FileSink("sales", path=str(tmp_path / "out"), history=history)
    make_runner(shop, sink).run()
    flip(shop, monkeypatch, ', "largest": max("amount")', "")
    make_runner(shop, sink).run()
    found = read_changes(tmp_path)
    assert {"largest" in each for each in found} == {True, False}
    flip(shop, monkeypatch, LARGEST, LARGEST)
    make_runner(shop, sink).run()
    assert len(read_changes(tmp_path)) == len(found) + 1
    flip(shop, monkeypatch, ', "largest": max("amount")', "")
    make_runner(shop, sink).run()
    assert len(read_changes(tmp_path)) == len(found) + 2
    flip(shop, monkeypatch, LARGEST, 'max("customer")')
    runner = make_runner(shop, sink)
    runner.run()
    assert runner.error is None
    assert [each["largest"] for each in read_changes(tmp_path)] == ["zoe"]
    audited = audit_sink(shop.compiled, shop.layout, sink, clock=lambda: START)
    assert (audited.passed, audited.held) == (True, 1)


LARGEST = 'max("amount")'


def flip(shop: Shop, monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Show one row by another version of the view."""
    assert old in DEFINITION
    other = sales_pipeline(text=DEFINITION.replace(old, new)).views[0]
    known[other.fingerprint] = other
    for place in (sending, feeds, opened_target):
        monkeypatch.setattr(place, "find_view", lambda *given: known.get(given[-1], shop.view))
    table = Table.open(shop.layout.serving(shop.view))
    schema = serving_table.serving_schema(other)
    row = {**table.read().to_pylist()[0]}
    row["largest"] = "zoe" if new == 'max("customer")' else 7
    file = pa.Table.from_pylist([row], schema=schema).drop_columns(["interval"])
    written = data_files.write_data_file(
        file,
        table.root,
        f"20130101T000000Z-{table.version}.parquet",
        stats=["customer"],
        partition={"interval": row["interval"]},
    )
    table.append([written], metadata={VIEW_VERSION: other.fingerprint}, instead=schema)


known: dict[str, CompiledView] = {}
"""Versions of the view by fingerprint, beside that of the shop."""


def test_what_is_new_waits_for_more(shop: Shop, tmp_path: Path) -> None:
    """A version that came too early for a file of its own is passed over, and a stop waits for nothing."""
    sink = FileSink("sales", path=str(tmp_path / "out"), roll_age="1 hour", roll_idle="1 hour")
    runner = make_runner(shop, sink, once=False)
    assert runner.try_to_send()
    shown = runner.sending and runner.sending.shown
    for amount in (1, 2):
        sell(shop, Sale(1, "a", amount))
        assert runner.try_to_send()
        assert runner.sending and runner.sending.shown == shown
    runner.stop.set()
    assert runner.try_to_send()
    require_rows(shop, tmp_path)
    assert len([row for row in read_changes(tmp_path) if row["customer"] == "a"]) == 3
    runner.close()


def test_resending_writes_everything_anew(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where manifests are gone, of which nobody can say how far they went."""
    sink = FileSink("sales", path=str(tmp_path / "out"))
    compiled = replace(shop.compiled, definition=replace(shop.compiled.definition, sinks=(sink,)))
    make_runner(shop, sink).run()
    for each in (tmp_path / "out" / "_manifests").glob("*.json"):
        each.unlink()
    failed = make_runner(shop, sink)
    failed.run()
    assert failed.error and "sinks resend" in failed.error.hint
    clear_target(compiled, shop.layout, sink)
    assert read_changes(tmp_path) == []
    make_runner(shop, sink).run()
    require_rows(shop, tmp_path)
