"""A broker that takes tokens of an issuer: both clients get theirs and renew them, and who gets none reads why."""

from __future__ import annotations

import gc
import logging
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kafka.admin import ACLOperation, ResourceType
from pyspark.sql import SparkSession
from tests.e2e.joined_world import eventually
from tests.faults.rig.certificates import Authority
from tests.faults.rig.kept_orders import Kept, describe, send
from tests.faults.rig.processes import end_all
from tests.faults.rig.secured_broker import SecuredBroker
from tests.faults.rig.token_issuer import SECRET, Issuer, run_issuer
from tests.ports import free_ports

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.first_records import read_first_records
from seamline.kafka.token_endpoint import TokenEndpoint
from seamline.model.errors import KafkaRefused, KafkaUnavailable

pytestmark = pytest.mark.faults
PATIENCE = 5.0
"""For how many seconds a client tries to come in."""
SHORT = 12.0
"""For how many seconds a token of a stream's test is valid."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs everybody's certificate."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def issuers(authority: Authority) -> Iterator[Issuer]:
    """Who signs the tokens."""
    with run_issuer(authority.sign("issuer")) as made:
        yield made


@pytest.fixture(scope="module")
def broker(
    authority: Authority, issuers: Issuer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    """A broker with a topic that the client `service` may read."""
    home = tmp_path_factory.mktemp("tokens")
    made = SecuredBroker(home, [free_ports() for _ in range(4)], authority.sign("broker"), authority, issuers)
    made.start()
    with TopicAdmin(made.connection) as admin:
        admin.create_topic("orders", 1)
        admin.create_topic("secret", 1)
    made.allow(ResourceType.TOPIC, "orders", ACLOperation.READ, user="service")
    send(made, 3)
    yield made
    made.stop()


@pytest.fixture
def issuer(issuers: Issuer) -> Iterator[Issuer]:
    """It, as it was before the test when that is over."""
    lives, audience = issuers.lives, issuers.audience
    yield issuers
    issuers.lives, issuers.audience, issuers.silent = lives, audience, False


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what kafka-python 3.0.12 leaves open of connections that were refused, which is no fault of the test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def refuse(connection: KafkaConnection) -> str:
    """Return what is said to somebody who is not let in; never the secret."""
    with pytest.raises(KafkaUnavailable) as error, TopicAdmin(connection, timeout=PATIENCE) as admin:
        admin.topics()
    assert error.value.hint and SECRET not in f"{error.value}{error.value.__cause__!r}"
    return error.value.message


def test_both_clients_come_in_by_a_token(
    broker: SecuredBroker, issuer: Issuer, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """Of one token many of ours live; what is logged at the lowest level has neither it nor the secret."""
    caplog.set_level(logging.DEBUG)
    endpoint = TokenEndpoint(issuer.tokens, "read write", ("tenant=a",), str(broker.authority.file))
    connection = replace(broker.tokened(issuer), tokens=endpoint)
    with TopicAdmin(connection) as admin:
        ends = admin.end_offsets("orders")
        with pytest.raises(KafkaRefused, match="User 'service' may not use topic 'secret'"):
            admin.end_offsets("secret")
    assert [*read_first_records(connection, {("orders", 0): 1})] == [("orders", 0)]
    assert issuer.given["service"] == 1
    options = {**connection.for_spark(), "subscribe": "orders"}
    assert spark.read.format("kafka").options(**options).load().count() == ends[0] >= 3
    assert issuer.given["service"] > 1
    assert {form["scope"] for form in issuer.asked} == {"read write"}
    assert SECRET not in caplog.text and "eyJ" not in caplog.text


def test_who_gets_no_token_reads_why(broker: SecuredBroker, issuer: Issuer, tmp_path: Path) -> None:
    """By the endpoint or by the broker, and by the field of the connection."""
    right = broker.tokened(issuer)
    assert right.tokens
    other = Authority(tmp_path, "other")
    place = f"the token endpoint {issuer.tokens}"
    cases = [
        (replace(right, password="wrong"), f"{place} refuses client 'service': HTTP 401 invalid_client"),
        (
            replace(right, tokens=replace(right.tokens, ca_file=str(other.file))),
            f"{place} does not answer: [SSL: CERTIFICATE_VERIFY_FAILED]",
        ),
        (
            replace(right, tokens=replace(right.tokens, ca_file="/nowhere.pem")),
            "https.ca.location names no file that can be read: /nowhere.pem",
        ),
    ]
    for connection, said in cases:
        assert said in refuse(connection), said
    issuer.audience = "somebody else"
    refused = refuse(replace(right, username="stranger", name="kafka_orders"))
    assert "(connection 'kafka_orders')" in refused
    assert "the token of client 'stranger'" in refused


@pytest.fixture
def kept(broker: SecuredBroker, issuer: Issuer, tmp_path: Path) -> Iterator[Kept]:
    """A stream as `service`, and the end of its processes."""
    made = Kept(tmp_path, broker, describe(broker.tokened(issuer)))
    yield made
    end_all(made.home)


def test_a_stream_renews_its_tokens(kept: Kept, issuer: Issuer) -> None:
    """Kafka ends a connection whose token has expired; nothing of that is to be seen."""
    issuer.lives = SHORT
    kept.start()
    kept.await_all()
    had = issuer.given["service"]
    # Both clients of the driver have each had several since.
    eventually("tokens to be renewed", lambda: issuer.given["service"] >= had + 6)
    send(kept.broker, 2)
    kept.await_all()
    assert "failed" not in kept.log()
    # The issuer is away for longer than a token lives: the stream waits, and says for whom.
    issuer.silent = True
    asked = len(issuer.asked)
    eventually("the issuer to be asked in vain", lambda: len(issuer.asked) > asked + 3)
    eventually("the reason to be said", lambda: "token endpoint" in kept.seamline("stream", "list"))
    send(kept.broker, 2)
    issuer.silent = False
    kept.await_all()
    kept.stop()
    files = [each for each in kept.home.rglob("*") if each.is_file()]
    assert files and not [each for each in files if SECRET.encode() in each.read_bytes()]
