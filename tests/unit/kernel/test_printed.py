"""What a query prints while it runs: nothing, since answers are printed to the same place."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pytest

from seamline.kernel.epoch_kernel import open_worker_duckdb
from seamline.lake.engine.duckdb_connections import connection, open_duckdb


@pytest.mark.parametrize("opened", [connection, open_duckdb, open_worker_duckdb])
def test_a_long_query_draws_no_progress(opened: Callable[[], duckdb.DuckDBPyConnection]) -> None:
    """DuckDB draws a bar after two seconds, into the rows that `seamline query` writes into a file."""
    assert opened().sql("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]
