"""What a Spark session is told, by the master that it is of."""

from __future__ import annotations

import pytest

from seamline.spark.session.session import is_in_driver


@pytest.mark.parametrize(
    ("master", "within"),
    [
        ("local", True),
        ("local[2]", True),
        ("local[*,4]", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://127.0.0.1:7077", False),
        ("yarn", False),
    ],
)
def test_executors_that_are_processes_are_given_the_jars(master: str, within: bool) -> None:
    """Without them the tasks of a stream find no Kafka."""
    assert is_in_driver(master) is within
