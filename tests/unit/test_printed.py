"""What a query prints while it runs: nothing, since answers are printed to the same place."""

from __future__ import annotations

import subprocess
import sys

import pytest

LONG = """
from seamline.lake import scans, states
con = {connection}()
con.execute("SET progress_bar_time = 0")
print(con.execute("SELECT count(DISTINCT hash(range)) FROM range(5000000)").fetchall())
"""


@pytest.mark.parametrize("connection", ["scans.opened", "states.connection"])
def test_a_long_query_draws_no_progress(connection: str) -> None:
    """DuckDB draws a bar after two seconds, into the rows that `seamline query` writes into a file."""
    done = subprocess.run(
        [sys.executable, "-c", LONG.format(connection=connection)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[(5000000,)]\n"
