"""Writers that are killed, again and again: what is there is what the position says."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.e2e.sinks import test_postgres_target, test_redis_target
from tests.e2e.sinks.served_rows import ServedRows, make_view
from tests.faults.sinks.killed_writer import LAST, ROWS, open_named
from tests.services.addresses import Postgres, Valkey
from valkey import Valkey as Client

from seamline.sinks.server_connections import ServerConnection

pytestmark = pytest.mark.faults
ROOT = Path(__file__).resolve().parents[3]


def start(kind: str, connection: ServerConnection, seed: int, die_at: int = -1) -> subprocess.Popen[str]:
    """Start a writer."""
    command = [sys.executable, "-m", "tests.faults.sinks.killed_writer"]
    child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    told: dict[str, Any] = {"kind": kind, "connection": asdict(connection), "seed": seed, "die_at": die_at}
    child.stdin.write(json.dumps(told))
    child.stdin.close()
    child.stdin = None
    return child


def show_version(seed: int, version: int) -> ServedRows:
    """Make up the rows of a version."""
    served = ServedRows(make_view(), seed, ROWS)
    for each in range(1, version + 1):
        served.change(20, 5, 5)
        served.change(5, 5, 5)
        served.version = each
    return served


def read_version(kind: str, connection: ServerConnection) -> int:
    """Return the version that a target has, -1 for none, by taking it over."""
    with closing(open_named(kind, connection)) as target:
        held = target.take_over()
    return -1 if held is None else held.version


@pytest.mark.seeds(3)
def test_a_writer_killed_between_rows_and_position_of_postgresql(postgres: Postgres, seed: int) -> None:
    """All rows of a version were written, and its position was not: neither is there afterwards."""
    connection, pick = test_postgres_target.connect(postgres), random.Random(seed)
    with psycopg.connect(postgres.url, autocommit=True) as held:
        held.execute("SET TIME ZONE 'UTC'")
        for die_at in sorted(pick.sample(range(LAST), 8)):
            child = start("postgres", connection, seed, die_at)
            told, _ = child.communicate(timeout=120)
            assert child.returncode == -signal.SIGKILL, told
            assert read_version("postgres", connection) == die_at - 1
            if die_at:
                served = show_version(seed, die_at - 1)
                found = test_postgres_target.read_rows(held, served)
                assert found == test_postgres_target.expect_rows(served)
        finish("postgres", connection, seed)
        served = show_version(seed, LAST)
        assert test_postgres_target.read_rows(held, served) == test_postgres_target.expect_rows(served)


@pytest.mark.seeds(3)
def test_a_writer_of_redis_killed_at_any_time(valkey: Valkey, seed: int) -> None:
    """A script is run whole or not at all: rows are those of the position, whenever the writer dies."""
    connection, pick = test_redis_target.connect(valkey), random.Random(seed)
    with Client.from_url(valkey.url, decode_responses=True) as held:
        for _ in range(8):
            kill_while_writing(lambda: start("redis", connection, seed), pick.randrange(1, 6))
            if (version := read_version("redis", connection)) >= 0:
                assert test_redis_target.read_rows(held) == test_redis_target.expect_rows(
                    show_version(seed, version)
                )
            if version == LAST:
                break
        finish("redis", connection, seed)
        assert test_redis_target.read_rows(held) == test_redis_target.expect_rows(show_version(seed, LAST))


def kill_while_writing(begin: Callable[[], subprocess.Popen[str]], versions: int) -> None:
    """Kill a writer once it has written so many versions, while it writes the next one."""
    with begin() as child:
        assert child.stdout is not None
        for _ in range(versions + 1):
            child.stdout.readline()
        child.kill()


def finish(kind: str, connection: ServerConnection, seed: int) -> None:
    """Let a writer come to the last version."""
    child = start(kind, connection, seed)
    told, _ = child.communicate(timeout=120)
    assert child.returncode == 0 and int(told.split()[-1]) == LAST, told
    assert read_version(kind, connection) == LAST
