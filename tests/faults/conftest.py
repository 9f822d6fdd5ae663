"""The slow suite: seeds, trials, and lines of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.faults.rig.disks import Disk, run
from tests.faults.rig.line import Line
from tests.faults.rig.store_proxy import StoreProxy, proxy_before
from tests.faults.rig.trial import Trial
from tests.services.addresses import Bucket

from seamline.kafka.connections import KafkaConnection


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test its seeds: as many as its mark says, or the one that is asked for."""
    mark = metafunc.definition.get_closest_marker("seeds")
    if "seed" in metafunc.fixturenames and mark:
        one = metafunc.config.getoption("--seed")
        metafunc.parametrize("seed", range(*mark.args) if one is None else [one])


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


@pytest.fixture
def proxy(bucket: Bucket) -> Iterator[StoreProxy]:
    """What is between the clients of a bucket and its server."""
    with proxy_before(urlsplit(bucket.endpoint).port or 80) as made:
        yield made


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


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Make an ext4 and mount it, which only root can."""
    found = Disk(tmp_path / "image", tmp_path / "disk")
    found.place.mkdir()
    with found.image.open("wb") as file:
        file.truncate(256 << 20)
    try:
        run("mkfs.ext4", "-q", str(found.image))
        found.mount()
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a file system of one's own needs root: {error}")
    yield found
    run("umount", "--lazy", str(found.place))
