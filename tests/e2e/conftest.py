"""One warehouse and one resident driver for all end-to-end tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.e2e.world import Resident, World


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resident]:
    """Have a resident driver, which is up a moment later."""
    made = Resident(tmp_path_factory.mktemp("driver"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Make a warehouse with two days of flights."""
    return World(tmp_path_factory.mktemp("world"))
