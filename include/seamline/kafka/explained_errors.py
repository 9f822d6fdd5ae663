"""What a Kafka client's errors mean, in our words."""

from __future__ import annotations

import kafka.errors as errors

from seamline.kafka.connections import KafkaConnection
from seamline.kafka.refusals import find_reason, list_notes
from seamline.model.errors import KafkaRefused, KafkaUnavailable, SeamlineError, SetupError, TopicMissing

_UNREACHABLE = (
    errors.KafkaConnectionError,
    errors.KafkaTimeoutError,
    errors.NodeNotReadyError,
    errors.RequestTimedOutError,
)
CONFIGS = "DESCRIBE_CONFIGS"
_UNSETTLED = (errors.UnknownBrokerIdError, errors.BrokerNotAvailableError)
"""Errors of the client about a cluster whose metadata it must fetch again; it calls them final."""


def explain_kafka_error(
    problem: Exception, connection: KafkaConnection, topic: str = "", group: str = ""
) -> SeamlineError:
    """Say in our words what a Kafka client's error means for the reader."""
    name = type(problem).__name__
    if isinstance(problem, errors.UnknownTopicOrPartitionError):
        return TopicMissing(
            f"Topic {topic!r} does not exist on {connection.called}.",
            hint="create the topic, or correct its name in the definition.",
        )
    if isinstance(problem, errors.AuthorizationError):
        return explain_missing_right(problem, connection, topic, group)
    if isinstance(problem, (*_UNREACHABLE, errors.SaslAuthenticationFailedError)):
        reason, hint = find_reason(list_notes(problem), connection)
        if reason:
            return KafkaUnavailable(f"Kafka at {connection.called} lets nobody in: {reason}.", hint=hint)
        return KafkaUnavailable(
            f"No Kafka broker answers at {connection.called}: {name}.",
            hint="check that the broker is running, and the address, security.protocol and login of the connection.",
        )
    if isinstance(problem, _UNSETTLED) or getattr(problem, "retriable", False):
        return KafkaUnavailable(
            f"Kafka at {connection.called} cannot answer yet ({name}: {problem}).",
            hint="retry shortly: a broker may have just restarted, or a partition may have no leader yet.",
        )
    if isinstance(problem, errors.UnsupportedCodecError):
        return SetupError(
            f"This Python cannot read records of {connection.called}: {problem}.",
            hint="install the codecs that Seamline requires: pip install 'kafka-python[lz4,snappy,zstd]'.",
        )
    if "AuthorizationFailed" in str(problem):
        return explain_missing_right(problem, connection, topic, group)
    about = f" for topic {topic!r}" if topic else ""
    return SeamlineError(f"Kafka at {connection.called} refused{about}: {name}: {problem}")


def explain_missing_right(
    problem: Exception, connection: KafkaConnection, topic: str, group: str
) -> SeamlineError:
    """Say that a user lacks a right, and of what."""
    who = f"User {connection.username!r}" if connection.username else "This client"
    # Some errors only name another in their text, which has the names of topics as well.
    text = f"{type(problem).__name__} {problem}"
    if "GroupAuthorizationFailed" in text:
        what = f"use the consumer group{f' {group!r}' if group else ''}"
    elif "TransactionalIdAuthorizationFailed" in text:
        what = "write in transactions"
    elif "ClusterAuthorizationFailed" in text or not topic:
        what = "do this in the cluster"
    elif CONFIGS in text:
        what = f"read the settings of topic {topic!r}"
    else:
        what = f"use topic {topic!r}, or there is no such topic"
    return KafkaRefused(
        f"{who} may not {what}, says Kafka at {connection.called}.",
        hint='docs/streams.md, "Rights in Kafka", lists what is needed: ask who runs the cluster to grant it.',
    )
