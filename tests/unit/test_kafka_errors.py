"""What a Kafka client's error means: a cluster that has no answer yet is waited for, a refusal is not."""

from __future__ import annotations

import kafka.errors as errors
import pytest

from seamline.kafka.admin import explain
from seamline.kafka.connections import KafkaConnection
from seamline.model.errors import KafkaUnavailable, SeamlineError, TopicMissing

HERE = KafkaConnection("127.0.0.1:9092")


@pytest.mark.parametrize(
    "problem",
    [
        errors.RequestTimedOutError(),
        errors.NotLeaderForPartitionError(),
        errors.LeaderNotAvailableError(),
        # kafka-python says so, once, of a broker that was frozen for a minute; a stream must not end of it.
        errors.UnknownBrokerIdError(-1),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_a_cluster_that_has_no_answer_yet_is_waited_for(problem: errors.KafkaError) -> None:
    """A driver waits for a broker as long as it takes, and ends of anything else."""
    assert isinstance(explain(problem, HERE, "orders"), KafkaUnavailable)


def test_a_refusal_is_none_that_can_be_waited_for() -> None:
    """Waiting for a right that nobody gives would be silence."""
    refused = explain(errors.TopicAuthorizationFailedError(), HERE, "orders")
    assert type(refused) is SeamlineError
    assert "'orders'" in refused.message
    assert isinstance(explain(errors.UnknownTopicOrPartitionError(), HERE, "orders"), TopicMissing)
