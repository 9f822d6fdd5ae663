"""What a Kafka client's error means: a cluster that has no answer yet is waited for, a refusal is not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from unittest.mock import Mock

import kafka.errors as errors
import pytest

from seamline.kafka import produce, topic_ends
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.explained_errors import explain_kafka_error
from seamline.kafka.present_offsets import find_present_offsets
from seamline.kafka.topic_ends import SharedEnds, oldest_from
from seamline.model.errors import KafkaRefused, KafkaUnavailable, TopicMissing

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
    assert isinstance(explain_kafka_error(problem, HERE, "orders"), KafkaUnavailable)


def test_a_refusal_is_none_that_can_be_waited_for() -> None:
    """Waiting for a right that nobody gives would be silence."""
    refused = explain_kafka_error(errors.TopicAuthorizationFailedError(), HERE, "orders")
    assert type(refused) is KafkaRefused
    assert "'orders'" in refused.message
    named = errors.TopicAuthorizationFailedError("CreateTopicsRequest of ClusterGroups")
    assert "use topic 'ClusterGroups'" in explain_kafka_error(named, HERE, "ClusterGroups").message
    assert isinstance(
        explain_kafka_error(errors.UnknownTopicOrPartitionError(), HERE, "orders"), TopicMissing
    )


@pytest.fixture
def frozen() -> Iterator[KafkaConnection]:
    """Listen as a broker that is frozen does: the system takes connections, and nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield KafkaConnection(f"127.0.0.1:{listening.getsockname()[1]}")


@pytest.mark.parametrize(
    "ask",
    [
        lambda connection: TopicAdmin(connection, timeout=0.2),
        lambda connection: oldest_from(connection, {("orders", 0): 0}, timeout=0.2),
        lambda connection: find_present_offsets(connection, {("orders", 0): [(0, 1)]}, timeout=0.2),
    ],
    ids=["admin", "oldest", "present"],
)
def test_who_asks_a_frozen_broker_leaves_no_thread_behind(
    frozen: KafkaConnection, ask: Callable[[KafkaConnection], object]
) -> None:
    """A supervisor asks every few seconds: each time one thread more went on trying, until it ended."""
    before = set(threading.enumerate())
    with pytest.raises(KafkaUnavailable, match="No Kafka broker answers"):
        ask(frozen)
    assert not set(threading.enumerate()) - before


def test_a_cluster_that_is_away_is_waited_for_once(frozen: KafkaConnection) -> None:
    """Two hundred pipelines ask it, one after the other."""
    before = set(threading.enumerate())
    with SharedEnds(timeout=0.2) as ask:
        for _ in range(2):
            with pytest.raises(KafkaUnavailable, match="No Kafka broker answers"):
                ask(frozen, ["orders"])
        found = list(ask._admins.values())
    with pytest.raises(KafkaUnavailable, match="Nobody asks any more"):
        ask(frozen, ["orders"])
    assert [type(each) for each in found] == [KafkaUnavailable]
    assert not set(threading.enumerate()) - before


def test_a_cluster_that_takes_connections_and_answers_nothing_is_asked_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two hundred streams would each wait for it; one partition without a leader is in nobody's way."""
    made = []

    def connect(connection: KafkaConnection, timeout: float) -> Mock:
        made.append(connection)
        return Mock(topic_id=Mock(side_effect=KafkaUnavailable("silence", hint="")))

    monkeypatch.setattr(topic_ends, "TopicAdmin", connect)
    with SharedEnds() as ask:
        for _ in range(5):
            with pytest.raises(KafkaUnavailable, match="silence"):
                ask(HERE, ["orders"])
    assert len(made) == 2


def test_a_writer_that_no_broker_answers_says_so_and_closes_what_it_has_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker may freeze between the two clients that a writer has."""
    closed: list[bool] = []

    def silent(**_: object) -> None:
        raise errors.KafkaTimeoutError("Unable to bootstrap")

    monkeypatch.setattr(produce, "TopicAdmin", lambda _: SimpleNamespace(close=lambda: closed.append(True)))
    monkeypatch.setattr(produce, "KafkaProducer", silent)
    with pytest.raises(KafkaUnavailable, match="No Kafka broker answers"):
        produce.RecordWriter(HERE)
    assert closed == [True]
