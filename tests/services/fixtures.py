"""For pytest: a real server for whoever asks, each started once a run, and a part of its own for each test."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.services.addresses import Bucket, KafkaConnection, Postgres, Valkey
from tests.services.run import Run
from tests.services.server import ServiceBroken

RUN: pytest.StashKey[Run] = pytest.StashKey()


def find_run(config: pytest.Config) -> Run:
    """Return the run that this process is part of: a worker is told by the process that has started it."""
    if RUN not in config.stash:
        told = getattr(config, "workerinput", {}).get("services")
        folder = Path(told[0]) if told else config._tmp_path_factory.getbasetemp() / "services"
        config.stash[RUN] = Run(folder, told[1] if told else os.getpid())
    return config.stash[RUN]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Tell a worker of xdist where the run's servers are written down, and who ends with the run."""
    run = find_run(node.config)
    node.workerinput["services"] = (str(run.folder), run.process)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End the servers when the run ends, before another plugin may fail; workers leave that to the run."""
    if RUN in config.stash and not hasattr(config, "workerinput"):
        config.stash[RUN].end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Say it beside a failure, when one of the run's servers has ended."""
    report = yield
    if report.failed and RUN in item.config.stash:
        for each in item.config.stash[RUN].started():
            if (why := each.why_not()) and why not in str(report.longrepr):
                report.sections.append((f"{each.kind} is not there", why))
    return report


@pytest.fixture(scope="session")
def services(pytestconfig: pytest.Config) -> Run:
    """The servers of this run."""
    return find_run(pytestconfig)


@pytest.fixture(scope="session")
def kafka(services: Run) -> KafkaConnection:
    """A broker for whoever needs just one: topics have names of their own, and nobody stops it."""
    return KafkaConnection(**find(services, "kafka"))


@pytest.fixture
def postgres(services: Run) -> Iterator[Postgres]:
    """An empty database, dropped when the test is over."""
    from tests.services.postgres import drop_database, make_database

    made = Postgres(database=f"test_{uuid.uuid4().hex[:12]}", **find(services, "postgres"))
    make_database(made)
    yield made
    drop_database(made)


@pytest.fixture
def valkey(services: Run) -> Iterator[Valkey]:
    """An empty database, emptied when the test is over."""
    from tests.services.valkey import empty_database, give_database

    given = give_database(**find(services, "valkey"))
    yield given
    empty_database(given)


@pytest.fixture
def bucket(services: Run, request: pytest.FixtureRequest) -> Bucket:
    """An empty bucket: of moto, or of versitygw in a test of the slow suites."""
    from tests.services.s3 import make_bucket
    from tests.slow_suite import is_slow

    return make_bucket(**find(services, "versitygw" if is_slow(request.node) else "moto"))


def find(services: Run, kind: str) -> dict:
    """Return the address of a server; where there is none, the test fails by what the server has said."""
    try:
        return dict(services.find(kind))
    except ServiceBroken as broken:
        why = str(broken)
    pytest.fail(why, pytrace=False)
