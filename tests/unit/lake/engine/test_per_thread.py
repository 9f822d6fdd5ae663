"""A DuckDB for each thread: freed with it, and never by the child of a fork."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from seamline.lake.engine.duckdb_connections import connection, query_tables


def asked() -> list[tuple[int]]:
    """Use this thread's."""
    found: list[tuple[int]] = connection().sql("SELECT 42").fetchall()
    one = added(pa.table({"n": [20, 22]}))
    assert one.to_pydict() == {"n": [42]}
    return found


def added(table: pa.Table) -> pa.Table:
    """Use the one that merges states."""
    return query_tables("SELECT sum(n)::BIGINT AS n FROM given", given=table)


def test_a_child_of_a_fork_lives_beside_threads_that_have_one() -> None:
    """Python runs in it before it becomes another program, as where PySpark starts a JVM."""
    with ThreadPoolExecutor(2) as pool:
        assert pool.submit(asked).result() == [(42,)]
        done = subprocess.run([sys.executable, "-c", ""], preexec_fn=gc.collect, check=False, timeout=60)
    assert done.returncode == 0


def test_a_thread_that_has_ended_holds_none() -> None:
    """Its connection goes when the next one is made."""
    ended = threading.Thread(target=asked)
    ended.start()
    ended.join()
    assert ended in connection._held
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asked).result()
    assert ended not in connection._held
