"""A sink on real tables and a target in memory: each change is seen once, and the target is the table."""

from __future__ import annotations

import errno
import random
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, sales_pipeline
from tests.unit.sinks.memory_target import MemoryTarget, Place, Store, unlike
from tests.unit.sinks.sending_shop import SINK, held, refresh, send, shown

from seamline.lake.log.log_lines import VIEW_VERSION
from seamline.lake.read import serving_table
from seamline.lake.status.sink_words import read_sink_words
from seamline.lake.storage import data_files
from seamline.lake.storage.delta_table import Table
from seamline.lake.store.locations import delete_folder
from seamline.lake.tables.sinks.recorded_positions import SinkCopy, begin_copy, read_copy
from seamline.lake.tables.sinks.served_versions import ServedVersions
from seamline.model.errors import KafkaUnavailable, OutOfStep
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks import sending, told_copy
from seamline.sinks.sink_runner import SinkRunner

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_steps")]


def require_each_change_once(store: Store) -> None:
    """Require that each change of a row that was seen made another row of it."""
    rows: dict[Place, dict[str, Any] | None] = {}
    for place, row in store.seen:
        now = None if row is None else unlike(row)
        assert rows.get(place) != now, place
        rows[place] = now


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.faults) for seed in range(4, 12))]
)
def test_each_change_is_seen_once_whatever_fails(shop: Shop, seed: int) -> None:
    """Writes that are lost, and writes of which only the reply is; the table moves on meanwhile."""
    dice, store = random.Random(seed), Store()
    for step in range(8):
        store.fails = [dice.choice(["before", "after", ""]) for _ in range(dice.randrange(4))]
        send(shop, store)
        require_each_change_once(store)
        sales = [Sale(dice.randrange(3 * 24 * 60), dice.choice("abc"), dice.randrange(9)) for _ in range(3)]
        shop.epoch(sales, watermark=START + DAY)
        if dice.random() < 0.4:
            shop.build(0, step, f"g{step}")
        if dice.random() < 0.7:
            refresh(shop)
    store.fails = []
    send(shop, store)
    require_each_change_once(store)
    assert held(store) == shown(shop)
    assert store.transactions > 2
    newest = ServedVersions(shop.layout.serving(shop.view)).find_newest()
    copy = read_copy(shop.layout, "sales_kafka")
    assert copy is not None
    assert (copy.position.version, copy.view, copy.place) == (
        newest,
        "sales",
        "topic sales.out of kafka_default",
    )


def test_nothing_new_writes_nothing(shop: Shop) -> None:
    """A sink that looks ten times a second must not write ten times a second."""
    store = Store()
    send(shop, store)
    done = store.transactions
    send(shop, store)
    assert store.transactions == done


def test_a_writer_that_was_fenced_off_takes_over_only_when_it_tries_again(shop: Shop) -> None:
    """`seamline sinks resend` fences off a process that runs: that goes on from what it finds then."""
    store = Store()
    send(shop, store)
    other = MemoryTarget(store)
    stop = threading.Event()
    runner = SinkRunner(shop.compiled, shop.layout, SINK, stop, opening=lambda *_: MemoryTarget(store))
    assert runner.try_to_send()
    other.take_over()
    other.clear()
    shop.epoch([Sale(5)])
    refresh(shop)
    assert not runner.try_to_send()
    said = read_sink_words("shop", "sales_kafka")
    assert said is not None
    assert said.state == "fenced off"
    assert runner.try_to_send()
    assert held(store) == shown(shop)


def test_a_sink_that_cannot_say_how_it_does_sends_on(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk below SEAMLINE_HOME would end its thread, which nobody starts again while another lives."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("seamline.sinks.sink_runner.write_sink_words", full)
    store = Store()
    assert send(shop, store).error is None
    assert held(store) == shown(shop)


def test_a_difference_that_takes_long_is_told_of_meanwhile(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that says nothing for a minute is taken for dead, and an alert sent."""
    said: list[tuple[str, int]] = []
    monkeypatch.setattr("seamline.sinks.sink_runner.SAYS_EVERY", 0.0)
    monkeypatch.setattr(
        "seamline.sinks.sink_runner.write_sink_words",
        lambda *each: said.append((each[2].state, each[2].version)),
    )
    send(shop, Store())
    assert ("sending", -1) in said


def test_a_copy_is_written_before_the_first_row(shop: Shop) -> None:
    """Until it is there, upkeep may delete what the first difference needs."""
    store = Store(fails=["before"])
    assert isinstance(send(shop, store).error, KafkaUnavailable)
    copy = read_copy(shop.layout, "sales_kafka")
    assert copy is not None
    assert copy.position == SinkPosition(copy.position.fingerprint, -1, 1)


def test_a_version_that_is_replaced_meanwhile_is_passed_over(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a look at the newest version and the copy that keeps its files, these may have been deleted."""
    store = Store()

    def begin(*given: Any) -> None:
        if read_copy(shop.layout, "sales_kafka") is None:
            shop.epoch([Sale(9)])
            refresh(shop)
        begin_copy(*given)

    monkeypatch.setattr(told_copy, "begin_copy", begin)
    send(shop, store)
    assert '"version":2' in str(store.position)
    assert len(store.seen) == len(store.rows)
    assert held(store) == shown(shop)


def test_a_copy_of_another_view_keeps_nothing_of_this_one(shop: Shop) -> None:
    """The sink has been given another view and another place: what it sends first would be deleted under it."""
    begin_copy(shop.layout, "sales_kafka", SinkCopy("orders", "topic o", "2026", SinkPosition("f", 7)))
    send(shop, Store(fails=["before"]))
    copy = read_copy(shop.layout, "sales_kafka")
    assert copy
    assert (copy.view, copy.position.needed) == ("sales", 1)


def test_a_table_that_was_made_again_is_not_compared(shop: Shop) -> None:
    """Its versions count anew: what the target shows would be compared with something else."""
    store = Store()
    send(shop, store)
    delete_folder(shop.layout.serving(shop.view))
    for minute in (5, 6):
        shop.epoch([Sale(minute)])
        refresh(shop)
    found = send(shop, store).error
    assert isinstance(found, OutOfStep)
    assert "resend shop sales_kafka" in str(found)


def test_a_target_that_is_ahead_of_its_table_is_told(shop: Shop) -> None:
    """A table that was restored from a backup is behind: what the target shows since then is nobody's."""
    store = Store()
    send(shop, store)
    place = shop.layout.serving(shop.view)
    assert isinstance(place, Path)
    kept = {each: each.read_bytes() for each in place.rglob("*") if each.is_file()}
    shop.epoch([Sale(5)])
    refresh(shop)
    assert send(shop, store).error is None
    delete_folder(place)
    for each, data in kept.items():
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_bytes(data)
    found = send(shop, store).error
    assert isinstance(found, OutOfStep)
    assert "version 2 of a serving table whose newest is 1" in str(found)


def test_keys_of_another_type_are_written_anew(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text is not compared with a number: the sink would fail until somebody sends everything anew."""
    store = Store()
    send(shop, store)
    other = sales_pipeline(text=DEFINITION.replace("customer STRING", "customer BIGINT")).views[0]
    monkeypatch.setattr(sending, "find_view", lambda *_: other)
    monkeypatch.setattr("seamline.sinks.feeds.find_view", lambda *_: other)
    schema = serving_table.serving_schema(other)
    rows = [{**row, "customer": 7} for row in shown(shop).values()][:1]
    table = Table.open(shop.layout.serving(shop.view))
    file = pa.Table.from_pylist(rows, schema=schema).drop_columns(["interval"])
    partition = {"interval": rows[0]["interval"]}
    name = "20130101T000000Z-0.parquet"
    written = data_files.write_data_file(file, table.root, name, stats=["customer"], partition=partition)
    table.append([written], metadata={VIEW_VERSION: other.fingerprint}, instead=schema)
    assert send(shop, store).error is None
    assert [place[0] for place in store.rows] == [7]


def test_other_forms_of_rows_are_written_anew(shop: Shop) -> None:
    """A sink that sends something else from now on must not leave what it sent before beside it."""
    store = Store()
    send(shop, store)
    assert len(store.rows) > 1
    send(shop, store, replace(SINK, when="certified"))
    assert not store.rows
    shop.build(0, 0, "g")
    refresh(shop)
    send(shop, store, replace(SINK, when="certified"))
    assert held(store) == {place: row for place, row in shown(shop).items() if row["certified"]}
    assert store.rows
