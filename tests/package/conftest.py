"""One wheel, and one environment for each extra, for all tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tests.package.environments import Run, build_wheel, installed


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    return build_wheel(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="session")
def install(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Install it with an extra, once for all tests, into an environment that has nothing else."""
    return cache(lambda extra: installed(wheel, extra, tmp_path_factory.mktemp(extra or "base")))
