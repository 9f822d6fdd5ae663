"""A DuckDB for each thread: freed with it, and never by the child of a fork."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from seamline.lake.engine.duckdb_connections import connection, query_tables, register_tables


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


def test_a_sum_of_doubles_has_one_order() -> None:
    """Two threads added them as they came: one question had two answers that differed in the last digit."""
    found = query_tables(
        "SELECT current_setting('threads')::BIGINT AS n FROM given", given=pa.table({"n": [1]})
    )
    assert found.to_pydict() == {"n": [1]}
    doubles = pa.table({"n": np.random.default_rng(7).random(400_000) * 10.0 ** (np.arange(400_000) % 12)})
    totals = {query_tables("SELECT sum(n) AS n FROM given", given=doubles)["n"][0].as_py() for _ in range(12)}
    assert len(totals) == 1


def test_a_table_hides_no_other() -> None:
    """A function that registers a name its caller has would read its caller's rows, or leave none."""
    with register_tables(given=pa.table({"n": [1]})) as con:
        with (
            pytest.raises(RuntimeError, match="given: registered"),
            register_tables(given=pa.table({"n": [2]})),
        ):
            pass
        assert query_tables("SELECT n FROM given", given=pa.table({"n": [3]})).to_pydict() == {"n": [3]}
        assert con.sql("SELECT n FROM given").fetchall() == [(1,)]
    with register_tables(given=pa.table({"n": [4]})) as con:
        assert con.sql("SELECT n FROM given").fetchall() == [(4,)]
