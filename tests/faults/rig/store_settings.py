"""The settings by which every client of a bucket finds its server."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.services.addresses import Bucket

from seamline.lake.store.bucket import open_bucket


def set_store(monkeypatch: pytest.MonkeyPatch, bucket: Bucket, endpoint: str, home: Path) -> dict[str, str]:
    """Have this process speak to a server about a bucket; return the settings, for others to do the same."""
    settings = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": bucket.access_key,
        "AWS_SECRET_ACCESS_KEY": bucket.secret_key,
        "AWS_REGION": bucket.region,
        "SEAMLINE_WAREHOUSE": f"{bucket.url}/the-lake",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SEAMLINE_HOME", str(home))
    open_bucket.cache_clear()
    return settings
