"""A broker that lets in only who may: each way in, what is said to who may not, and a stream with the least rights."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from kafka.admin import ACLOperation, ResourceType
from pyspark.sql import SparkSession
from tests.e2e.joined_world import eventually
from tests.faults.rig.certificates import Authority
from tests.faults.rig.kept_orders import Kept, describe, send
from tests.faults.rig.processes import end_all
from tests.faults.rig.secured_broker import PASSWORD, SecuredBroker
from tests.ports import free_ports

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.first_records import read_first_records
from seamline.kafka.produce import RecordWriter
from seamline.kafka.transactions import TransactionWriter
from seamline.kafka.whole_records import read_whole_records
from seamline.model.errors import KafkaRefused, KafkaUnavailable, SeamlineError
from seamline.supervisor.counts.readable import describe_count_topic

pytestmark = pytest.mark.faults
PATIENCE = 5.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs everybody's certificate."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def broker(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker with two topics, of which `reader` and `client` may read one."""
    home = tmp_path_factory.mktemp("secured")
    made = SecuredBroker(home, [free_ports() for _ in range(4)], authority.sign("broker"), authority)
    made.start()
    made.set_password(PASSWORD)
    with TopicAdmin(made.connection) as admin:
        admin.create_topic("orders", 1)
        admin.create_topic("secret", 1)
    for user in ("reader", "client"):
        made.allow(ResourceType.TOPIC, "orders", ACLOperation.READ, user=user)
    send(made, 3)
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what kafka-python 3.0.12 leaves open of connections that were refused, which is no fault of the test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def read_by_spark(spark: SparkSession, connection: KafkaConnection) -> int:
    """Count what Spark's Kafka source reads."""
    options = {**connection.for_spark(), "subscribe": "orders"}
    return spark.read.format("kafka").options(**options).load().count()


@pytest.mark.parametrize("way", ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "certificate"])
def test_both_clients_come_in(
    broker: SecuredBroker, authority: Authority, spark: SparkSession, way: str
) -> None:
    """That of the driver and of the pages, and Spark's."""
    certified = way == "certificate"
    connection = broker.certified(authority.sign("client")) if certified else broker.login(way)
    with TopicAdmin(connection) as admin:
        ends = admin.end_offsets("orders")
    assert [*read_first_records(connection, {("orders", 0): 1})] == [("orders", 0)]
    assert read_by_spark(spark, connection) == ends[0] >= 3


def connect(connection: KafkaConnection, ask: Callable[[TopicAdmin], object]) -> SeamlineError:
    """Ask, and return the error."""
    with pytest.raises(SeamlineError) as error, TopicAdmin(connection, timeout=PATIENCE) as admin:
        ask(admin)
    assert error.value.hint and PASSWORD not in f"{error.value}{error.value.__cause__!r}"
    return error.value


def test_who_is_not_let_in_reads_why(broker: SecuredBroker, authority: Authority, tmp_path: Path) -> None:
    """By the field of the connection that is wrong."""
    other, tls = Authority(tmp_path, "other"), f"127.0.0.1:{broker.tls}"
    expired = authority.sign("expired", lives=-timedelta(hours=1))
    uncertified = KafkaConnection(tls, security_protocol="SSL", ca_file=str(authority.file))
    cases = [
        # kafka-python 3.0.12 loses an answer with which the end of the connection comes: then that is all it knows.
        (broker.login(password="wrong"), "login of user 'reader' by SCRAM-SHA-512"),
        (broker.login(username="nobody"), "login of user 'nobody'"),
        (broker.login("PLAIN", password="wrong"), "login of user 'reader' by PLAIN"),
        (broker.login(ca_file=str(other.file)), "is not signed by an authority that the client trusts"),
        (broker.login(ca_file=""), "is not signed by an authority that the client trusts"),
        (
            broker.login(ca_file="/nowhere.pem"),
            "ssl.ca.location names no file that can be read: /nowhere.pem",
        ),
        (broker.certified(other.sign("client")), "refuses the client's certificate"),
        (broker.certified(expired), "refuses the client's certificate"),
        (uncertified, "wants a certificate of the client"),
        (
            KafkaConnection(f"127.0.0.1:{broker.sasl}"),
            "speaks TLS at this port|the broker ends each connection",
        ),
        (broker.login(brokers=f"127.0.0.1:{broker.port}"), "may not speak TLS at this port"),
    ]
    for connection, said in cases:
        error = connect(connection, TopicAdmin.topics)
        assert isinstance(error, KafkaUnavailable)
        assert any(each in error.message for each in said.split("|")), said


def test_who_lacks_a_right_reads_which(broker: SecuredBroker) -> None:
    """A topic that one may not see is as one that is not there, and is said so."""
    reader = broker.login()
    cases: list[tuple[Callable[[TopicAdmin], object], str]] = [
        (lambda admin: admin.end_offsets("secret"), "User 'reader' may not use topic 'secret'"),
        (lambda admin: admin.topic_id("nothing"), "use topic 'nothing', or there is no such topic"),
        (lambda admin: admin.retention("orders"), "read the settings of topic 'orders'"),
        (lambda admin: admin.group_offsets("theirs", "orders"), "use the consumer group 'theirs'"),
        (lambda admin: admin.create_topic("more", 1), "use topic 'more'"),
    ]
    for ask, said in cases:
        error = connect(reader, ask)
        assert isinstance(error, KafkaRefused) and said in error.message, said
    with pytest.raises(KafkaRefused, match="reader"), RecordWriter(reader) as writer:
        writer.send("orders", value=b"x")


def test_who_takes_statements_needs_the_right_to_read_them(broker: SecuredBroker) -> None:
    """A topic that one may describe and not read looks whole until somebody reads."""
    env = {"AIRFLOW_CONN_SHOP": json.dumps(describe(broker.login()))}
    assert describe_count_topic("shop", "orders", env).endswith(" offsets")
    for topic in ("secret", "nothing"):
        with pytest.raises(KafkaRefused, match=f"User 'reader' may not use topic '{topic}'"):
            describe_count_topic("shop", topic, env)
    with TopicAdmin(broker.connection) as admin:
        admin.create_topic("described", 1)
    broker.allow(ResourceType.TOPIC, "described", ACLOperation.DESCRIBE, user="reader")
    with RecordWriter(broker.connection) as writer:
        writer.send("described", value=b"{}")
    with pytest.raises(KafkaRefused, match="'reader'"):
        describe_count_topic("shop", "described", env)
    [piece] = read_whole_records(broker.login(), "orders", {0: (0, 3)})
    assert [each.offset for each in piece.records] == [0, 1, 2]


def test_a_process_that_asks_needs_its_topic_and_its_transactions(broker: SecuredBroker) -> None:
    """As docs/streams.md lists them; without the second nobody could be fenced off."""
    asker, user = broker.login(username="asker"), "asker"
    broker.set_password(PASSWORD, user)
    with TopicAdmin(broker.connection) as admin:
        admin.create_topic("answers", 1)
    broker.allow(ResourceType.TOPIC, "answers", ACLOperation.READ, ACLOperation.WRITE, user=user)
    with pytest.raises(KafkaRefused, match="'asker' may not write in transactions"):
        TransactionWriter(asker, "answers", "seamline.answers.answers")
    broker.allow(ResourceType.TRANSACTIONAL_ID, "seamline.answers.*", ACLOperation.WRITE, user=user)
    writer = TransactionWriter(asker, "answers", "seamline.answers.answers")
    writer.write([b"one", b"two"])
    writer.close()
    # Two records, and the mark of the transaction's end.
    with TopicAdmin(asker) as admin:
        assert admin.end_offsets("answers") == {0: 3}


@pytest.mark.parametrize("flaw", ["expired", "of another host"])
def test_a_broker_with_a_wrong_certificate_is_not_trusted(
    authority: Authority, tmp_path: Path, flaw: str
) -> None:
    """Nothing is sent to it, and the reader learns what is wrong with it."""
    wrong = (
        authority.sign("late", lives=-timedelta(hours=1))
        if flaw == "expired"
        else authority.sign("elsewhere", host="elsewhere.example")
    )
    broker = SecuredBroker(tmp_path / "broker", [free_ports() for _ in range(4)], wrong, authority)
    broker.start()
    try:
        error = connect(broker.login(), TopicAdmin.topics)
        assert "certificate" in error.message and flaw in error.message
    finally:
        broker.stop()


@pytest.fixture
def kept(broker: SecuredBroker, tmp_path: Path) -> Iterator[Kept]:
    """It, and the end of its processes."""
    made = Kept(tmp_path, broker, describe(broker.login()))
    yield made
    end_all(made.home)
    broker.set_password(PASSWORD)


def test_a_stream_reads_with_the_right_to_read_alone(kept: Kept) -> None:
    """What it may not do besides is said once in its log; its password is in no file and no command line."""
    broker = kept.broker
    kept.start()
    kept.await_all()
    assert "Consumer group offsets not committed" in kept.log()
    commands = [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]
    assert not [each for each in commands if PASSWORD in each]
    # The password is changed: what is connected goes on, and a new driver needs the new one.
    kept.login["password"] = "another of this test"
    broker.set_password(kept.login["password"])
    kept.stop()
    files = [each for each in kept.home.rglob("*") if each.is_file()]
    assert files and not [each for each in files if PASSWORD.encode() in each.read_bytes()]
    send(broker, 2)
    kept.start()
    kept.await_all()
    kept.stop()


def test_a_stream_with_an_old_password_waits_and_says_why(kept: Kept) -> None:
    """It is not given up: Kafka may take the login again."""
    kept.broker.set_password("another of this test")
    kept.start()
    eventually(
        "the reason to be said",
        lambda: "refuses the login of user 'reader'" in kept.seamline("stream", "list"),
    )
    kept.broker.set_password(PASSWORD)
    kept.await_all()
    kept.stop()
