"""Records in Kafka's transactions: one writer of a name at a time, all of a call or none, and a tail without holes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError, ProducerFencedError

from seamline.kafka import transactions
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.transactions import TransactionWriter, read_committed_tail
from seamline.model.errors import FenceLost, KafkaUnavailable, SeamlineError, TopicMissing

Open = Callable[..., TransactionWriter]


@pytest.fixture
def topic(kafka: KafkaConnection) -> str:
    """A topic of one's own, of two partitions."""
    name = f"answers.{uuid.uuid4().hex[:8]}"
    with TopicAdmin(kafka) as admin:
        admin.create_topic(name, 2)
    return name


@pytest.fixture
def opened(kafka: KafkaConnection, topic: str) -> Iterator[Open]:
    """Opens writers to the topic, and closes them."""
    made: list[TransactionWriter] = []

    def open_writer(name: str = "one") -> TransactionWriter:
        made.append(TransactionWriter(kafka, topic, f"{name}.{topic}"))
        return made[-1]

    yield open_writer
    for each in made:
        each.close()


def tail(kafka: KafkaConnection, topic: str, starts: dict[int, int] | None = None) -> list[bytes]:
    """Read the tail of the topic, in order of its values."""
    return sorted(read_committed_tail(kafka, topic, starts or {}))


def ends(kafka: KafkaConnection, topic: str) -> dict[int, int]:
    """Return where the partitions end."""
    with TopicAdmin(kafka) as admin:
        return admin.end_offsets(topic)


def begin(writer: TransactionWriter, values: Sequence[bytes], *partitions: int) -> None:
    """Begin to write records, which are in the topic and not committed."""
    writer.producer.begin_transaction()
    for partition in partitions:
        for value in values:
            writer.producer.send(writer.topic, value=value, partition=partition)
    writer.producer.flush(30)


def test_what_was_written_is_read(kafka: KafkaConnection, topic: str, opened: Open) -> None:
    """Each transaction leaves a mark behind its records, which the end of its partition counts."""
    writer = opened()
    assert tail(kafka, topic) == []
    writer.write([b"a", b"b"])
    writer.write([b"c"])
    assert tail(kafka, topic) == [b"a", b"b", b"c"]
    assert sorted(ends(kafka, topic).values()) == [2, 3]
    writer.write([b"d"])
    assert tail(kafka, topic) == [b"a", b"b", b"c", b"d"]


def test_the_tail_begins_where_it_is_said(kafka: KafkaConnection, topic: str, opened: Open) -> None:
    """The master says up to where it has read each partition; of one that it does not know all is read."""
    writer = opened()
    writer.write([b"a", b"b"])
    writer.write([b"c"])
    longer = next(part for part, end in ends(kafka, topic).items() if end == 3)
    assert tail(kafka, topic, {longer: 1}) == [b"b", b"c"]
    assert tail(kafka, topic, {longer: 2}) == [b"c"], "at the mark of a transaction"
    assert tail(kafka, topic, {longer: 3}) == [b"c"]
    assert tail(kafka, topic, ends(kafka, topic)) == []
    assert tail(kafka, topic, {0: 99, 1: 99}) == [], "a topic that was made again is shorter"


def test_records_that_were_deleted_are_passed_over(kafka: KafkaConnection, topic: str, opened: Open) -> None:
    """Retention takes what the stream has read, and what it has not."""
    writer = opened()
    writer.write([b"a", b"b"])
    part = next(part for part, end in ends(kafka, topic).items() if end)
    with TopicAdmin(kafka) as admin:
        admin.delete_records(topic, {part: 1})
    assert tail(kafka, topic) == [b"b"]
    with TopicAdmin(kafka) as admin:
        admin.delete_records(topic, ends(kafka, topic))
    assert tail(kafka, topic) == []


def test_a_second_writer_of_a_name_fences_the_first_off(
    kafka: KafkaConnection, topic: str, opened: Open
) -> None:
    """Two drivers, or a process that was taken for dead: what it writes from then on would be a second answer."""
    first = opened()
    first.write([b"a"])
    second = opened()
    with pytest.raises(FenceLost, match=f"Another process writes to {topic}") as raised:
        first.write([b"b"])
    assert raised.value.hint
    second.write([b"c"])
    with pytest.raises(FenceLost):
        first.write([b"d"])
    assert tail(kafka, topic) == [b"a", b"c"]


def test_a_fence_is_known_wherever_the_client_hears_of_it(topic: str, opened: Open) -> None:
    """Its thread may have been told before the transaction is committed; the call raises no error of a class then."""
    first = opened()
    opened()
    begin(first, [b"a"], 0)
    with pytest.raises(KafkaError) as raised:
        first.producer.commit_transaction()
    assert type(raised.value) is KafkaError
    assert isinstance(first.explain(raised.value), FenceLost)


def test_a_writer_of_another_name_is_no_fence(kafka: KafkaConnection, topic: str, opened: Open) -> None:
    first, other = opened(), opened("other")
    first.write([b"a"])
    other.write([b"b"])
    first.write([b"c"])
    assert tail(kafka, topic) == [b"a", b"b", b"c"]


def test_whoever_opens_ends_what_was_begun(kafka: KafkaConnection, topic: str, opened: Open) -> None:
    """A process died between its records and their commit: they are none, and nobody waits for them."""
    first = opened()
    first.write([b"a"])
    begin(first, [b"lost"] * 5, 0)
    second = opened()
    assert tail(kafka, topic) == [b"a"]
    second.write([b"b"])
    with pytest.raises(ProducerFencedError):
        first.producer.commit_transaction()
    assert tail(kafka, topic) == [b"a", b"b"]


def test_records_of_a_transaction_that_was_aborted_are_not_read(
    kafka: KafkaConnection, topic: str, opened: Open
) -> None:
    """Nor do they keep a reader from the end, where nothing follows them."""
    writer = opened()
    begin(writer, [b"lost"] * 3, 0)
    writer.producer.abort_transaction()
    assert ends(kafka, topic)[0] == 4
    assert tail(kafka, topic) == []
    writer.write([b"a"])
    begin(writer, [b"lost"], 1)
    writer.producer.abort_transaction()
    assert tail(kafka, topic) == [b"a"]


def test_the_tail_is_not_read_past_an_open_transaction(
    kafka: KafkaConnection, topic: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind it may be our own records: whoever takes what is before it for all asks about their rows again."""
    monkeypatch.setattr(transactions, "ENDS_WITHIN", 1.0)
    writer, stranger = opened(), opened("stranger")
    begin(stranger, [b"open"], 0, 1)
    writer.write([b"a"])
    writer.write([b"b"])
    with pytest.raises(KafkaUnavailable, match="open transaction"):
        tail(kafka, topic)
    stranger.producer.commit_transaction()
    assert tail(kafka, topic) == [b"a", b"b", b"open", b"open"]


def test_a_record_without_a_value_is_no_answer(kafka: KafkaConnection, topic: str) -> None:
    """A stranger's tombstone."""
    producer = KafkaProducer(**kafka.for_client(), acks="all")
    producer.send(topic, key=b"k", value=None, partition=0).get(30)
    producer.send(topic, value=b"a", partition=0).get(30)
    producer.close()
    assert tail(kafka, topic) == [b"a"]


def test_many_records_are_read_to_the_end(kafka: KafkaConnection, topic: str, opened: Open) -> None:
    """More than one request gives."""
    writer, values = opened(), [b"%05d" % at + b"x" * 500 for at in range(5000)]
    writer.write(values)
    writer.write(values)
    assert tail(kafka, topic) == sorted(values * 2)


def test_a_topic_that_is_not_there_is_named(kafka: KafkaConnection) -> None:
    """And is not made by whoever writes to it."""
    with pytest.raises(TopicMissing, match="'nobody.answers' does not exist"):
        TransactionWriter(kafka, "nobody.answers", "one.nobody")
    with pytest.raises(TopicMissing, match=r"nobody\.answers"):
        tail(kafka, "nobody.answers")
    with TopicAdmin(kafka) as admin:
        assert "nobody.answers" not in admin.topics()


def test_a_record_that_is_too_large_is_refused_with_its_transaction(
    kafka: KafkaConnection, topic: str, opened: Open
) -> None:
    """Nothing of it is in the topic; whoever goes on opens anew."""
    writer = opened()
    with pytest.raises(SeamlineError, match="MessageSizeTooLarge|RecordTooLarge"):
        writer.write([b"a", b"x" * 2_000_000])
    again = opened()
    again.write([b"b"])
    assert tail(kafka, topic) == [b"b"]
