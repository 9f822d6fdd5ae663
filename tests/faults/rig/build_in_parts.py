"""A build of a shop in a process of its own, in the way of large builds: `python -m tests.faults.rig.build_in_parts`.

The last line of its output has what it counted, its states, and how many tasks of Spark's have failed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.lives.here import building_in_parts
from tests.unit.shop import DAY, START, sales_pipeline

from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.generations import Generations
from seamline.model.time.intervals import Interval
from seamline.plan.batch import work_shares
from seamline.spark.build import fast_path, spilled_states
from seamline.spark.session.session import open_spark_session

SPAN = Interval(START, START + DAY)
ROWS, UNIT = 1_000_000, 2_000
"""Bounds by which each stage has six tasks or a few more: a task that is tried again ends."""


def build(folder: Path, attempt: str, master: str) -> dict[str, Any]:
    """Build the day, and read what is committed."""
    pipeline, layout = sales_pipeline(), Layout(folder, "shop")
    spark = open_spark_session("tests.faults", cores=master, memory="1g")
    fast_path.count_task_slots = lambda _: 6
    with building_in_parts(whole=attempt.endswith("whole")), patch.multiple(work_shares, IN_A_PART=ROWS):
        spilled_states.UNIT_BYTES = UNIT
        found, wrote = fast_path.build_states_fast(
            spark, pipeline, layout, Files.of(Master.open(layout).table), [SPAN], 10**6, attempt
        )
    [view] = pipeline.views
    held = Generations.ensure(layout, view).read(attempt).drop_columns(["generation"])
    store: Any = spark.sparkContext._jsc.sc().statusStore().executorList(True)
    return {
        "counts": {id: [each.read, each.duplicates] for id, each in found.items()},
        "rows": sum(each.state_rows for each in wrote[view.id].values()),
        "states": sorted(map(str, held.to_pylist())),
        "failed": sum(store.apply(number).failedTasks() for number in range(store.size())),
    }


if __name__ == "__main__":
    print(json.dumps(build(Path(sys.argv[1]), sys.argv[2], sys.argv[3])))
