"""Answers in parts: the same rows as the whole answer, whatever the windows, the measures and the memory."""

from __future__ import annotations

import random
import shutil
import threading
import weakref
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import seamline as sl
from seamline import Batch, KafkaSource, Pipeline, View
from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.lake.read import merged_read, spilled_states, streamed_answer
from seamline.lake.read.answer_blocks import total_size
from seamline.lake.read.answers import Answer
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.read.session_reach import Reach
from seamline.lake.read.streamed_answer import COPIES, StreamedAnswer, stream_merged_answer
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import INSTANT, generations_schema, partial_schema
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.slices import Slices
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.definition.windows import Window
from seamline.model.errors import DiskFull, ReadUnstable, StoreUnavailable
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, Statement
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.time.intervals import Interval
from seamline.model.time.window_arithmetic import Gaps
from seamline.runtime.spill_folder import own_spill_folder
from seamline.serve.query import format_answer_footer
from seamline.serve.streamed import read_answer_page

START, DAY, DAYS, EPOCHS = datetime(2024, 3, 28, tzinfo=UTC), timedelta(days=1), 6, 5
MEASURES = {
    "n": sl.count(),
    "total": sl.sum("amount"),
    "exact": sl.sum("CAST(amount AS DECIMAL(30,2))"),
    "weight": sl.sum("CAST(amount AS DOUBLE)"),
    "mean": sl.avg("amount"),
    "least": sl.min("amount"),
    "most": sl.max("shop"),
    "opening": sl.first("amount"),
    "closing": sl.last("amount"),
    "spread": sl.variance("CAST(amount AS DOUBLE)"),
    "shops": sl.distinct("shop"),
    "middle": sl.quantile("amount", 0.5),
    "busiest": sl.top("shop", 2),
    "sizes": sl.histogram("amount", edges=[10, 50]),
    "which": sl.collect_distinct("shop"),
    "each": sl.formula("try_add(t, n)", t=sl.count_true("amount > 9"), n=sl.count()),
    "share": sl.ratio("least", "n"),
}
FEW = {name: MEASURES[name] for name in ("n", "total", "closing", "which")}
WINDOWS: dict[str, Window] = {
    "hours": sl.Tumbling("1 hour"),
    "days in a zone": sl.Tumbling("1 day", zone="Europe/Berlin"),
    "weeks": sl.Tumbling("7 days"),
    "sliding": sl.Sliding("12 hours", "3 hours"),
    "sliding over days": sl.Sliding("3 days", "1 day"),
    "cumulating": sl.Cumulating("1 day", "6 hours"),
    "sessions": sl.Session("5 hours"),
    "whole": sl.Global(),
}
ROWS = pa.schema(
    [
        ("customer", pa.string()),
        ("shop", pa.string()),
        ("amount", pa.int64()),
        ("at", INSTANT),
        ("_event_time", INSTANT),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
    ]
)


class Warehouse:
    """A pipeline of one view, filled by random events: epochs in slices, and some days in generations."""

    def __init__(self, place: Path, window: Window, seed: int, **more: Any) -> None:
        asked = {"keys": ["customer", "shop"], "window": window, "measures": MEASURES, **more}
        source = KafkaSource(
            topic="t", schema="customer STRING, shop STRING, amount BIGINT, at TIMESTAMP", event_time="at"
        )
        self.compiled = compile_pipeline(
            Pipeline(
                "shop", source=source, views=[View("sales", **asked)], batch=Batch("1 day", "2024-01-01")
            )
        )
        self.view, self.layout = self.compiled.views[0], Layout(place, "shop")
        self.dice = random.Random(seed)
        self.events: list[dict[str, Any]] = []
        self.fill()

    def fill(self) -> None:
        """Commit epochs, and publish every other day up to some epoch."""
        master, ledger = Master.ensure(self.layout, self.compiled), Ledger.ensure(self.layout)
        slices, manifest = Slices.ensure(self.layout, self.view), ManifestTable.ensure(self.layout)
        manifest.read()
        manifest.commit([Statement(act, self.view.id, epoch=0) for act in (Act.BIRTH, Act.FLIP)])
        for number in range(1, EPOCHS + 1):
            some = [self.event(number, offset) for offset in range(60 * number, 60 * number + 60)]
            self.events += some
            slices.append(self.states(some), from_epoch=number, to_epoch=number)
            at = START + timedelta(seconds=number)
            mark = START + timedelta(days=number)
            row = Epoch(
                number,
                0,
                at,
                self.compiled.record_version,
                edge=True,
                watermark=mark,
                frontiers={self.view.id: number},
                before=number - 1,
            )
            master.commit(row, [])
            ledger.append([row])
        self.publish(manifest)

    def event(self, epoch: int, offset: int) -> dict[str, Any]:
        """Make an event."""
        at = START + timedelta(minutes=self.dice.randrange(DAYS * 24 * 60))
        customer = self.dice.choice([None, *(f"customer {number}" for number in range(12))])
        return {
            "customer": customer,
            "shop": self.dice.choice(["a", "b", None]),
            "amount": self.dice.choice([None, *range(100)]),
            "at": at,
            "_event_time": at,
            "_partition": 0,
            "_offset": offset,
            "epoch": epoch,
        }

    def states(self, events: list[dict[str, Any]]) -> pa.Table:
        """Make states of events."""
        rows = pa.Table.from_pylist(
            [{k: v for k, v in each.items() if k != "epoch"} for each in events], ROWS
        )
        with open_duckdb() as con:
            con.register("some_rows", rows)
            return states.compute_row_states(con, self.view, "some_rows").cast(partial_schema(self.view))

    def publish(self, manifest: ManifestTable) -> None:
        """Write generations, and name them."""
        schema = generations_schema(self.view)
        table = Table.ensure(self.layout.generations(self.view), schema, partition_by=["interval"])
        made, said = [], []
        for day in range(0, DAYS, 2):
            interval, cut = (
                Interval(START + day * DAY, START + (day + 1) * DAY),
                self.dice.randrange(1, EPOCHS),
            )
            own = [each for each in self.events if each["epoch"] <= cut and each["at"] in interval]
            rows = self.states(own)
            rows = rows.append_column("generation", pa.repeat(pa.scalar("g"), rows.num_rows))
            made.append(
                data_files.write_data_file(
                    rows,
                    table.root,
                    f"g/{day}.parquet",
                    stats=["generation", "pane"],
                    partition={"interval": interval.id},
                )
            )
            facts = {"interval": interval.id, "generation": "g", "rows": rows.num_rows, "at": interval.end}
            said.append(Statement(Act.PUBLISH, self.view.id, epoch=cut, certified=day > 0, **facts))  # type: ignore[arg-type]
        table.append(made)
        manifest.read()
        manifest.commit(said)

    def stream(self, memory: int, **asked: Any) -> StreamedAnswer:
        """Read in parts."""
        return stream_merged_answer(
            self.compiled, self.view, self.layout, ReadRequest.parse(**asked), memory=memory
        )

    def whole(self, **asked: Any) -> Any:
        """Read whole."""
        return read_merged_answer(self.compiled, self.view, self.layout, ReadRequest.parse(**asked))


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


def assert_same(house: Warehouse, share: int, **asked: Any) -> int:
    """Compare a stream, with memory for one of so many parts, with the whole answer; return how many parts it had."""
    size = total_size(house.stream(1 << 50, **asked).blocks)
    whole, stream = house.whole(**asked), house.stream(COPIES * (size // share + 1), **asked)
    parts = list(stream)
    assert in_order(pa.concat_tables([part.table for part in parts])) == in_order(whole.table)
    for part in parts:
        assert part.table.schema == whole.table.schema
    assert format_answer_footer(stream.told()) == format_answer_footer(whole)
    return len(parts)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read few rows at a time."""
    monkeypatch.setattr(spilled_states, "BATCH", 20)


@pytest.mark.parametrize("kind", WINDOWS)
def test_a_stream_has_the_rows_of_the_whole_answer(kind: str, tmp_path: Path) -> None:
    """Where an answer is cut, in time or by keys, cannot change a row, nor what is said of it."""
    house = Warehouse(tmp_path, WINDOWS[kind], seed=1, measures=FEW)
    assert assert_same(house, 1) == 1
    assert assert_same(house, 4) > 1
    assert assert_same(house, 12) > 2
    bounds = {"start": START + timedelta(days=1, hours=5), "end": START + timedelta(days=4, hours=1)}
    assert_same(house, 8, **bounds)
    assert_same(house, 8, where="customer = 'customer 1' OR shop IS NULL", side="speed", as_of=3)
    assert_same(house, 8, phases=["late", "early"], side="batch")


@pytest.mark.parametrize("kind", ["hours", "sessions"])
def test_every_measure_is_the_same_in_parts(kind: str, tmp_path: Path) -> None:
    """A state that is divided over two parts would be two rows, each of them wrong."""
    house = Warehouse(tmp_path, WINDOWS[kind], seed=2)
    assert_same(house, 8)


@pytest.mark.parametrize("kind", ["hours", "sessions", "sliding over days"])
def test_sets_with_fewer_keys_are_merged_in_parts(kind: str, tmp_path: Path) -> None:
    """The grand total has the states of all keys, and no key by which they could be divided."""
    sets = [["customer", "shop"], ["shop"], []]
    house = Warehouse(tmp_path, WINDOWS[kind], seed=3, measures=FEW, grouping_sets=sets)
    assert_same(house, 10)
    assert_same(house, 10, where="grouping <> '(shop)' AND customer IS NULL")


def test_batches_are_of_one_state(tmp_path: Path) -> None:
    """What is committed between two batches is in none of them, and blocks come in the order of their windows."""
    house = Warehouse(tmp_path, WINDOWS["hours"], seed=4, measures=FEW)
    whole, size = house.whole().table, total_size(house.stream(1 << 50).blocks)
    stream = house.stream(COPIES * size // 4)
    batches = stream.batches()
    found = [next(batches)]
    Slices.ensure(house.layout, house.view).append(house.states(house.events[:50]), from_epoch=6, to_epoch=6)
    found += batches
    assert len(stream.blocks) > 2
    assert pa.Table.from_batches(found)["window_start"].equals(whole["window_start"])
    assert in_order(pa.Table.from_batches(found)) == in_order(whole)


def test_a_file_that_goes_while_rows_come_is_told(tmp_path: Path) -> None:
    """Half of the rows were given: the read cannot begin again, and must not end as if it were whole."""
    house = Warehouse(tmp_path, WINDOWS["hours"], seed=5, measures=FEW)
    stream = house.stream(COPIES * total_size(house.stream(1 << 50).blocks) // 4)
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    with pytest.raises(ReadUnstable, match="changed while they were streamed"):
        list(stream)


@pytest.mark.parametrize("share", [1, 2, 8])
def test_sessions_are_told_of_as_far_as_they_reach(share: int, tmp_path: Path) -> None:
    """What is after the last session that was asked for is not read to the end for a few, nor told of."""
    house = Warehouse(tmp_path, sl.Session("10 minutes"), seed=7, measures=FEW)
    for days in (1, 2):
        bounds = {"start": START + timedelta(days=1), "end": START + timedelta(days=1 + days)}
        assert_same(house, share, **bounds)
    size = total_size(house.stream(1 << 50, **bounds).blocks)
    assert size < total_size(house.stream(1 << 50, start=bounds["start"]).blocks)
    assert house.stream(COPIES * size, **bounds).is_whole


def test_outlines_of_sessions_reach_as_far_as_all_of_them() -> None:
    """A read goes on while a session covers the end of what it has, by twice as much each time."""
    #                 0     10    20    30    40    50
    # sessions        [--------)     [-----)
    #                    [------------)
    windows, reach = Gaps(gap=1, interval=10), Reach()
    for starts, ends in (([0, 25], [15, 35]), ([5, 70], [26, 71])):
        reach.add(pa.table({"_start": starts, "_end": ends}))
    assert reach.starts.tolist() == [0, 70] and reach.ends.tolist() == [35, 71]
    assert reach.extend(windows, [(0, 10)]) == [(0, 40)]
    assert reach.extend(windows, [(0, 40)]) == [(0, 40)]
    assert Reach().extend(windows, [(0, 10)]) == [(0, 10)]


def test_a_stream_that_is_left_while_a_part_is_made_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits no longer cannot end it: the thread that is at it does."""
    house = Warehouse(tmp_path, WINDOWS["whole"], seed=6, measures=FEW)
    stream = house.stream(COPIES * total_size(house.stream(1 << 50).blocks) // 8)
    parts, begun, left = iter(stream), threading.Event(), threading.Event()
    next(parts)
    finish = stream.finish

    def slow(part: Any) -> Any:
        begun.set()
        assert left.wait(60)
        return finish(part)

    monkeypatch.setattr(stream, "finish", slow)
    with ThreadPoolExecutor(1) as threads:
        rest = threads.submit(list, parts)
        assert begun.wait(60)
        stream.close()
        left.set()
        assert rest.result(60) == []
    assert not [*own_spill_folder().glob("*/*/*.arrow")]


def test_a_block_opens_so_many_files_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little memory there is."""
    monkeypatch.setattr(streamed_answer, "OPEN", 4)
    sets = [["customer", "shop"], ["shop"]]
    house = Warehouse(tmp_path, WINDOWS["whole"], seed=6, measures=FEW, grouping_sets=sets)
    stream = house.stream(COPIES * (total_size(house.stream(1 << 50).blocks) // 100 + 1))
    [folder] = own_spill_folder().iterdir()
    assert len(list(folder.glob("*/*.arrow"))) < 4
    assert in_order(pa.concat_tables([part.table for part in stream])) == in_order(house.whole().table)
    assert not folder.exists()


def test_files_of_a_block_are_closed_before_they_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where dividing it fails too: a file that is open would keep its room."""
    house = Warehouse(tmp_path, WINDOWS["whole"], seed=6, measures=FEW)
    size = total_size(house.stream(1 << 50).blocks)
    written: list[int] = []
    open_files: list[str] = []
    remove = shutil.rmtree
    put = spilled_states.Divided.put

    def once(self: spilled_states.Divided, number: int, rows: pa.Table) -> None:
        if written:
            raise MemoryError("no more")
        written.append(number)
        put(self, number, rows)

    def seen(folder: Path, **how: Any) -> None:
        held = [str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
        open_files.extend(each for each in held if each.startswith(str(folder)))
        remove(folder, **how)

    monkeypatch.setattr(spilled_states.Divided, "put", once)
    monkeypatch.setattr(shutil, "rmtree", seen)
    with pytest.raises(MemoryError):
        house.stream(COPIES * size // 8)
    assert written and open_files == []


@pytest.mark.parametrize("kind", [duckdb.IOException, OSError])
def test_a_full_disk_is_called_so(
    kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables have not changed, and another attempt is as full."""
    house = Warehouse(tmp_path, WINDOWS["hours"], seed=5, measures=FEW)
    stream = house.stream(COPIES * total_size(house.stream(1 << 50).blocks) // 4)

    def full(*_: object) -> Any:
        attempts.append(1)
        raise kind("IO Error: Could not write file: No space left on device")

    attempts: list[int] = []
    monkeypatch.setattr(StreamedAnswer, "direct", full)
    with pytest.raises(DiskFull):
        list(stream)
    with pytest.raises(DiskFull):
        house.stream(COPIES * total_size(stream.blocks) // 4)
    assert len(attempts) == 2


def test_a_store_that_is_away_for_a_moment_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read pins again, as it does where tables move; once it has lasted, the store is named."""
    view = Warehouse(tmp_path, WINDOWS["hours"], seed=5, measures=FEW).view
    monkeypatch.setattr(merged_read.time, "sleep", lambda _: None)
    answers: list[Any] = [StoreUnavailable("timed out"), StoreUnavailable("timed out"), "rows"]

    def once() -> Any:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    assert merged_read.retry_unstable_read(view, once) == "rows"
    answers += [StoreUnavailable("timed out")] * merged_read.ATTEMPTS
    with pytest.raises(StoreUnavailable, match="timed out"):
        merged_read.retry_unstable_read(view, once)
    assert not answers


def test_a_stream_that_is_left_leaves_nothing_behind(tmp_path: Path) -> None:
    """What was put on disk goes with it."""
    house = Warehouse(tmp_path, WINDOWS["whole"], seed=6, measures=FEW)
    stream = house.stream(COPIES * total_size(house.stream(1 << 50).blocks) // 8)
    assert [*own_spill_folder().glob("*/*/*.arrow")]
    stream.close()
    assert not [*own_spill_folder().glob("*/*/*.arrow")]


@pytest.mark.parametrize("window", ["hours", "sliding"])
def test_pages_have_the_rows_of_the_whole_answer(window: str, tmp_path: Path) -> None:
    """One after the other, each read by itself; and what is told is of the whole."""
    made = Warehouse(tmp_path, WINDOWS[window], 3, measures=FEW)
    whole, size = made.whole(), total_size(made.stream(1 << 50).blocks)
    memory = COPIES * (size // 8 + 1)
    streamed = pa.Table.from_batches([*made.stream(memory).batches()])
    pages = []
    for offset in range(0, whole.rows + 150, 150):
        page = read_answer_page(made.stream(memory), offset, 150)
        assert page.rows == whole.rows and page.complete_to == whole.complete_to
        pages.append(page.table)
    assert sum(page.num_rows for page in pages) == whole.rows
    assert pa.concat_tables(pages) == streamed


def test_a_page_keeps_no_part(tmp_path: Path) -> None:
    """The first is as large as any, and the others come after it."""
    stream = Warehouse(tmp_path, WINDOWS["hours"], 3, measures=FEW).stream(1 << 50)
    numbers = np.arange(1_000)
    kept = weakref.ref(numbers)
    stream.first = replace(stream.first, table=pa.table({"n": numbers}))
    del numbers

    def rest() -> Generator[Answer, None, None]:
        assert kept() is None
        yield replace(stream.first, table=pa.table({"n": [5]}))

    stream.remaining = rest()
    page = read_answer_page(stream, 998, 5)
    assert page.table["n"].to_pylist() == [998, 999, 5] and page.rows == 1_001
