"""One Spark session for all tests that compare with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from seamline.spark.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Start the session that jobs have, with Delta; it needs the jars that the bootstrap fetches."""
    started = session("tests")
    yield started
    started.stop()
