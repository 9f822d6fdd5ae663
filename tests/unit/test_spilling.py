"""A build's task within a worker's memory: what DuckDB has no room for goes to disk."""

from __future__ import annotations

import subprocess
import sys

SPILL = """
import resource
from seamline.kernel.judging import engine
from seamline.spark.partials import spilling
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
con = engine()
for _ in range(2):
    spilling(con, "1g")
con.execute("CREATE TEMP TABLE rows AS SELECT range AS n, hash(range) AS a, hash(range + 1) AS b FROM range(50000000)")
print(con.execute("SELECT count(*), max(n) FROM rows").fetchall())
"""


def test_rows_that_memory_does_not_hold_are_on_disk() -> None:
    """Rows whose ids are looked for twice: 1.2 GB of them in a worker of 1 GB."""
    done = subprocess.run([sys.executable, "-c", SPILL], capture_output=True, text=True, check=False)
    assert done.stdout == "[(50000000, 49999999)]\n", (done.returncode, done.stderr[-2000:])
