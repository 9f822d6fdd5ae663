"""Clients of kafka-python's that leave nothing behind where no broker answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient

from seamline.kafka.refusals import list_notes, note_refusals

Client = TypeVar("Client")
TRIED_MS = 1500
"""For how long a client tries to come in that only wants to know why another cannot."""


def open_client(kind: Callable[..., Client], **options: Any) -> Client:
    """Make a client of a ``kind`` that connects at once; raises what its constructor does.

    kafka-python 3.0.12 starts a thread in the constructor and does not end it where no broker answers: it goes on
    trying, with nobody who could close it. So we keep a reference to what the thread belongs to.
    """
    made: list[KafkaNetClient] = []

    def kept(**given: Any) -> KafkaNetClient:
        made.append(KafkaNetClient(**given))
        return made[-1]

    def is_own(thread: int) -> bool:
        # Until its thread is there a client works in that of whoever makes it.
        threads = [each._net._io_thread for each in made]  # noqa: SLF001 - its words have no other mark of it
        return thread == maker or any(each and each.ident == thread for each in threads)

    maker = threading.get_ident()
    try:
        with note_refusals(is_own):
            return kind(**options, kafka_client=kept)
    except BaseException:
        for each in made:
            each.close()
        raise


def find_out_why(kind: Callable[..., Any], **options: Any) -> list[str]:
    """Return what a new client of a ``kind`` is told by brokers; nothing if it comes in, or none is there."""
    if not any(map(is_listened_at, options["bootstrap_servers"])):
        return []
    try:
        open_client(kind, **options, bootstrap_timeout_ms=TRIED_MS).close()
    except KafkaError as error:
        return list_notes(error)
    return []


def is_listened_at(place: str) -> bool:
    """Return whether somebody takes a connection at ``host:port``."""
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=TRIED_MS / 1000).close()
    except (OSError, ValueError):
        return False
    return True
