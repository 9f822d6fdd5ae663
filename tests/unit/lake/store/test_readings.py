"""Several tables of a bucket in one reading: asked side by side, each as of no earlier than what was read before it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest
from tests.faults.rig.store_proxy import StoreProxy
from tests.unit.shop import DEFINITION, START, Sale, Shop

from seamline.lake.storage.data_files import write_data_file
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.kept import cached_table
from seamline.lake.storage.kept.table_following import FOLLOWER, Follower
from seamline.lake.storage.kept.table_reading import read_side_by_side
from seamline.lake.storage.log_wholeness import open_delta_handle
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.store import fetched_files
from seamline.lake.store.bucket import requests
from seamline.lake.store.fetched_files import fetch_ahead, localize_file
from seamline.lake.store.locations import Location
from seamline.lake.store.seconds_setting import read_seconds_setting
from seamline.lake.store.side_by_side import Threads
from seamline.model.errors import BadRange, ChangedByOthers, SetupError
from seamline.serve.answer_age import SETTING
from seamline.serve.read import read

pytestmark = pytest.mark.slow
SCHEMA = pa.schema([("n", pa.int64())])
LONG = 3600.0


def read_version(root: Location) -> int | None:
    """Read the version of a table."""
    return read_cached_table(root, "version", lambda table: table.version)


def read_pair(first: Location, second: Location, *, max_age: float = 0.0) -> tuple[int | None, int | None]:
    """Read two tables in one reading."""
    with read_side_by_side(("pair", first), max_age=max_age):
        return read_version(first), read_version(second)


@pytest.fixture
def pair(lake: Location) -> tuple[Table, Table]:
    """Two tables, which were read together before."""
    tables = Table.ensure(lake / "first", SCHEMA), Table.ensure(lake / "second", SCHEMA)
    assert read_pair(lake / "first", lake / "second") == (0, 0)
    return tables


class Half:
    """A table whose handle moves on by one version, and whose store does not answer for the next."""

    version, newest = 5, "a"
    root = Path("t")

    def refresh(self) -> None:
        self.version, self.newest = 6, "b"
        raise OSError("no answer")


def test_what_was_seen_is_forgotten_when_a_follow_fails_half_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next answer would be that of the version before, until another commit comes."""

    def away(_: object) -> Table:
        raise OSError("no answer")

    monkeypatch.setattr(cached_table.Table, "open", away)
    held = cached_table.CachedTable(Half(), None)  # type: ignore[arg-type]
    held.seen["n"], held.moved = cached_table.Seen("at 5"), 0.0
    with pytest.raises(OSError, match="no answer"):
        held.refresh()
    assert held.seen.get("n") is None
    assert held.moved > 0


@pytest.mark.parametrize("age", [-1.0, float("inf"), float("nan")])
def test_an_age_that_is_asked_for_is_0_or_more(lake: Location, tmp_path: Path, age: float) -> None:
    """Below 0 a thread would ask without a pause; what is as old as anything may be nothing."""
    with pytest.raises(BadRange, match="no age in seconds"):
        read("shop.sales", warehouse=lake, definitions=declare(tmp_path), max_age=age)


def declare(folder: Path) -> Path:
    """Write the shop's definition."""
    (folder / "definitions").mkdir()
    (folder / "definitions" / "shop.py").write_text(DEFINITION)
    return folder / "definitions"


def test_what_is_read_later_is_as_of_no_earlier(pair: tuple[Table, Table]) -> None:
    """Slices precede the master: one who has seen the newer master must not go by slices of before (rule 11)."""
    first, second = pair
    assert read_pair(first.root, second.root) == (0, 0)
    second.append([])
    first.append([])
    assert read_version(first.root) == 1
    # The second is known as of a moment that is recent enough, but before the first has moved.
    assert read_pair(first.root, second.root, max_age=LONG) == (1, 1)


def test_a_reading_may_have_an_age(pair: tuple[Table, Table]) -> None:
    """Who is content with what was there a moment ago waits for nothing; who is not sees the newest."""
    first, second = pair
    read_pair(first.root, second.root)
    second.append([])
    before = Counter(requests)
    assert read_pair(first.root, second.root, max_age=LONG) == (0, 0)
    assert requests == before
    assert read_pair(first.root, second.root) == (0, 1)


def test_a_table_that_comes_to_be_is_seen(lake: Location, pair: tuple[Table, Table]) -> None:
    """That there was none is remembered no longer than what was in one."""
    first, third = pair[0].root, lake / "third"
    assert read_pair(first, third) == (0, None)
    Table.ensure(third, SCHEMA)
    assert read_pair(first, third, max_age=LONG) == (0, None)
    assert read_pair(first, third) == (0, 0)


def test_what_another_engine_has_changed_is_refused(pair: tuple[Table, Table]) -> None:
    """Asked side by side a table says nothing of it: whoever reads it is told, each time, whatever the age."""
    first, second = pair
    second.append([write_data_file(pa.table({"n": [1]}, SCHEMA), second.root, "1.parquet")])
    assert read_pair(first.root, second.root) == (0, 1)
    open_delta_handle(second.root).delete()
    for max_age in (0.0, 0.0, LONG):
        with pytest.raises(ChangedByOthers):
            read_pair(first.root, second.root, max_age=max_age)


def test_tables_are_asked_side_by_side(
    shaky: Location, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would be waited for otherwise: no request is answered before all have been sent."""
    roots = [shaky / name for name in "abc"]
    for root in roots:
        Table.ensure(root, SCHEMA)

    def read_all() -> list[int | None]:
        with read_side_by_side("all"):
            return [read_version(root) for root in roots]

    assert read_all() == [0, 0, 0]
    together = threading.Barrier(len(roots), timeout=30)
    ask = cached_table.log_store.read_commit

    def ask_with_others(root: Location, version: int) -> object:
        together.wait()
        return ask(root, version)

    monkeypatch.setattr(cached_table.log_store, "read_commit", ask_with_others)
    assert read_all() == [0, 0, 0]


def test_a_file_that_was_begun_is_not_fetched_twice(lake: Location) -> None:
    """And one that cannot be fetched is whose reader's business it is."""
    written = write_data_file(pa.table({"n": [1]}, SCHEMA), lake / "t", "1.parquet")
    place = lake / "t" / written.path
    Path(localize_file(place)).unlink()
    before = Counter(requests)
    fetch_ahead([place])
    assert Path(localize_file(place)).stat().st_size == written.size
    assert Counter(requests) - before == {"get": 1}
    fetch_ahead([lake / "t" / "none.parquet"])
    with pytest.raises(FileNotFoundError):
        localize_file(lake / "t" / "none.parquet")


def test_a_file_is_not_waited_for_that_nobody_has_begun_to_fetch(
    lake: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that all wait for what is behind them in the queue would wait for ever."""
    written = write_data_file(pa.table({"n": [1]}, SCHEMA), lake / "t", "1.parquet")
    place = lake / "t" / written.path
    Path(localize_file(place)).unlink()
    threads, busy = Threads("fetch", 1), Event()
    monkeypatch.setattr(fetched_files, "FETCHING", threads)
    held = threads.submit(busy.wait, 30)
    fetch_ahead([place])
    assert Path(localize_file(place)).stat().st_size == written.size
    assert not held.done() and not fetched_files._coming
    busy.set()
    threads.finish()


def test_what_nobody_reads_is_not_followed(pair: tuple[Table, Table]) -> None:
    """A server whose readers have gone sends no requests for them."""
    follower = Follower(idle=0.05)
    follower.follow([each.root for each in pair], 0.01)
    thread = follower.thread
    assert thread is not None
    thread.join(30)
    assert not thread.is_alive() and follower.thread is None
    assert read_pair(pair[0].root, pair[1].root) == (0, 0)


def test_nothing_on_disk_is_followed(tmp_path: Path) -> None:
    """To look there is as cheap as to remember."""
    follower = Follower()
    follower.follow([tmp_path], 0.01)
    assert follower.thread is None


@pytest.fixture
def shop(lake: Location, tmp_path: Path) -> Shop:
    """A shop in a bucket, with a definition that ``read`` finds."""
    (tmp_path / "definitions").mkdir()
    (tmp_path / "definitions" / "shop.py").write_text(DEFINITION)
    made = Shop(lake)  # type: ignore[arg-type]
    made.epoch([Sale(1)], watermark=START)
    return made


@pytest.fixture
def following() -> Iterator[None]:
    """Let nothing be followed beyond the test."""
    yield
    FOLLOWER.close()


def await_true(found: Callable[[], bool]) -> None:
    """Wait until something is so; the test's own time limit ends it otherwise."""
    while not found():
        threading.Event().wait(0.01)


@pytest.mark.usefixtures("following")
def test_an_answer_with_an_age_follows(shop: Shop, lake: Location, tmp_path: Path) -> None:
    """It states as of when it is, and what is committed is in it before long, though no answer asks for it."""

    def answer(max_age: float | None = None) -> tuple[int, datetime | None]:
        found = read(
            "shop.sales",
            format="answer",
            warehouse=lake,
            definitions=tmp_path / "definitions",
            max_age=max_age,
        )
        return sum(found.table["orders"].to_pylist()), found.seen_at

    began = datetime.now(UTC)
    count, seen_at = answer()
    assert count == 1 and seen_at and seen_at >= began
    assert FOLLOWER.thread is None
    assert answer(0.5)[0] == 1
    shop.epoch([Sale(2)], watermark=START)
    assert answer()[0] == 2
    shop.epoch([Sale(3)], watermark=START)
    await_true(lambda: answer(LONG)[0] == 3)
    count, seen_at = answer(LONG)
    assert seen_at and seen_at <= datetime.now(UTC)


@pytest.mark.parametrize("text", ["-1", "soon", "nan", "inf"])
def test_an_age_is_a_number_of_seconds(text: str) -> None:
    """Taken for 0 it would cost requests that nobody has asked for."""
    assert [read_seconds_setting(each, SETTING, 2.0) for each in ({}, {SETTING: "0.5"})] == [2.0, 0.5]
    with pytest.raises(SetupError, match="SEAMLINE_STORE_MAX_AGE"):
        read_seconds_setting({SETTING: text}, SETTING, 0.0)
