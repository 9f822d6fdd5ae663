"""A Kafka connection is read from every form that Airflow writes, and refused when it cannot work."""

from __future__ import annotations

import json

import pytest

from seamline.kafka.connections import KafkaConnection, read_airflow_connection
from seamline.model.errors import ConnectionMissing

SECURE = {
    "bootstrap.servers": "a:9093,b:9093",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "reader",
    "sasl.password": 'qu"ote',
    "ssl.ca.location": "ca.pem",
}


def of(text: str) -> KafkaConnection:
    return read_airflow_connection("my_kafka", {"AIRFLOW_CONN_MY_KAFKA": text})


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": "h:9092"}}),
        json.dumps({"conn_type": "kafka", "extra": json.dumps({"bootstrap.servers": "h:9092"})}),
        json.dumps({"conn_type": "kafka", "host": "h", "port": 9092}),
        json.dumps({"conn_type": "kafka", "host": "h"}),
        "kafka://h:9092",
        "kafka://h",
        "kafka:///?bootstrap.servers=h%3A9092",
        "kafka://?__extra__=%7B%22bootstrap.servers%22%3A+%22h%3A9092%22%7D",
    ],
)
def test_all_forms_mean_the_same_cluster(text: str) -> None:
    """A team keeps the connection it already has in Airflow."""
    assert of(text) == KafkaConnection("h:9092")


def test_secure_connection_reaches_client_and_spark() -> None:
    """Both clients must log in with the same credentials, or only one layer reads."""
    connection = of(json.dumps({"conn_type": "kafka", "extra": SECURE}))
    assert connection.for_client() == {
        "bootstrap_servers": ["a:9093", "b:9093"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "reader",
        "sasl_plain_password": 'qu"ote',
        "ssl_cafile": "ca.pem",
    }
    options = connection.for_spark()
    assert options["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="reader" password="qu\\"ote";'
    )
    assert options["kafka.isolation.level"] == "read_committed"
    assert options["kafka.ssl.truststore.location"] == "ca.pem"


def test_uri_carries_login_and_options() -> None:
    """The URI form is what most deployments have in a secret."""
    connection = of("kafka://me:p%40ss@a:1,b/?security.protocol=SASL_PLAINTEXT&sasl.mechanism=PLAIN")
    assert connection.brokers == "a:1,b:9092"
    assert (connection.username, connection.password) == ("me", "p@ss")
    assert connection.sasl_mechanism == "PLAIN"


def test_password_is_not_shown() -> None:
    """A repr ends up in logs."""
    assert "quote" not in repr(KafkaConnection("h:1", "SASL_SSL", "PLAIN", "me", "quote"))


def test_missing_connection_names_the_variable() -> None:
    """The way out is to set it."""
    with pytest.raises(ConnectionMissing, match="my_kafka") as caught:
        read_airflow_connection("my_kafka", {})
    assert "AIRFLOW_CONN_MY_KAFKA" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"conn_type": secret', "neither"),
        ("just words secret", "neither"),
        ('{"conn_type": "kafka", "extra": ["secret"]}', "neither"),
        ("kafka://", "no broker"),
        ("kafka://h/?security.protocol=TLS", "security.protocol 'TLS'"),
        ("kafka://h/?security.protocol=SASL_SSL", "sasl.mechanism ''"),
        ("kafka://h/?isolation.level=none", "isolation.level"),
        ("kafka://me:secret@h", "sends none"),
    ],
)
def test_unusable_connection_is_refused(text: str, said: str) -> None:
    """Better here than as a time-out in the stream job; and never with the password in the message."""
    with pytest.raises(ConnectionMissing, match=said) as caught:
        of(text)
    assert "secret" not in str(caught.value)
    assert "AIRFLOW_CONN_MY_KAFKA" in str(caught.value)
