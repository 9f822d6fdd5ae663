"""Runs of so many days in one warm Spark: planned, built, certified, compared and published."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import psutil

from benchmarks import builds
from benchmarks.machine import cpu_seconds
from benchmarks.views import ROOT
from seamline.model.compile.catalog import load_pipeline
from seamline.model.time.intervals import Interval
from seamline.spark.session.session import open_spark_session

PARTS = ("plan", "build", "certify", "compare", "publish")
WARM, FIRST = 2, 100
"""Runs that are not counted; the day from which those begin that are."""


def measure_builds(sizes: Mapping[str, float]) -> dict[str, float]:
    """Build ``days`` days of flights as one range, after runs as long that warm up."""
    days = int(sizes["days"])
    with tempfile.TemporaryDirectory() as folder:
        spark = open_spark_session("benchmarks.scale")
        year = builds.Year(load_pipeline(ROOT / "include" / "pipelines", "flights"), Path(folder), spark)
        year.read()
        begin = builds.FIRST + timedelta(days=FIRST)
        for number in range(WARM):
            moved = begin - timedelta(days=30 * (number + 1))
            year.run(Interval(moved, moved + timedelta(days=days)))
        me = psutil.Process().pid
        with patch.object(builds.time, "monotonic", lambda: cpu_seconds(me)):
            seconds, rows = year.run(Interval(begin, begin + timedelta(days=days)))
        spark.stop()
    return {f"{name}_cpu_s": spent for name, spent in zip(PARTS, seconds, strict=True)} | {"rows": rows}
