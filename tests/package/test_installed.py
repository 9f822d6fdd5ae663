"""The wheel in empty environments, with nothing of this checkout: what it installs, and what that is good for.

`make package-test` runs it. It needs the package index; versions are those of requirements.txt.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.package.environments import Run

FOUND = "import sys; from importlib.util import find_spec; print(find_spec(sys.argv[1]) is not None)"
MODULES = {
    "": "seamline.client seamline.cli seamline.serve.read seamline.testing seamline.kafka.admin",
    "spark": "seamline.jobs.build seamline.jobs.stream seamline.quality.suites",
    "airflow": "seamline.orchestration.dags seamline_airflow",
    "sinks": "seamline.sinks.postgres.target seamline.sinks.redis.target",
    "mcp": "seamline.mcp.transports",
    "lineage": "seamline.lineage.client_events",
    "traces": "seamline.tracing.epoch_traces",
    "web": "seamline.web.app",
    "demo": "seamline.local.demo.verify seamline.web.app seamline.jobs.build",
}
"""What an extra adds, by way of example; tests/unit/project/test_package.py tries every module."""
IMPORT = """
import time
began = time.perf_counter()
import seamline
print(time.perf_counter() - began)
"""
DEFINITION = """
from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, count

shop = Pipeline(
    name="shop",
    source=KafkaSource(topic="sales", schema="customer STRING, at TIMESTAMP NOT NULL", event_time="at"),
    views=[View("sales", keys=["customer"], window=Tumbling("1 day"), measures={"n": count()})],
    batch=Batch(interval="1 day", start="2026-03-01"),
    defaults="2026-11",
)
"""
TEST = """
from shop import shop
from seamline.testing import Scenario


def test_a_late_sale_counts():
    life = Scenario(shop, now="2026-03-01T12:00")
    life.send({"customer": "ada", "at": "2026-03-01T09:00Z"})
    life.epoch()
    life.send({"customer": "ada", "at": "2026-03-01T08:00Z"})
    life.epoch()
    [row] = life.answer("sales")
    assert row["n"] == 2
"""


@pytest.mark.parametrize("extra", list(MODULES), ids=lambda extra: extra or "base")
def test_an_extra_brings_what_it_is_for(install: Callable[[str], Run], extra: str) -> None:
    """Its modules can be imported, and nothing came along but PySpark, which Spark's provider for Airflow needs."""
    run = install(extra)
    for module in [*MODULES[""].split(), *MODULES[extra].split()]:
        run("python", "-c", f"import {module}")
    print(f"import seamline: {float(run('python', '-c', IMPORT)):.2f} s")
    assert run("seamline", "--version").startswith("seamline")
    there = {name: run("python", "-c", FOUND, name) == "True\n" for name in ("pyspark", "airflow", "plotly")}
    assert there == {
        "pyspark": extra not in ("", "sinks", "mcp", "lineage", "traces"),
        "airflow": extra in ("airflow", "web", "demo"),
        "plotly": extra in ("web", "demo"),
    }


def test_a_first_pipeline_is_checked_and_tested(install: Callable[[str], Run], tmp_path: Path) -> None:
    """The kit needs no broker, no Spark and no Airflow."""
    run, folder = install(""), tmp_path / "pipelines"
    folder.mkdir()
    (folder / "shop.py").write_text(DEFINITION)
    assert "1 pipeline, no problem." in run("seamline", "check", SEAMLINE_PIPELINES=str(folder))
    (folder / "test_shop.py").write_text(TEST)
    assert (
        run("python", "-c", "import test_shop as t; t.test_a_late_sale_counts()", PYTHONPATH=str(folder))
        == ""
    )


def test_the_java_parts_are_fetched(install: Callable[[str], Run], tmp_path: Path) -> None:
    """What pip cannot bring comes by its checksum; then nothing is missing for a stream."""
    run, places = (
        install("spark"),
        {"SEAMLINE_JARS": str(tmp_path / "jars"), "SEAMLINE_HOME": str(tmp_path / "home")},
    )
    places["SEAMLINE_WAREHOUSE"], places["SEAMLINE_PIPELINES"] = str(tmp_path / "w"), str(tmp_path)
    assert "spark: 6 jars fetched" in run("seamline", "setup", "--no-archive", **places)
    assert "spark: 0 jars fetched" in run("seamline", "setup", "--no-archive", **places)
    assert "LACKS" not in run("seamline", "doctor", "--no-airflow", **places)


@pytest.mark.parametrize("extra", ["airflow", "web"])
def test_airflow_finds_the_pages_and_the_provider(install: Callable[[str], Run], extra: str) -> None:
    """No file is copied after the installation; without the extra that serves the pages nothing links to them."""
    run = install(extra)
    assert "seamline" in run("airflow", "providers", "list")
    plugins = {each["name"]: each for each in json.loads(run("airflow", "plugins", "--output", "json"))}
    assert ("Seamline" in str(plugins["seamline"]["external_views"])) is (extra == "web")
