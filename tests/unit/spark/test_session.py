"""What a Spark session is told, by the master that it is of."""

from __future__ import annotations

import pytest

from seamline.spark.session.session import choose_master, is_in_driver, pick_settings, write_heap


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


def test_executors_elsewhere_are_not_sent_to_their_own_loopback():
    """A driver that was submitted to a cluster told its executors to call back at 127.0.0.1."""
    assert "spark.driver.host" not in pick_settings("spark://master:7077")
    assert "spark.driver.bindAddress" not in pick_settings("k8s://https://api")
    assert pick_settings("local[2]")["spark.driver.host"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("declared", "named", "expected"),
    [
        ("", "", "local[2]"),
        ("", "spark://m:7077", "spark://m:7077"),
        ("local[4]", "spark://m:7077", "local[4]"),
    ],
)
def test_a_definition_has_the_last_word_on_the_master(declared, named, expected):
    assert choose_master(declared, {"SEAMLINE_SPARK_MASTER": named}) == expected


@pytest.mark.parametrize(("declared", "heap"), [("2gb", "2g"), ("600MB", "600m"), ("4g", "4g")])
def test_a_heap_is_written_as_java_reads_it(declared, heap):
    """Java knows no unit of two letters, and did not start."""
    assert write_heap(declared) == heap
