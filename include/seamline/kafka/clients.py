"""Clients of kafka-python's that leave nothing behind where no broker answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kafka.net.compat import KafkaNetClient

from seamline.kafka.refusals import note_refusals

Client = TypeVar("Client")


def open_client(kind: Callable[..., Client], **options: Any) -> Client:
    """Make a client of a ``kind`` that connects at once; raises what its constructor does.

    kafka-python 3.0.12 starts a thread in the constructor and does not end it where no broker answers: it goes on
    trying, with nobody who could close it. So we keep a reference to what the thread belongs to.
    """
    made: list[KafkaNetClient] = []

    def kept(**given: Any) -> KafkaNetClient:
        made.append(KafkaNetClient(**given))
        return made[-1]

    try:
        with note_refusals():
            return kind(**options, kafka_client=kept)
    except BaseException:
        for each in made:
            each.close()
        raise
