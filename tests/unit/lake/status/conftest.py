"""A bucket, and machines at it: each with its own folder and its own place, of one host name and process id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.lake.store.conftest import lake, proxy, shaky

from seamline.runtime import places

__all__ = ["be_machine", "lake", "proxy", "shaky"]


@pytest.fixture
def be_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Return what makes this process one of a machine; it returns the machine's folder."""

    def move(name: str) -> Path:
        monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / name))
        monkeypatch.setenv(places.POD, name)
        places.distinguish_place.cache_clear()
        return tmp_path / name

    yield move
    places.distinguish_place.cache_clear()
