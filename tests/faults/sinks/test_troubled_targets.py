"""Targets in trouble: away for long, full, locked, changed, deleted; a sink goes on by itself, or says why."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from tests.e2e.joined_world import eventually
from tests.faults.sinks.places import TABLE, TOPIC, KeysPlace, Place, TablePlace, TopicPlace
from tests.faults.sinks.shown_shop import ShownShop, variable
from tests.services.addresses import Postgres
from tests.services.run import Run
from tests.services.valkey import give_database
from tests.unit.shop import Sale
from valkey import Valkey as Client

from seamline.kafka.admin import TopicAdmin
from seamline.lake.maintain import cleaning
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.log_cleanup import delete_old_entries
from seamline.lake.tables.sinks.kept_for_sinks import find_version_for_sinks
from seamline.model.errors import DiskFull, SeamlineError, SetupError
from seamline.sinks import sink_runner
from seamline.sinks.sink_runner import SinkRunner
from seamline.sinks.target_errors import TargetUnavailable

pytestmark = pytest.mark.faults
VERSIONS = 30
"""What an hour of refreshes shows, shortened."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a sink that has failed try again soon."""
    monkeypatch.setattr(sink_runner, "FIRST_PAUSE", 0.2)
    monkeypatch.setattr(sink_runner, "LONGEST_PAUSE", 0.5)


@pytest.fixture(params=["kafka", "postgres", "valkey"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """An empty target of each kind."""
    server = request.getfixturevalue(request.param)
    made = {"kafka": TopicPlace, "postgres": TablePlace, "valkey": KeysPlace}[request.param](server)
    made.forget()
    yield made
    made.forget()


def open_shop(folder: Path, monkeypatch: pytest.MonkeyPatch, *places: Place) -> ShownShop:
    """Make a shop that shows a version, and let this process find its connections."""
    shown = ShownShop(folder, places, 1)
    for name, value in shown.env.items():
        monkeypatch.setenv(name, value)
    shown.move_on()
    return shown


def send(shown: ShownShop, number: int = 0) -> SeamlineError | None:
    """Send what is new by one of the sinks; return why that failed."""
    shop = shown.shop
    sink = shop.compiled.definition.sinks[number]
    runner = SinkRunner(shop.compiled, shop.layout, sink, threading.Event(), once=True)
    runner.run()
    return runner.error


@contextmanager
def running(shown: ShownShop) -> Iterator[list[SinkRunner]]:
    """Let all sinks run, each in its thread."""
    shop, stop = shown.shop, threading.Event()
    runners = [SinkRunner(shop.compiled, shop.layout, each, stop) for each in shop.compiled.definition.sinks]
    threads = [threading.Thread(target=each.run) for each in runners]
    for thread in threads:
        thread.start()
    try:
        yield runners
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


def lead_away(place: Place, monkeypatch: pytest.MonkeyPatch, **parts: object) -> None:
    """Let the connection say something else; without a part what is right."""
    monkeypatch.setenv(variable(place), json.dumps({**place.connection, **parts}))


def clean_up(shown: ShownShop) -> int:
    """Let upkeep do what it may, and return how many files it has left for sinks."""
    shop = shown.shop
    left = maintain_tables(shop.compiled, shop.layout).left
    table = Table.open(shop.layout.serving(shop.view))
    table.handle.create_checkpoint()
    needed = find_version_for_sinks(shop.layout, shop.view.name)
    later = datetime.now(UTC) + timedelta(days=60)
    delete_old_entries(table.root, timedelta(days=1), now=later, needed=needed)
    return left.get("removed files that a sink has still to compare", 0)


def test_a_target_that_was_away_for_long_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    """Upkeep has run again and again meanwhile, and what was shown in between is of no use to anybody."""
    monkeypatch.setattr(cleaning, "PINNED_HOURS", 0)
    shown = open_shop(tmp_path, monkeypatch, place)
    assert send(shown) is None
    away = {"extra": {"bootstrap.servers": "127.0.0.1:1"}} if place.kind == "kafka" else {"port": 1}
    kept = 0
    for version in range(VERSIONS):
        shown.move_on()
        if version % 10 == 9:
            lead_away(place, monkeypatch, **away)
            assert isinstance(send(shown), SeamlineError)
            kept = clean_up(shown)
    assert kept
    lead_away(place, monkeypatch)
    assert send(shown) is None
    assert place.read() == shown.newest
    place.check()
    assert not clean_up(shown)


@pytest.mark.parametrize("place", ["postgres", "valkey"], indirect=True)
def test_a_password_that_was_wrong_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    """It is said by the connection's name, tried again, and right as soon as somebody has corrected it."""
    shown = open_shop(tmp_path, monkeypatch, place)
    assert send(shown) is None
    lead_away(place, monkeypatch, password="s3cret-of-mine")
    shown.move_on()
    with running(shown) as [runner]:
        eventually("the refusal", lambda: runner.error)
        assert isinstance(runner.error, SetupError)
        assert f"{place.kind}_default" in runner.error.message
        assert "s3cret" not in f"{runner.error.message} {runner.error.hint}"
        shown.move_on()
        lead_away(place, monkeypatch)
        eventually("rows after the correction", lambda: place.read() == shown.newest)
        eventually("no error", lambda: runner.error is None)


def test_a_server_of_redis_without_memory_is_said_and_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys that there are stay, and the rest comes once there is room; half of a version is not the whole of it."""
    servers = Run(tmp_path / "servers", os.getpid())
    try:
        place = KeysPlace(give_database(**dict(servers.find("valkey"))))
        shown = open_shop(tmp_path, monkeypatch, place)
        assert send(shown) is None
        with Client.from_url(place.server.url) as admin:
            admin.config_set("maxmemory-policy", "noeviction")
            admin.config_set("maxmemory", admin.info("memory")["used_memory"] + 200_000)
            shown.move_on(*[Sale(minute, f"customer {minute} {'x' * 300}") for minute in range(1_500)])
            error = send(shown)
            assert isinstance(error, DiskFull), error
            assert "maxmemory" in error.hint
            position = place.position()
            assert position is not None
            assert position.toward is not None
            admin.config_set("maxmemory", 0)
        assert send(shown) is None
        assert place.read() == shown.newest
    finally:
        servers.end()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a small file system where the server of databases may write, which only root can."""
    # The server runs as nobody, who does not come into a folder of pytest's.
    place = Path("/tmp") / f"small_{os.getpid()}"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        place.rmdir()
        pytest.skip(f"a small file system needs root: {done.stderr.strip()}")
    nobody = pwd.getpwnam("nobody")
    os.chown(place, nobody.pw_uid, nobody.pw_gid)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)
    place.rmdir()


def test_a_full_disk_of_postgresql_is_said_and_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: Postgres, small_disk: Path
) -> None:
    """The table is on a disk of its own: nothing of a transaction that does not fit is there."""
    place, space = TablePlace(postgres), f"small_{os.getpid()}"
    server = Postgres(postgres.host, postgres.port, postgres.user, postgres.password, "postgres")
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"CREATE TABLESPACE {space} LOCATION '{small_disk}'")
        admin.execute(f"ALTER DATABASE {postgres.database} SET default_tablespace = '{space}'")
        try:
            shown = open_shop(tmp_path, monkeypatch, place)
            assert send(shown) is None
            before = shown.newest
            shown.move_on(*[Sale(minute % 2880, f"customer {minute}") for minute in range(12_000)])
            error = send(shown)
            assert isinstance(error, DiskFull), error
            assert place.read() == before
            subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
            assert send(shown) is None
            assert place.read() == shown.newest
        finally:
            with psycopg.connect(postgres.url, autocommit=True) as session:
                session.execute(f"DROP TABLE IF EXISTS {TABLE}, seamline_positions CASCADE")
            admin.execute(f"ALTER DATABASE {postgres.database} RESET default_tablespace")
            admin.execute(f"DROP TABLESPACE {space}")


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    "harm",
    [
        f"ALTER TABLE {TABLE} DROP COLUMN total CASCADE",
        f"ALTER TABLE {TABLE} ALTER COLUMN total TYPE numeric(8, 0)",
        f"ALTER TABLE {TABLE} RENAME COLUMN largest TO greatest",
        f"DROP TABLE {TABLE} CASCADE",
    ],
)
def test_a_table_that_somebody_has_changed_is_whole_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: TablePlace, harm: str
) -> None:
    """While the sink runs, and without a word from anybody: a type that is too narrow is widened again."""
    shown = open_shop(tmp_path, monkeypatch, place)
    with running(shown):
        eventually("the first rows", lambda: place.read() == shown.newest)
        with psycopg.connect(place.server.url, autocommit=True) as session:
            session.execute(harm)
        shown.move_on(Sale(1, "a", 10**12), Sale(2, "b"))
        eventually("all rows again", lambda: read_or_none(place) == shown.newest)


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_column_of_another_type_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: TablePlace
) -> None:
    """PostgreSQL writes numbers into a column of texts without a word; whoever starts anew does not."""
    shown = open_shop(tmp_path, monkeypatch, place)
    assert send(shown) is None
    with psycopg.connect(place.server.url, autocommit=True) as session:
        session.execute(f"ALTER TABLE {TABLE} ALTER COLUMN orders TYPE text")
        shown.move_on()
        error = send(shown)
        assert isinstance(error, SetupError)
        assert "Column 'orders'" in error.message
        session.execute(error.hint.split('"')[1])
    assert send(shown) is None
    assert place.read() == shown.newest


def read_or_none(place: TablePlace) -> object:
    """Read rows, where all of the columns are there."""
    try:
        return place.read()
    except psycopg.errors.UndefinedColumn:
        return None


@pytest.mark.parametrize("place", ["kafka"], indirect=True)
def test_a_topic_that_was_deleted_is_written_anew_while_the_sink_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: TopicPlace
) -> None:
    """The position is of another topic; without one beside its records, a topic may be somebody else's."""
    shown = open_shop(tmp_path, monkeypatch, place)
    with running(shown) as [runner]:
        eventually("the first rows", lambda: runner.sending and runner.sending.shown == max(shown.versions))
        with TopicAdmin(place.kafka) as admin:
            admin.delete_topic(TOPIC)
        shown.move_on()
        eventually(
            "the newest rows",
            lambda: runner.sending and runner.sending.shown == max(shown.versions) and runner.error is None,
        )
    assert place.read() == shown.newest
    place.check()
    with TopicAdmin(place.kafka) as admin:
        admin.delete_topic(f"{TOPIC}.position")
    shown.move_on()
    before, error = place.effects(), send(shown)
    assert isinstance(error, SetupError)
    assert "sinks resend" in error.hint
    assert place.effects() == before


def test_of_two_sinks_of_one_view_one_may_be_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: Postgres, valkey: object
) -> None:
    """The other goes on, and nothing of what it sends is missing in the one that comes back."""
    table, keys = TablePlace(postgres), KeysPlace(valkey)  # type: ignore[arg-type]
    table.sink = table.sink.replace('name="out"', 'name="table"')
    shown = open_shop(tmp_path, monkeypatch, table, keys)
    lead_away(table, monkeypatch, port=1)
    with running(shown) as runners:
        eventually("the refusal", lambda: isinstance(runners[0].error, TargetUnavailable))
        for _ in range(3):
            shown.move_on()
            eventually("rows of the one that is well", lambda: keys.read() == shown.newest)
        assert runners[1].error is None
        lead_away(table, monkeypatch)
        eventually("rows of the other", lambda: table.read() == shown.newest)
        shown.move_on()
        eventually("rows of both", lambda: table.read() == shown.newest == keys.read())
