"""The slow suite: seeds, shards, and a file of what has passed, so that a run which was cut short can go on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest
from tests.faults.rig.line import Line
from tests.faults.rig.trial import Results, Trial
from tests.ports import free_ports

from seamline.kafka.connections import KafkaConnection
from seamline.local.broker import Broker


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test its seeds: as many as its mark says, or the one that is asked for."""
    mark = metafunc.definition.get_closest_marker("seeds")
    if "seed" in metafunc.fixturenames and mark:
        one = metafunc.config.getoption("--seed")
        metafunc.parametrize("seed", range(*mark.args) if one is None else [one])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out other shards, and with --resume what has passed."""
    first, count = map(int, config.getoption("--shard").split("/"))
    done = {row["test"] for row in results().rows()} if config.getoption("--resume") else set()
    mine = [item for item in items if Path(__file__).parent in item.path.parents]
    left = {item for at, item in enumerate(mine) if at % count != first - 1 or item.nodeid in done}
    config.hook.pytest_deselected(items=sorted(left, key=lambda item: item.nodeid))
    items[:] = [item for item in items if item not in left]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Remember a test that has passed, with what its trial has to tell."""
    report = yield
    if report.when == "call" and report.passed:
        made = getattr(item, "trial", None)
        results().add({"test": item.nodeid, **(made.row() if made else {})})
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print every figure that trials have measured, over their seeds."""
    if figures := results().figures():
        terminalreporter.section("figures of what has passed, in seconds where nothing else is said")
        for name, values in figures.items():
            terminalreporter.write_line(
                f"{name}: n {len(values)}, p50 {median(values):.2f}, max {max(values):.2f}"
            )


def results() -> Results:
    """The file of what has passed."""
    folder = Path(os.environ.get("SEAMLINE_FAULTS", ".seamline/faults"))
    return Results(folder / "results.jsonl")


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of a test without several: its own, or the one that is asked for."""
    found = request.config.getoption("--seed")
    return 1 if found is None else int(found)


@pytest.fixture
def trial(request: pytest.FixtureRequest, seed: int) -> Trial:
    """Return the trial of a test, which is invalid if no fault has fired when the test is over."""
    request.node.trial = Trial(request.node.name, seed)
    return request.node.trial


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Refuse a trial in which nothing went wrong."""
    done = yield
    if made := getattr(pyfuncitem, "trial", None):
        made.close()
    return done


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaConnection]:
    """Run a broker on free ports."""
    broker = Broker(tmp_path_factory.mktemp("kafka"), free_ports(), free_ports())
    broker.start()
    yield broker.connection
    broker.stop()


@pytest.fixture
def line(kafka: KafkaConnection, tmp_path: Path, seed: int) -> Iterator[Line]:
    """A line of its own for a trial, of which nothing is left afterwards."""
    made = Line(tmp_path, kafka, seed)
    yield made
    made.close()


@pytest.fixture
def lines(kafka: KafkaConnection, tmp_path: Path) -> Iterator[Callable[..., Line]]:
    """Make lines with settings of their own."""
    made: list[Line] = []

    def make(seed: int, **more: object) -> Line:
        given = {"kafka": kafka, "home": tmp_path / f"line{len(made)}", **more}
        made.append(Line(seed=seed, **given))
        return made[-1]

    yield make
    for each in made:
        each.close()
