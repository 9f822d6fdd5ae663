"""A Kafka connection is read from every form that Airflow writes, and refused when it cannot work."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from seamline.kafka.connections import KafkaConnection, read_airflow_connection
from seamline.kafka.token_provider import TokenProvider
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


TOKENS = {
    "bootstrap.servers": "a:9093",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "OIDC",
    "sasl.oauthbearer.client.id": "reader",
    "sasl.oauthbearer.client.secret": 's3cr3t"',
    "sasl.oauthbearer.scope": "read write",
    "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,poolId=p",
    "sasl.oauthbearer.token.endpoint.url": "https://issuer/tokens",
    "https.ca.location": "issuer.pem",
}


def test_tokens_reach_client_and_spark() -> None:
    """By librdkafka's names, which Java's client has others for."""
    connection = of(json.dumps({"conn_type": "kafka", "extra": TOKENS}))
    options = connection.for_spark()
    assert options["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'clientId="reader" clientSecret="s3cr3t\\"" scope="read write" '
        'extension_logicalCluster="lkc-1" extension_poolId="p" '
        'ssl.truststore.type="PEM" ssl.truststore.location="issuer.pem";'
    )
    assert options["kafka.sasl.oauthbearer.token.endpoint.url"] == "https://issuer/tokens"
    client = connection.for_client()
    provider = client["sasl_oauth_token_provider"]
    assert isinstance(provider, TokenProvider) and "sasl_plain_password" not in client
    assert provider.extensions() == {"logicalCluster": "lkc-1", "poolId": "p"}
    # Clients of one process share a token.
    assert connection.for_client()["sasl_oauth_token_provider"] is provider
    assert "s3cr3t" not in repr(connection)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("sasl.oauthbearer.method", "default", "sasl.oauthbearer.method 'default' is not oidc"),
        ("sasl.oauthbearer.grant.type", "x", "sasl.oauthbearer.grant.type 'x' is not client_credentials"),
        ("sasl.oauthbearer.client.id", "", "needs sasl.oauthbearer.client.id"),
        ("sasl.oauthbearer.client.secret", "", "needs sasl.oauthbearer.client.id and"),
        ("sasl.oauthbearer.token.endpoint.url", "", "needs sasl.oauthbearer.token.endpoint.url"),
        ("sasl.oauthbearer.token.endpoint.url", "file:///t", "is no address by http or https"),
        ("sasl.oauthbearer.token.endpoint.url", "https://a:s3cr3t@h/t", "has a login of its own"),
        ("sasl.oauthbearer.extensions", "auth=x", "sasl.oauthbearer.extensions are not name=value"),
        ("sasl.oauthbearer.extensions", "a=b,c", "sasl.oauthbearer.extensions are not name=value"),
    ],
)
def test_tokens_that_cannot_be_had_are_refused(field: str, value: str, said: str) -> None:
    """By the field that is wrong, and without the secret."""
    with pytest.raises(ConnectionMissing, match=said) as caught:
        of(json.dumps({"conn_type": "kafka", "extra": {**TOKENS, field: value}}))
    assert "s3cr3t" not in str(caught.value)


def test_airflow_has_fields_of_its_own_for_a_client() -> None:
    """Login and password are the client's id and secret, as they are a user's otherwise."""
    extra = {name: value for name, value in TOKENS.items() if ".client." not in name}
    connection = of(json.dumps({"conn_type": "kafka", "login": "me", "password": "p", "extra": extra}))
    assert (connection.username, connection.password) == ("me", "p")


def test_a_key_may_have_a_passphrase(tmp_path: Path) -> None:
    """It is opened for Java, and nobody else is told of it; also behind a certificate in one file."""
    made = ec.generate_private_key(ec.SECP256R1())
    closed = serialization.BestAvailableEncryption(b"s3cr3t")
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    key = tmp_path / "key.pem"
    key.write_bytes(b"-----BEGIN CERTIFICATE-----\nx\n" + made.private_bytes(*form, closed))
    extra = {"bootstrap.servers": "a:1", "security.protocol": "SSL", "ssl.key.password": "s3cr3t"}
    extra |= {"ssl.certificate.location": str(key)}
    connection = of(json.dumps({"conn_type": "kafka", "extra": extra}))
    assert connection.for_client()["ssl_password"] == "s3cr3t"
    plain = made.private_bytes(*form, serialization.NoEncryption()).decode()
    assert connection.for_spark()["kafka.ssl.keystore.key"] == plain
    assert "s3cr3t" not in repr(connection)
    wrong = replace(connection, key_password="another")
    with pytest.raises(ConnectionMissing, match="cannot be opened by ssl.key.password"):
        wrong.for_spark()


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
