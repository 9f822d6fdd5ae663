"""A skip must be agreed on: one that is not in skips.toml fails the run."""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = [
    "pytester",
    "seamline.testing.plugin",
    "tests.lives.telling",
    "tests.services.fixtures",
    "tests.services.warehouses",
    "tests.slow_suite",
]
# Examples are not timed: a busy machine must not turn a law red.
settings.register_profile("laws", deadline=None)
settings.register_profile("check", deadline=None, max_examples=15)
settings.load_profile("laws")
logging.getLogger("py4j").setLevel(logging.WARNING)
# JVMs here live for seconds or minutes: without the second compiler starting one takes half the processor.
os.environ.setdefault("SEAMLINE_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
# Tables of tests are thrown away; those that are about syncing turn it on.
os.environ.setdefault("SEAMLINE_FSYNC", "off")
ALLOWED = tomllib.loads(Path(__file__).with_name("skips.toml").read_text())["skips"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the options of the slow suite, tests/faults."""
    group = parser.getgroup("faults")
    group.addoption("--seed", type=int, help="try this seed alone, of every trial that has seeds")
    group.addoption("--shard", default="1/1", help="K/N: every N-th trial, from the K-th on")
    group.addoption("--away", type=float, default=2, help="minutes for which a store is away")
    group.addoption("--resume", action="store_true", help="leave out what has passed, by .seamline/faults")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Start one session, as jobs have it, for every test that compares with Spark."""
    from seamline.spark.session.session import open_spark_session

    started = open_spark_session("tests")
    yield started
    started.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Turn a skip that nobody agreed on into a failure."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.nodeid.split("[")[0] not in ALLOWED:
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid} was skipped ({report.longrepr}); tests/skips.toml does not allow it."
        )
    return report
