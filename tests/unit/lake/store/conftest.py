"""A place in a bucket, and the settings by which every client of it finds the server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.faults.rig.store_proxy import StoreProxy, proxy_before
from tests.faults.rig.store_settings import set_store
from tests.services.addresses import Bucket

from seamline.lake.storage import log_store
from seamline.lake.store import bucket as buckets
from seamline.lake.store.locations import Location, parse_location


@pytest.fixture
def lake(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Location:
    """A place in an empty bucket."""
    return parse_location(set_store(monkeypatch, bucket, bucket.endpoint, tmp_path)["SEAMLINE_WAREHOUSE"])


@pytest.fixture
def proxy(bucket: Bucket) -> Iterator[StoreProxy]:
    """What is between the clients and the server."""
    with proxy_before(urlsplit(bucket.endpoint).port or 80) as made:
        yield made


@pytest.fixture
def shaky(proxy: StoreProxy, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Location:
    """A place in an empty bucket, behind the proxy."""
    return parse_location(set_store(monkeypatch, bucket, proxy.url, tmp_path)["SEAMLINE_WAREHOUSE"])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What becomes of a commit is asked sooner, and more often, than it is worth with a store that is far away."""
    monkeypatch.setattr(log_store, "PATIENCE", (0.0, 0.05, 0.1, 0.2, 0.4))
    monkeypatch.setattr(buckets, "UNKNOWN_AFTER", timedelta(seconds=0.5))
