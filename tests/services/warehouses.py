"""Where a test's warehouse is: in a folder, and in a bucket as well where the test is marked ``everywhere``.

With --in-bucket all are in a bucket, as the slow suite has it, but those of tests that are ``on_disk``.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from tests.faults.rig.store_settings import set_store
from tests.services.addresses import Bucket
from tests.services.fixtures import find
from tests.services.run import Run

from seamline.lake.store.locations import Location, parse_location

FOLDER, BUCKET = "folder", "bucket"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the options by which every warehouse is in a bucket, and of which server."""
    parser.addoption("--in-bucket", action="store_true", help="put each test's warehouse into a bucket")
    parser.addoption("--bucket-of", default="moto", choices=["moto", "versitygw"], help="by which server")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Say where the warehouse of a test is."""
    if "warehouse" not in metafunc.fixturenames:
        return
    if metafunc.config.getoption("--in-bucket") and not metafunc.definition.get_closest_marker("on_disk"):
        metafunc.parametrize("warehouse", [BUCKET], indirect=True)
    elif metafunc.definition.get_closest_marker("everywhere"):
        metafunc.parametrize("warehouse", [FOLDER, BUCKET], indirect=True)


@pytest.fixture(scope="session")
def shared_bucket(services: Run, pytestconfig: pytest.Config) -> Bucket:
    """A bucket in which each warehouse has a place of its own."""
    from tests.services.s3 import make_bucket

    return make_bucket(**find(services, pytestconfig.getoption("--bucket-of")))


@pytest.fixture
def warehouse(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Location:
    """The place of an empty warehouse, which is where commands look for one."""
    if getattr(request, "param", FOLDER) == FOLDER:
        monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "w"))
        return tmp_path / "w"
    bucket = request.getfixturevalue("shared_bucket")
    set_store(monkeypatch, bucket, bucket.endpoint, tmp_path / "home")
    place = f"{bucket.url}/{uuid.uuid4().hex[:12]}"
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", place)
    return parse_location(place)
