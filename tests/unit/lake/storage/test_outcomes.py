"""Commits whose outcome is not known at once: each counts once, and nobody takes his own for another's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from seamline.lake.storage import data_files, log_follower, log_store
from seamline.lake.storage.commit_conflicts import retry_overtaken
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.fenced_commits import TOKEN
from seamline.lake.storage.log_entries import Draft
from seamline.lake.store import created_files
from seamline.model.errors import Conflict, FenceLost, Overtaken

SCHEMA = pa.schema([("n", pa.int64())])
DAY = 86_400.0
link = os.link


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.ensure(tmp_path / "table", SCHEMA)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_store, "PATIENCE", (0.0, 0.0, 0.0), raising=False)


def add(table: Table, number: int) -> None:
    """Commit a row."""
    rows = pa.table({"n": [number]}, schema=SCHEMA)
    table.append([data_files.write_data_file(rows, table.root, f"{number}.parquet")], txns={"a": number})


def rows(table: Table) -> list[int]:
    """List the rows that anybody sees."""
    return sorted(Table.open(table.root).read()["n"].to_pylist())


@contextmanager
def disk(*replies: Callable[[Path, Path], None]) -> Iterator[None]:
    """Let the next links be made, or not, and answered as ``replies`` do; then as they are."""
    left = list(replies)

    def linked(source: Path, target: Path) -> None:
        (left.pop(0) if left else link)(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(created_files.os, "link", linked)
        yield
    assert not left


def landed_but_exists(source: Path, target: Path) -> None:
    """As NFS does where the reply to a link was lost and the client asked again."""
    link(source, target)
    raise FileExistsError(17, "File exists")


def landed_without_an_answer(source: Path, target: Path) -> None:
    """As a connection that is cut."""
    link(source, target)
    raise TimeoutError(110, "Connection timed out")


def exists_but_absent(source: Path, target: Path) -> None:
    """As S3's 409 while another's write is under way, which then fails."""
    raise FileExistsError(17, "File exists")


def no_answer(source: Path, target: Path) -> None:
    """As a connection that is cut before anything was done."""
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize("token", [None, 7])
@pytest.mark.parametrize(
    "replies",
    [
        (landed_but_exists,),
        (landed_without_an_answer,),
        (exists_but_absent,),
        (no_answer,),
        (no_answer, landed_but_exists),
        (exists_but_absent, no_answer),
    ],
    ids=lambda replies: " then ".join(each.__name__ for each in replies),
)
def test_a_commit_of_which_nobody_knows_counts_once(
    table: Table, replies: tuple[Callable[[Path, Path], None], ...], token: int | None
) -> None:
    """It is looked at until it is known, and is not taken for another's: FenceLost "token 7 has replaced ours, 7"."""
    if token:
        with disk(*replies):
            table.fence(token)
    for number in (1, 2):
        with disk(*replies):
            add(table, number)
    assert rows(table) == [1, 2]
    assert table.version == Table.open(table.root).version == (3 if token else 2)
    assert table.txn("a") == 2
    assert not list((table.root / "_delta_log").glob("*.tmp"))


def test_what_is_in_the_way_meanwhile_is_passed_by(table: Table) -> None:
    """A commit that concerns nobody takes the number while nobody knows whose it is."""
    other = Table.open(table.root)

    def meanwhile(source: Path, target: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(created_files.os, "link", link)
            other.append([], txns={"b": 1})
        raise OSError(5, "Input/output error")

    with disk(meanwhile):
        add(table, 1)
    assert rows(table) == [1]
    assert (table.version, table.txn("b")) == (2, 1)


def test_a_commit_that_lands_late_is_seen_by_its_own_writer(table: Table) -> None:
    """It was given up, and comes when the next is under way: to look anew is enough, nobody else is there."""
    table.fence(7)
    late: list[tuple[Path, Path]] = []

    def sent(source: Path, target: Path) -> None:
        kept = table.root / "on its way"
        if not late:
            link(source, kept)
            late.append((kept, target))
        raise OSError(5, "Input/output error")

    with disk(*[sent] * 3), pytest.raises(OSError, match="Input/output"):
        add(table, 1)
    assert rows(table) == []

    def lands(source: Path, target: Path) -> None:
        link(*late[0])
        link(source, target)

    with disk(lands), pytest.raises(Conflict, match="An earlier commit of this writer has landed late"):
        add(table, 2)
    table.refresh()
    assert table.txn("a") == 1
    add(table, 3)
    assert rows(table) == [1, 3]


def test_a_writer_that_insists_waits_until_it_knows(table: Table) -> None:
    """As the stream's does for its master: what it has read must not be read again while it may be held yet."""
    table.fence(7)
    table.insists = True
    with disk(*[no_answer] * 40, exists_but_absent, landed_without_an_answer):
        add(table, 1)
    assert rows(table) == [1]
    assert table.version == 2


def test_what_a_disk_refuses_is_not_tried_again(table: Table) -> None:
    """It has said that nothing was done."""

    def full(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with disk(full), pytest.raises(OSError, match="No space left"):
        add(table, 1)
    add(table, 2)
    assert rows(table) == [2]


def test_a_newer_token_wins_against_a_live_writer(table: Table) -> None:
    """However often the older one commits between its look and its commit."""
    table.fence(1)
    newer = Table.open(table.root)
    older = iter(range(1, 6))

    def commits(source: Path, target: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(created_files.os, "link", link)
            add(table, next(older))
        link(source, target)

    with disk(*[commits] * 5):
        newer.fence(2)
    assert newer.txn(TOKEN) == 2
    with pytest.raises(FenceLost, match="token 2 has replaced ours, 1"):
        add(table, 9)
    assert rows(table) == [1, 2, 3, 4, 5]


def test_a_token_loses_to_a_newer_one_only(table: Table) -> None:
    """Which comes between its look and its commit."""
    middle, newest = Table.open(table.root), Table.open(table.root)

    def newer(source: Path, target: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(created_files.os, "link", link)
            newest.fence(3)
        link(source, target)

    with disk(newer), pytest.raises(FenceLost, match="already carries token 3, ours is 2"):
        middle.fence(2)
    with pytest.raises(FenceLost, match="already carries token 3"):
        Table.open(table.root).fence(3)


def test_a_fence_goes_on_over_another_schema(table: Table) -> None:
    """A definition may have got a column meanwhile."""
    late = Table.open(table.root)
    table.widen(pa.schema([("more", pa.int64())]))
    late.fence(1)
    assert late.txn(TOKEN) == 1


def test_what_deltalake_has_committed_is_read_in_the_log(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replacement of all rows goes through it, and its answer may be lost too."""
    real = DeltaTable.create_write_transaction

    def unanswered(self: DeltaTable, *given: object, **named: object) -> None:
        real(self, *given, **named)  # type: ignore[arg-type]
        raise OSError("no answer")

    add(table, 1)
    monkeypatch.setattr(DeltaTable, "create_write_transaction", unanswered)
    file = data_files.write_data_file(pa.table({"n": [2]}, schema=SCHEMA), table.root, "2.parquet")
    assert table.append([file], instead=SCHEMA) == 2
    assert rows(table) == [2]


@pytest.fixture
def slept(table: Table, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A fenced writer that slept for a month: a newer one has gone on, and its entries were cleaned away."""
    table.fence(1)
    asleep = Table.open(table.root)
    asleep.token = asleep.txn(TOKEN)
    newer = Table.open(table.root)
    newer.fence(2)
    for number in range(10, 14):
        add(newer, number)
    clean(newer, newer.version)
    moment = log_follower.since_boot() if hasattr(log_follower, "since_boot") else 0.0
    monkeypatch.setattr(log_follower, "since_boot", lambda: moment + 31 * DAY, raising=False)
    return asleep


def clean(table: Table, until: int) -> None:
    """Let a table begin with a checkpoint, as after its retention."""
    DeltaTable(str(table.root)).create_checkpoint()
    for version in range(until):
        log_store.entry_path(table.root, version).unlink(missing_ok=True)


def test_a_writer_that_slept_commits_nothing_under_a_number_that_was_cleaned_away(slept: Table) -> None:
    """The number is free, and below the checkpoint: nobody who opens the table would see the commit."""
    ahead = slept.version + 1
    with pytest.raises(FenceLost, match="token 2 has replaced ours, 1"):
        add(slept, 1)
    assert not log_store.entry_path(slept.root, ahead).exists()
    assert rows(slept) == [10, 11, 12, 13]


def test_a_decision_that_slept_is_decided_anew(slept: Table) -> None:
    """As a lease that is renewed by a supervisor that stood still."""
    slept.token = None
    with pytest.raises(Conflict, match="changed since version 1 was read"):
        add(slept, 1)
    slept.append([], txns={"b": 1})
    assert rows(slept) == [10, 11, 12, 13]
    assert Table.open(slept.root).txn("b") == 1


def test_what_was_decided_on_nothing_goes_on_where_the_log_is(slept: Table) -> None:
    """A row of a build, that is in nobody's way."""
    slept.token = None
    file = data_files.write_data_file(pa.table({"n": [1]}, schema=SCHEMA), slept.root, "1.parquet")
    slept.append([file])
    assert rows(slept) == [1, 10, 11, 12, 13]


def test_a_writer_that_falls_asleep_between_look_and_commit_takes_it_back(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had looked for a checkpoint a moment before."""
    table.fence(1)
    newer = Table.open(table.root)
    moment = log_follower.since_boot()

    def sleeps(source: Path, target: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(created_files.os, "link", link)
            newer.fence(2)
            for number in range(10, 14):
                add(newer, number)
        clean(newer, newer.version)
        monkeypatch.setattr(log_follower, "since_boot", lambda: moment + 31 * DAY)
        link(source, target)

    with disk(sleeps), pytest.raises(FenceLost, match="token 2 has replaced ours, 1"):
        add(table, 1)
    assert not log_store.entry_path(table.root, 2).exists()
    assert rows(table) == [10, 11, 12, 13]


@pytest.mark.parametrize("cleaned", [2, 4, 5])
def test_a_reader_that_meets_a_ghost_reads_the_table_anew(table: Table, cleaned: int) -> None:
    """A commit that another writer has left below the checkpoint, and died before it could take it back."""
    reader = Table.open(table.root)
    for number in range(1, 6):
        add(table, number)
    clean(table, cleaned)
    file = data_files.write_data_file(pa.table({"n": [9]}, schema=SCHEMA), table.root, "9.parquet")
    now = datetime.now(UTC)
    _, ghost = Draft.of([file.add(now)], {}, {}, partition_by=[], now=now).placed(1, reader.newest)
    log_store.entry_path(table.root, 1).write_bytes(ghost)
    assert sorted(reader.refresh().read()["n"].to_pylist()) == [1, 2, 3, 4, 5]


def test_only_a_commit_that_was_overtaken_is_decided_again() -> None:
    """A conflict that another decision cannot solve would be tried for ever."""
    told = iter([Overtaken("first"), Overtaken("second")])

    def decide() -> str:
        for problem in told:
            raise problem
        return "decided"

    assert retry_overtaken(decide) == "decided"
    told = iter([Overtaken("first"), Overtaken("second")])
    with pytest.raises(Overtaken, match="second"):
        retry_overtaken(decide, 2)
    told = iter([Conflict("the build was given up")])
    with pytest.raises(Conflict, match="given up"):
        retry_overtaken(decide, None)
    assert next(told, None) is None
