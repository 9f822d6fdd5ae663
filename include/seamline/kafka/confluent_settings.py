"""What librdkafka's clients need to know of a connection, and what their errors mean."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from seamline.kafka.connections import KafkaConnection
from seamline.model.errors import (
    Fenced,
    KafkaRefused,
    KafkaUnavailable,
    SeamlineError,
    SetupError,
    TopicMissing,
)

FENCING = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)  # noqa: SLF001 - its name
REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._AUTHENTICATION,  # noqa: SLF001 - its name
)
MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001 - its name
TOO_LARGE = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)


def list_client_settings(connection: KafkaConnection) -> dict[str, Any]:
    """Return the settings that every client takes."""
    settings: dict[str, Any] = {
        "bootstrap.servers": connection.brokers,
        "security.protocol": connection.security_protocol,
        "log_level": 3,
    }
    if connection.uses_sasl:
        settings["sasl.mechanism"] = connection.sasl_mechanism
    if connection.tokens:
        settings["oauth_cb"] = give_token(connection)
    elif connection.uses_sasl:
        settings |= {"sasl.username": connection.username, "sasl.password": connection.password}
    if connection.uses_tls:
        given = {
            "ssl.ca.location": connection.ca_file,
            "ssl.certificate.location": connection.cert_file,
            "ssl.key.location": connection.key_file or connection.cert_file,
            "ssl.key.password": connection.key_password,
        }
        settings |= {name: value for name, value in given.items() if value}
    return settings


def give_token(connection: KafkaConnection) -> Any:
    """Return what gives a client its token, the one of this process, and until when it may be used."""
    from seamline.kafka.token_provider import share_provider

    assert connection.tokens is not None
    provider = share_provider(connection.tokens, connection.username, connection.password)

    def give(_: str) -> tuple[str, float, str, dict[str, str]]:
        return (*provider.token_until(), "", provider.extensions())

    return give


def explain_confluent_error(
    problem: KafkaException, connection: KafkaConnection, topic: str
) -> SeamlineError:
    """Say in our words what an error means for the reader; no secret is in any of them."""
    error: KafkaError = problem.args[0]
    code, said = error.code(), f"{error.name()}: {error.str()}"
    if code in FENCING:
        return Fenced(
            f"Another process has taken over the writing to {topic}.",
            hint="it was started later, and goes on in the place of this one.",
        )
    if code in MISSING:
        return TopicMissing(
            f"Topic {topic!r} does not exist on {connection.called}.",
            hint="it was deleted: the sink makes it again, and writes everything anew.",
        )
    if code in REFUSED:
        return KafkaRefused(
            f"Kafka at {connection.called} refuses a sink of topic {topic!r}: {said}.",
            hint="its user must be able to write to the topic and to the one of its position, to read both, and to "
            "write in transactions.",
        )
    if code in TOO_LARGE:
        return SetupError(
            f"A row is larger than topic {topic!r} takes: {said}.",
            hint="raise max.message.bytes of the topic, or leave the view's lists and sketches out.",
        )
    return KafkaUnavailable(
        f"Kafka at {connection.called} did not take what was written to {topic}: {said}.",
        hint="it is tried again; check that the broker is running.",
    )
