"""Clients of a store, by the settings of this process."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from seamline.runtime.store_settings import allows_http


def open_client(url: str, retried: timedelta, *, timeout: timedelta, connected_within: timedelta) -> Any:
    """Open the client of a bucket, which retries for a while."""
    from obstore.store import from_url

    return from_url(
        url,
        retry_config={"max_retries": 10 if retried else 0, "retry_timeout": retried},
        client_options={
            "timeout": timeout,
            "connect_timeout": connected_within,
            "allow_http": allows_http(os.environ),
        },
    )
