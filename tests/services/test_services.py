"""What a test gets when it asks for a service: something real, of its own, and nobody else's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from threading import Barrier, BrokenBarrierError

import boto3
import psycopg
import pytest
from botocore.exceptions import ClientError
from tests.services.addresses import Bucket, KafkaConnection, Postgres, Valkey
from tests.services.moto_store import in_turn
from valkey import Valkey as Client

from seamline.kafka.admin import TopicAdmin

TWICE = pytest.mark.parametrize("time", ["first", "second"])


@TWICE
def test_a_database_is_empty_and_may_be_written(postgres: Postgres, time: str) -> None:
    """The second test would find the first one's table, if they had one database."""
    with psycopg.connect(postgres.url) as connection:
        connection.execute("CREATE TABLE orders (id int)")
        connection.execute("INSERT INTO orders VALUES (7)")
        assert connection.execute("SELECT id FROM orders").fetchall() == [(7,)]
    assert postgres.password not in repr(postgres)


def test_a_database_with_somebody_in_it_can_be_dropped(
    postgres: Postgres, request: pytest.FixtureRequest
) -> None:
    """A pool that a test has left open is no reason for its end to hang."""
    held = psycopg.connect(postgres.url)
    request.addfinalizer(held.close)


@TWICE
def test_a_numbered_database_is_empty_and_may_be_written(valkey: Valkey, time: str) -> None:
    """Databases have no names in Valkey, and still each test has one."""
    with Client.from_url(valkey.url) as client:
        assert client.dbsize() == 0
        client.set("lease", "mine")
        assert client.get("lease") == b"mine"


@TWICE
def test_a_bucket_is_empty_and_lets_one_writer_win(bucket: Bucket, time: str) -> None:
    """Put-if-absent is what commits on a store lean on."""
    wins_once(bucket)


@pytest.mark.faults
def test_the_slow_suites_bucket_lets_one_writer_win(bucket: Bucket) -> None:
    """The slow suites have a server that keeps its objects on a disk."""
    wins_once(bucket)
    with open_client(bucket) as client:
        assert client.list_objects_v2(Bucket=bucket.name)["KeyCount"] == 1


@pytest.mark.faults
def test_a_topic_of_one_s_own(kafka: KafkaConnection) -> None:
    """In make test the end-to-end tests ask for the broker."""
    with TopicAdmin(kafka) as admin:
        admin.create_topic("services.own", 1)
        assert "services.own" in admin.topics()


def wins_once(bucket: Bucket) -> None:
    """Put an object twice, if there is none: the second time is refused."""
    with open_client(bucket) as client:
        client.put_object(Bucket=bucket.name, Key="log/0.json", Body=b"1", IfNoneMatch="*")
        with pytest.raises(ClientError, match="PreconditionFailed"):
            client.put_object(Bucket=bucket.name, Key="log/0.json", Body=b"2", IfNoneMatch="*")
        assert client.get_object(Bucket=bucket.name, Key="log/0.json")["Body"].read() == b"1"


def open_client(bucket: Bucket) -> closing:
    """Open a client as a stranger would."""
    keys = {"aws_access_key_id": bucket.access_key, "aws_secret_access_key": bucket.secret_key}
    return closing(boto3.client("s3", endpoint_url=bucket.endpoint, region_name=bucket.region, **keys))


def test_puts_of_the_quick_tests_bucket_are_one_step() -> None:
    """Moto looks for an object, and puts it, in two: a thread between them was told that it had created it too."""
    both = Barrier(2)

    def meet(_: int) -> bool:
        with suppress(BrokenBarrierError):
            both.wait(0.2)
            return True
        return False

    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(in_turn(meet), range(2))] == [False, False]
